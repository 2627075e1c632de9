"""Settings of topics, groups, client metrics and a running broker: checks, changes, and what DescribeConfigs says.

The expected answers were given by Apache Kafka 4.3.1.
"""

from __future__ import annotations

import pytest

from moldau import settings
from moldau.settings import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    CLUSTER,
    DELETE,
    GROUP,
    IP,
    QUOTA,
    SET,
    SUBTRACT,
    TOPIC,
    SettingError,
    Settings,
    alter,
    describe,
    validate,
    validate_topic,
)

START = Settings.load()


def refused(scope: str, name: str, value: str | None, operation: int = SET, **more: bool) -> SettingError:
    with pytest.raises(SettingError) as caught:
        alter(scope, START, {}, [(name, operation, value)], **more)
    return caught.value


def entry(scope: str, name: str, at: Settings = START, own: dict[str, str] | None = None) -> settings.Entry:
    [found] = describe(scope, at, own, [name])
    return found


def test_a_topic_has_its_own_settings_and_else_the_brokers() -> None:
    start = Settings.load("log.segment.bytes=2000000\nlog.roll.hours=1\nlog.flush.scheduler.interval.ms=9")
    values = settings.topic_settings(start, {"retention.ms": "5"})
    assert (values["segment.bytes"], values["segment.ms"], values["flush.ms"]) == (2_000_000, 3_600_000, 9)
    assert values["retention.ms"] == 5
    assert set(values) == set(settings.rows(TOPIC))


def test_the_internal_segment_size_may_be_tiny_and_wins() -> None:
    assert settings.topic_settings(START, {"internal.segment.bytes": "100"})["segment.bytes"] == 100


def test_a_group_has_its_own_settings_and_else_the_brokers() -> None:
    values = settings.group_settings(START, {"consumer.session.timeout.ms": "50000"})
    assert (values["consumer.session.timeout.ms"], values["consumer.heartbeat.interval.ms"]) == (50_000, 5_000)


