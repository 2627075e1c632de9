"""The node's own requests (broker/outbox.py), to Moldau and to the Apache Kafka that the tests of the client have."""

from __future__ import annotations

from moldau.broker.outbox import Peer
from moldau.wire import messages as m
from tests.broker.test_peers import Asking, run


def test_a_node_asks_either_broker_in_versions_that_they_agree_on(servers: str) -> None:
    host, _, port = servers.partition(":")

    async def scenario(asking: Asking) -> None:
        peer = Peer(host, int(port))
        cluster, groups = asking.ask(peer, m.DescribeClusterRequest()), asking.ask(peer, m.ListGroupsRequest())
        assert [broker.port for broker in (await cluster).brokers] == [int(port)]
        assert (await groups).error_code == 0

    run(scenario)
