"""IncrementalAlterConfigs: single changes, all of a resource or none, and what they bring about."""

import logging

import pytest

from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from moldau.settings import APPEND, DELETE, SET, SUBTRACT
from moldau.wire import messages as m
from moldau.wire.errors import Error


def alter(world, *resources, validate_only=False, version=1):
    rows = [
        m.IncrementalAlterConfigsRequest_AlterConfigsResource(
            kind, name, [m.IncrementalAlterConfigsRequest_AlterableConfig(*change) for change in changes]
        )
        for kind, name, changes in resources
    ]
    answers = world.call(m.IncrementalAlterConfigsRequest(rows, validate_only), version).responses
    assert [(row.resource_type, row.resource_name) for row in answers] == [one[:2] for one in resources]
    assert all((row.error_message is None) == (row.error_code == 0) for row in answers)
    return [row.error_code for row in answers]


@pytest.fixture
def topic(world):
    """Changes topic "t" and says what came of it."""
    world.create("t")
    return lambda *changes, **options: alter(world, (TOPIC, "t", list(changes)), **options)[0]


def own(world, kind=TOPIC, name="t"):
    return dict(world.node.cluster.config(kind, name))


@pytest.mark.parametrize("version", [0, 1])
def test_settings_are_set_and_deleted(world, topic, version):
    assert topic(("retention.ms", SET, "5000"), ("segment.ms", SET, "6000"), version=version) == 0
    assert own(world) == {"retention.ms": "5000", "segment.ms": "6000"}
    assert topic(("retention.ms", DELETE, None), ("unknown", DELETE, "x"), version=version) == 0
    assert own(world) == {"segment.ms": "6000"}


def test_lists_grow_and_shrink(world, topic):
    for change, expected in [
        ((APPEND, "compact"), "delete,compact"),
        ((APPEND, "compact"), "delete,compact"),
        ((SUBTRACT, "delete"), "compact"),
        ((SUBTRACT, "compact"), ""),
    ]:
        assert topic(("cleanup.policy", *change)) == 0
        assert own(world)["cleanup.policy"] == expected


def test_the_log_of_a_topic_follows_its_settings(world, topic):
    log = world.node.replicas.by_name["t"][0].log
    topic(("retention.ms", SET, "5000"), ("max.message.bytes", SET, "77"))
    assert (log.config.retention_ms, log.config.max_message_bytes) == (5000, 77)
    topic(("retention.ms", DELETE, None))
    assert log.config.retention_ms == 604_800_000


def test_changes_survive_a_restart(world, topic):
    topic(("retention.ms", SET, "5000"))
    alter(world, (BROKER, "1", [("message.max.bytes", SET, "99")]))
    world.restart()
    assert own(world) == {"retention.ms": "5000"}
    assert world.node.replicas.by_name["t"][0].log.config.retention_ms == 5000
    assert world.node.settings["message.max.bytes"] == 99


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", SET, "abc")], Error.INVALID_CONFIG),
        ([("retention.ms", SET, "-2")], Error.INVALID_CONFIG),
        ([("retention.ms", SET, "")], Error.INVALID_CONFIG),
        ([("retention.ms", SET, None)], Error.INVALID_REQUEST),
        ([("cleanup.policy", APPEND, None)], Error.INVALID_REQUEST),
        ([("retention.ms", APPEND, "5")], Error.INVALID_CONFIG),
        ([("retention.ms", SUBTRACT, "5")], Error.INVALID_CONFIG),
        ([("retention.ms", 4, "5")], Error.INVALID_REQUEST),
        ([("unknown", SET, "1")], Error.INVALID_CONFIG),
        ([("unknown", APPEND, "1")], Error.INVALID_CONFIG),
        ([("cleanup.policy", SET, "burn")], Error.INVALID_CONFIG),
        ([("cleanup.policy", APPEND, "burn")], Error.INVALID_CONFIG),
        ([("compression.type", SET, "GZIP")], Error.INVALID_CONFIG),
        ([("remote.storage.enable", SET, "true")], Error.INVALID_CONFIG),
        ([("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")], Error.INVALID_CONFIG),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "2")], Error.INVALID_REQUEST),
        ([("segment.ms", SET, "5"), ("unknown", SET, "1")], Error.INVALID_CONFIG),
    ],
)
def test_a_wrong_change_leaves_the_topic_alone(world, topic, changes, error):
    assert topic(*changes) == error
    assert own(world) == {}