def test_what_kafka_accepts_without_tiered_storage_is_accepted() -> None:
    validate_topic({"local.retention.ms": "99999999999", "retention.ms": "5", "remote.log.copy.disable": "true"})
    validate_topic({"cleanup.policy": "", "min.insync.replicas": "5", "min.cleanable.dirty.ratio": "NaN"})


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"nope": "1"}, "no such topic setting"),
        ({"retention.ms": None}, "it needs a value"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}, "at most max.compaction.lag.ms"),
        ({"log.retention.ms": "5"}, "no such topic setting"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(overrides: dict[str, str | None], words: str) -> None:
    with pytest.raises(SettingError) as caught:
        validate_topic(overrides)
    assert words in str(caught.value) and caught.value.error == "INVALID_CONFIG"


def test_the_brokers_values_count_in_the_checks_of_a_topic() -> None:
    start = Settings.load("log.cleaner.max.compaction.lag.ms=10")
    with pytest.raises(SettingError, match=r"max\.compaction\.lag\.ms"):
        validate_topic({"min.compaction.lag.ms": "11"}, start)


def test_set_delete_append_and_subtract() -> None:
    overrides: dict[str, str] = {}
    for change, after in [
        (("cleanup.policy", APPEND, "compact"), "delete,compact"),
        (("cleanup.policy", APPEND, "compact"), "delete,compact"),
        (("cleanup.policy", SUBTRACT, "delete"), "compact"),
        (("cleanup.policy", SUBTRACT, "compact"), ""),
        (("cleanup.policy", SET, " compact , delete "), " compact , delete "),
        (("cleanup.policy", DELETE, None), None),
    ]:
        overrides = alter(TOPIC, START, overrides, [change])
        assert overrides.get("cleanup.policy") == after


def test_a_change_leaves_the_old_overrides_alone() -> None:
    old = {"retention.ms": "1"}
    assert alter(TOPIC, START, old, [("retention.ms", DELETE, None), ("segment.ms", SET, "2")]) == {"segment.ms": "2"}
    assert old == {"retention.ms": "1"}


def test_what_is_not_there_may_be_deleted() -> None:
    assert alter(TOPIC, START, {}, [("nope", DELETE, None)]) == {}
    assert alter(BROKER, START, {}, [("log.dirs", DELETE, None)]) == {}


@pytest.mark.parametrize(
    ("scope", "name", "operation", "value", "error"),
    [
        (TOPIC, "retention.ms", APPEND, "1", "INVALID_CONFIG"),
        (TOPIC, "retention.ms", SUBTRACT, "1", "INVALID_CONFIG"),
        (TOPIC, "retention.ms", SET, None, "INVALID_REQUEST"),
        (TOPIC, "retention.ms", 9, "1", "INVALID_REQUEST"),
        (TOPIC, "nope", SET, "1", "INVALID_CONFIG"),
        (TOPIC, "nope", APPEND, "1", "INVALID_CONFIG"),
        (CLIENT_METRICS, "metrics", APPEND, "a", "INVALID_CONFIG"),
        (CLIENT_METRICS, "nope", SET, "*", "INVALID_REQUEST"),
        (CLIENT_METRICS, "interval.ms", SET, "10", "INVALID_REQUEST"),
        (CLIENT_METRICS, "match", SET, "client_id=x,foo=2", "INVALID_CONFIG"),
        (CLIENT_METRICS, "match", SET, "client_id=(", "INVALID_CONFIG"),
        (GROUP, "nope", SET, "1", "INVALID_CONFIG"),
        (GROUP, "consumer.session.timeout.ms", SET, "500", "INVALID_CONFIG"),
        (GROUP, "consumer.heartbeat.interval.ms", SET, "60000", "INVALID_CONFIG"),
        (GROUP, "share.delivery.count.limit", SET, "100", "INVALID_CONFIG"),
        (GROUP, "streams.num.standby.replicas", SET, "3", "INVALID_CONFIG"),
        (BROKER, "log.dirs", SET, "/x", "INVALID_REQUEST"),
        (BROKER, "log.retention.hours", SET, "7", "INVALID_REQUEST"),
        (BROKER, "log.retention.ms", SET, "abc", "INVALID_REQUEST"),
        (BROKER, "ssl.keystore.type", SET, "JKS", "INVALID_REQUEST"),
        (CLUSTER, "ssl.keystore.type", SET, "JKS", "INVALID_REQUEST"),
        (CLUSTER, "listeners", SET, "PLAINTEXT://:1", "INVALID_REQUEST"),
        (CLUSTER, "listener.name.a.ssl.keystore.type", SET, "JKS", "INVALID_REQUEST"),
    ],
)
def test_a_change_is_refused_with_kafkas_error(
    scope: str, name: str, operation: int, value: str | None, error: str
) -> None:
    assert refused(scope, name, value, operation).error == error


@pytest.mark.parametrize(
    ("scope", "name", "value"),
    [
        (BROKER, "log.retention.ms", "6000000"),
        (BROKER, "listener.name.a.ssl.keystore.type", "JKS"),
        (BROKER, "leader.replication.throttled.rate", "100"),
        (BROKER, "num.io.threads", "9"),
        (BROKER, "no.such.thing", "x"),
        (CLUSTER, "message.max.bytes", "3000000"),
        (CLUSTER, "super.users", "User:x"),
        (GROUP, "share.auto.offset.reset", "by_duration:PT1H"),
        (CLIENT_METRICS, "match", "client_id=x"),
        (CLIENT_METRICS, "interval.ms", "1000"),
    ],
)
def test_a_change_is_accepted_where_kafka_accepts_it(scope: str, name: str, value: str) -> None:
    assert alter(scope, START, {}, [(name, SET, value)]) == {name: value}


def test_a_name_may_be_changed_once_in_a_request() -> None:
    with pytest.raises(SettingError, match="twice"):
        alter(TOPIC, START, {}, [("segment.ms", SET, "1"), ("segment.ms", DELETE, None)])


def test_with_eligible_leader_replicas_min_insync_belongs_to_the_cluster() -> None:
    name = "min.insync.replicas"
    assert refused(BROKER, name, "2", elr=True).error == "INVALID_CONFIG"
    assert refused(BROKER, name, None, DELETE, elr=True).error == "INVALID_CONFIG"
    kept = alter(CLUSTER, START, {name: "1"}, [(name, SET, "2")], elr=True)
    for change in (alter, settings.replace):
        with pytest.raises(SettingError, match="cannot be removed"):
            if change is alter:
                alter(CLUSTER, START, kept, [(name, DELETE, None)], elr=True)
            else:
                settings.replace(CLUSTER, START, {}, overrides=kept, elr=True)
    assert alter(BROKER, START, {}, [(name, SET, "2")]) == {name: "2"}


def test_the_older_alter_replaces_everything() -> None:
    assert settings.replace(TOPIC, START, {"segment.ms": "2"}, overrides={"retention.ms": "1"}) == {"segment.ms": "2"}
    with pytest.raises(SettingError) as caught:
        settings.replace(TOPIC, START, {"segment.ms": None})
    assert caught.value.error == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("scope", "name", "value"),
    [
        (QUOTA, "nope", 1),
        (QUOTA, "producer_byte_rate", 0),
        (QUOTA, "producer_byte_rate", 1.5),
        (IP, "request_percentage", 1),
    ],
)
def test_a_quota_must_be_known_and_positive_and_whole_where_bytes_are_counted(
    scope: str, name: str, value: float
) -> None:
    settings.validate_quota(QUOTA, "request_percentage", 0.5)
    settings.validate_quota(IP, "connection_creation_rate", 10)
    with pytest.raises(SettingError) as caught:
        settings.validate_quota(scope, name, value)
    assert caught.value.error == "INVALID_REQUEST"


