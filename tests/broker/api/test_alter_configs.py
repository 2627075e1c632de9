"""AlterConfigs: what is given replaces all that was there."""

import pytest

from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, GROUP, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error


def alter(world, *resources, validate_only=False, version=2):
    rows = [
        m.AlterConfigsRequest_AlterConfigsResource(
            kind, name, [m.AlterConfigsRequest_AlterableConfig(*change) for change in changes]
        )
        for kind, name, changes in resources
    ]
    answers = world.call(m.AlterConfigsRequest(rows, validate_only), version).responses
    assert [(row.resource_type, row.resource_name) for row in answers] == [one[:2] for one in resources]
    assert all((row.error_message is None) == (row.error_code == 0) for row in answers)
    return [row.error_code for row in answers]


def own(world):
    return dict(world.node.cluster.config(TOPIC, "t"))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_not_given_is_gone(world, version):
    world.create("t", retention_ms="1", segment_ms="2")
    assert alter(world, (TOPIC, "t", [("retention.ms", "5"), ("flush.ms", "6")]), version=version) == [0]
    assert own(world) == {"retention.ms": "5", "flush.ms": "6"}
    assert alter(world, (TOPIC, "t", []), validate_only=True, version=version) == [0]
    assert len(own(world)) == 2
    assert alter(world, (TOPIC, "t", []), version=version) == [0]
    assert own(world) == {}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", None)], Error.INVALID_REQUEST),
        ([("retention.ms", "x")], Error.INVALID_CONFIG),
        ([("unknown", "5")], Error.INVALID_CONFIG),
        ([("retention.ms", "5"), ("retention.ms", "6")], Error.INVALID_REQUEST),
    ],
)
def test_a_wrong_setting_leaves_the_topic_alone(world, changes, error):
    world.create("t", retention_ms="1")
    assert alter(world, (TOPIC, "t", changes)) == [error]
    assert own(world) == {"retention.ms": "1"}


def test_resources_succeed_and_fail_by_themselves(world):
    world.create("t")
    codes = alter(
        world,
        (TOPIC, "unknown", []),
        (TOPIC, "t", [("retention.ms", "5")]),
        (BROKER_LOGGER, "1", [("root", "INFO")]),
        (BROKER, "2", []),
        (BROKER, "x", []),
        (BROKER, "1", [("num.partitions", "5")]),
        (GROUP, "", []),
        (3, "x", []),
    )
    bad = Error.INVALID_REQUEST
    assert codes == [Error.UNKNOWN_TOPIC_OR_PARTITION, Error.NONE, bad, bad, bad, bad, bad, bad]


def test_a_broker_takes_what_may_change_while_it_runs(world):
    assert alter(world, (BROKER, "1", [("log.retention.ms", "5000")])) == [0]
    assert world.node.settings["log.retention.ms"] == 5000
    assert alter(world, (BROKER, "1", [])) == [0]
    assert world.node.settings["log.retention.ms"] == 604_800_000


def test_a_resource_named_twice_is_refused_twice(world):
    world.create("t")
    assert alter(world, (TOPIC, "t", []), (TOPIC, "t", [])) == [Error.INVALID_REQUEST] * 2
    assert alter(world) == []