def test_validate_only_changes_nothing(world, topic):
    assert topic(("retention.ms", SET, "5000"), validate_only=True) == 0
    assert topic(("retention.ms", SET, "x"), validate_only=True) == Error.INVALID_CONFIG
    assert own(world) == {}


def test_resources_succeed_and_fail_by_themselves(world, topic):
    codes = alter(
        world,
        (TOPIC, "unknown", [("retention.ms", SET, "5")]),
        (TOPIC, "unknown2", [("unknown", SET, "5")]),
        (TOPIC, "a/b", [("retention.ms", SET, "5")]),
        (TOPIC, "", [("retention.ms", SET, "5")]),
        (TOPIC, "t", [("retention.ms", SET, "5")]),
        (3, "x", []),
        (0, "x", []),
    )
    assert codes == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.INVALID_CONFIG,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.INVALID_REQUEST,
        Error.NONE,
        Error.INVALID_REQUEST,
        Error.INVALID_REQUEST,
    ]


def test_a_resource_named_twice_is_refused_twice(world, topic):
    twice = (TOPIC, "t", [("retention.ms", SET, "5")])
    assert alter(world, twice, twice, (GROUP, "g", [])) == [Error.INVALID_REQUEST, Error.INVALID_REQUEST, 0]
    assert own(world) == {}


def test_a_broker_setting_takes_effect_for_all_topics(world, topic):
    assert alter(world, (BROKER, "1", [("log.retention.ms", SET, "7777")])) == [0]
    log = world.node.replicas.by_name["t"][0].log
    assert (world.node.settings["log.retention.ms"], log.config.retention_ms) == (7777, 7777)
    assert alter(world, (BROKER, "", [("log.retention.ms", SET, "8888")])) == [0]
    assert log.config.retention_ms == 7777
    assert alter(world, (BROKER, "1", [("log.retention.ms", DELETE, None)])) == [0]
    assert log.config.retention_ms == 8888


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("1", ("num.partitions", SET, "5"), Error.INVALID_REQUEST),
        ("", ("num.partitions", SET, "5"), Error.INVALID_REQUEST),
        ("1", ("num.partitions", DELETE, None), Error.NONE),
        ("1", ("num.partitions", APPEND, "1"), Error.INVALID_CONFIG),
        ("1", ("log.retention.hours", SET, "5"), Error.INVALID_REQUEST),
        ("1", ("log.retention.ms", SET, "x"), Error.INVALID_REQUEST),
        ("1", ("log.retention.ms", SET, None), Error.INVALID_REQUEST),
        ("1", ("log.retention.ms", 4, "5"), Error.INVALID_REQUEST),
        ("1", ("compression.type", SET, "burn"), Error.INVALID_REQUEST),
        ("1", ("log.roll.ms", SET, "0"), Error.INVALID_REQUEST),
        ("", ("max.connections.per.ip", SET, "0"), Error.INVALID_REQUEST),
        ("1", ("log.cleanup.policy", APPEND, "compact"), Error.NONE),
        ("1", ("advertised.listeners", SET, "PLAINTEXT://h:1"), Error.INVALID_REQUEST),
        ("1", ("ssl.keystore.password", SET, "x"), Error.INVALID_REQUEST),
        ("", ("ssl.keystore.location", SET, "x"), Error.INVALID_REQUEST),
        ("1", ("unknown", SET, "x"), Error.NONE),
        ("1", ("unknown", APPEND, "x"), Error.INVALID_CONFIG),
        ("1", ("min.insync.replicas", SET, "1"), Error.INVALID_CONFIG),
        ("", ("min.insync.replicas", SET, "2"), Error.NONE),
        ("", ("min.insync.replicas", DELETE, None), Error.INVALID_CONFIG),
        ("2", ("log.retention.ms", SET, "5"), Error.INVALID_REQUEST),
        ("x", ("log.retention.ms", SET, "5"), Error.INVALID_REQUEST),
    ],
)
def test_what_a_broker_takes_while_it_runs(world, name, change, error):
    assert alter(world, (BROKER, name, [change])) == [error]