def synonyms(found: settings.Entry) -> list[str]:
    return [f"{one.name}={one.value}@{one.source}" for one in found.synonyms]


def test_a_topic_setting_tells_every_layer_that_has_it() -> None:
    changed = START.with_dynamic({"log.retention.ms": "6000000"}, {"log.retention.ms": "5000000"})
    found = entry(TOPIC, "retention.ms", changed, {"retention.ms": " 77 "})
    assert (found.value, found.source, found.type) == ("77", settings.DYNAMIC_TOPIC_CONFIG, 5)
    assert synonyms(found) == [
        "retention.ms=77@1",
        "log.retention.ms=6000000@2",
        "log.retention.ms=5000000@3",
        "log.retention.hours=168@5",
    ]


def test_a_synonym_counts_only_behind_the_name_itself() -> None:
    found = entry(TOPIC, "retention.ms", Settings.load("log.retention.hours=1"))
    assert (found.value, found.source, found.synonyms) == ("3600000", settings.DEFAULT_CONFIG, ())


def test_a_topic_lists_all_settings_but_internal_ones_that_are_not_set() -> None:
    names = {found.name for found in describe(TOPIC, START)}
    assert names == set(settings.rows(TOPIC)) - {"internal.segment.bytes"}
    assert entry(TOPIC, "internal.segment.bytes", own={"internal.segment.bytes": "100"}).value == "100"


def test_a_broker_setting_tells_where_it_comes_from_and_whether_it_changes() -> None:
    start = Settings.load("broker.rack=r\nlog.cleanup.policy=compact").with_dynamic(
        {}, {"log.cleanup.policy": "delete"}
    )
    rack, policy = entry(BROKER, "broker.rack", start), entry(BROKER, "log.cleanup.policy", start)
    assert (rack.value, rack.source, rack.read_only) == ("r", settings.STATIC_BROKER_CONFIG, True)
    assert (policy.value, policy.source, policy.read_only) == ("delete", settings.DYNAMIC_DEFAULT_BROKER_CONFIG, False)
    assert synonyms(policy) == [
        "log.cleanup.policy=delete@3",
        "log.cleanup.policy=compact@4",
        "log.cleanup.policy=delete@5",
    ]


def test_a_coarser_unit_is_not_the_value_of_the_finer_one() -> None:
    start = Settings.load("log.roll.hours=2")
    assert entry(BROKER, "log.roll.hours", start).value == "2"
    assert (entry(BROKER, "log.roll.ms", start).value, entry(BROKER, "log.roll.ms", start).synonyms) == (None, ())


def test_secrets_and_unknown_names_are_hidden() -> None:
    start = Settings.load({"sasl.jaas.config": "hush", "super.users": "hush", "no.such.thing": "hush"})
    jaas, unknown = entry(BROKER, "sasl.jaas.config", start), entry(BROKER, "no.such.thing", start)
    assert (jaas.value, jaas.sensitive, synonyms(jaas)) == (None, True, ["sasl.jaas.config=None@4"])
    assert (unknown.value, unknown.sensitive, unknown.read_only, unknown.type) == (None, True, True, 0)
    assert entry(BROKER, "super.users", start).value is None
    assert not any("hush" in str(found) for found in describe(BROKER, start))


def test_the_default_of_all_brokers_lists_what_was_changed_for_all() -> None:
    changed = START.with_dynamic({"message.max.bytes": "1"}, {"message.max.bytes": "2"})
    [found] = describe(CLUSTER, changed)
    assert (found.value, found.source, synonyms(found)) == ("2", 3, ["message.max.bytes=2@3"])


def test_a_group_setting_comes_from_the_group_or_the_broker() -> None:
    own = entry(GROUP, "consumer.session.timeout.ms", own={"consumer.session.timeout.ms": "50000"})
    assert synonyms(own) == ["consumer.session.timeout.ms=50000@8", "group.consumer.session.timeout.ms=45000@5"]
    lone = entry(GROUP, "share.auto.offset.reset")
    assert synonyms(lone) == ["share.auto.offset.reset=latest@5"]


def test_client_metrics_show_their_own_settings_or_the_default() -> None:
    assert [(found.name, found.value, found.source) for found in describe(CLIENT_METRICS, START, {"metrics": "*"})] == [
        ("interval.ms", "300000", 5),
        ("match", "", 5),
        ("metrics", "*", 7),
    ]


def test_validate_knows_every_kind_of_resource() -> None:
    for scope in (TOPIC, GROUP, CLIENT_METRICS, BROKER, CLUSTER):
        validate(scope, {})
