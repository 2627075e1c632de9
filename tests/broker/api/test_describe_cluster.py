"""DescribeCluster: this node, and what an endpoint for clients refuses to tell."""

import pytest

from moldau.broker import operations
from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_this_broker(world, version):
    answer = world.call(m.DescribeClusterRequest(include_cluster_authorized_operations=True), version)
    (broker,) = answer.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack, broker.is_fenced) == (
        (1, "127.0.0.1", 9092, None, False)
    )
    assert (answer.error_code, answer.error_message, answer.controller_id, answer.endpoint_type) == (0, None, 1, 1)
    assert answer.cluster_id == world.node.metadata.cluster_id
    assert answer.cluster_authorized_operations == operations.CLUSTER == 8096


def test_operations_are_told_only_if_asked_for(world):
    assert world.call(m.DescribeClusterRequest()).cluster_authorized_operations == -(2**31)


@pytest.mark.parametrize(
    ("kind", "error"),
    [(0, Error.UNSUPPORTED_ENDPOINT_TYPE), (2, Error.MISMATCHED_ENDPOINT_TYPE), (3, Error.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_other_endpoints_are_not_described_here(world, kind, error):
    answer = world.call(m.DescribeClusterRequest(endpoint_type=kind))
    assert (answer.error_code, answer.cluster_id, answer.controller_id, answer.brokers) == (error, "", -1, [])