def test_groups_have_settings_within_what_the_broker_allows(world):
    assert alter(world, (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")])) == [0]
    assert own(world, GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    for value in ("1", "500000"):
        assert alter(world, (GROUP, "g", [("consumer.session.timeout.ms", SET, value)])) == [Error.INVALID_CONFIG]
    assert alter(world, (GROUP, "g", [("unknown", SET, "1")])) == [Error.INVALID_CONFIG]
    assert alter(world, (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])) == [Error.INVALID_REQUEST]


def test_client_metrics_have_settings(world):
    good = [("interval.ms", SET, "5000"), ("metrics", SET, "a,b"), ("match", SET, "client_id=x")]
    assert alter(world, (CLIENT_METRICS, "m", good)) == [0]
    for change, error in [
        (("interval.ms", SET, "1"), Error.INVALID_REQUEST),
        (("match", SET, "foo=x"), Error.INVALID_CONFIG),
        (("match", SET, "client_id=["), Error.INVALID_CONFIG),
        (("metrics", APPEND, "c"), Error.INVALID_CONFIG),
        (("unknown", SET, "x"), Error.INVALID_REQUEST),
    ]:
        assert alter(world, (CLIENT_METRICS, "m", [change])) == [error]
    assert alter(world, (CLIENT_METRICS, "", good)) == [Error.INVALID_REQUEST]


@pytest.fixture
def levels():
    """The loggers of the package, with their levels put back afterwards."""
    package, inner = logging.getLogger("moldau"), logging.getLogger("moldau.broker.replicas")
    before = package.level, inner.level
    yield package, inner
    package.setLevel(before[0])
    inner.setLevel(before[1])


def test_log_levels_change_at_once(world, levels):
    package, inner = levels
    changes = [("root", SET, "ERROR"), ("moldau.broker.replicas", SET, "DEBUG")]
    assert alter(world, (BROKER_LOGGER, "1", changes), validate_only=True) == [0]
    assert package.level != logging.ERROR
    assert alter(world, (BROKER_LOGGER, "1", changes)) == [0]
    assert (package.level, inner.level) == (logging.ERROR, logging.DEBUG)
    assert alter(world, (BROKER_LOGGER, "1", [("moldau.broker.replicas", DELETE, None)])) == [0]
    assert inner.getEffectiveLevel() == logging.ERROR


@pytest.mark.parametrize(
    ("name", "change", "error"),
    [
        ("1", ("root", SET, "LOUD"), Error.INVALID_CONFIG),
        ("1", ("root", SET, "warn"), Error.INVALID_CONFIG),
        ("1", ("root", DELETE, None), Error.INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), Error.INVALID_REQUEST),
        ("1", ("root", SET, None), Error.INVALID_REQUEST),
        ("1", ("unknown.logger", SET, "INFO"), Error.INVALID_CONFIG),
        ("1", ("unknown.logger", DELETE, None), Error.INVALID_CONFIG),
        ("", ("root", SET, "INFO"), Error.INVALID_REQUEST),
        ("2", ("root", SET, "INFO"), Error.INVALID_REQUEST),
    ],
)
def test_wrong_log_levels_are_refused(world, levels, name, change, error):
    before = levels[0].level
    assert alter(world, (BROKER_LOGGER, name, [change])) == [error]
    assert levels[0].level == before
