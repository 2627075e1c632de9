"""ListConfigResources: which resources there are to describe."""

import pytest

from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error


@pytest.fixture
def listed(world):
    """Asks for types; topics, a group and client metrics exist."""
    world.create("t")
    rows = [m.ConfigRecord(GROUP, "g", "consumer.session.timeout.ms", "50000")]
    rows += [m.ConfigRecord(CLIENT_METRICS, "m", "interval.ms", "1000"), m.ConfigRecord(BROKER, "", "x", "y")]
    world.change(*rows)

    def ask(*kinds, version=1):
        answer = world.call(m.ListConfigResourcesRequest(list(kinds)), version)
        return answer.error_code, [(row.resource_type, row.resource_name) for row in answer.config_resources]

    return ask


def test_no_type_asks_for_all(listed):
    everything = [(GROUP, "g"), (CLIENT_METRICS, "m"), (BROKER_LOGGER, "1"), (BROKER, "1"), (TOPIC, "t")]
    assert listed() == (0, everything)


def test_version_0_knows_client_metrics_alone(listed):
    assert listed(version=0) == (0, [(CLIENT_METRICS, "m")])


def test_types_are_asked_for_once_or_more(listed):
    assert listed(TOPIC, TOPIC, GROUP) == (0, [(GROUP, "g"), (TOPIC, "t")])


@pytest.mark.parametrize("kind", [-1, 0, 1, 3, 64])
def test_an_unknown_type_is_refused(listed, kind):
    assert listed(TOPIC, kind) == (Error.UNSUPPORTED_VERSION, [])
