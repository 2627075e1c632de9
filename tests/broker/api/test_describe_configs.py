"""DescribeConfigs: values, sources and synonyms of each kind of resource."""

import pytest

from moldau import settings as table
from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error


def ask(world, *resources, synonyms=True, documentation=False, version=4):
    rows = [m.DescribeConfigsRequest_DescribeConfigsResource(*resource) for resource in resources]
    return world.call(m.DescribeConfigsRequest(rows, synonyms, documentation), version).results


def describe(world, kind, name, *names, **options):
    """The settings of one resource by name."""
    (result,) = ask(world, (kind, name, list(names) or None), **options)
    assert (result.error_code, result.error_message) == (0, ""), result
    assert (result.resource_type, result.resource_name) == (kind, name)
    return {row.name: row for row in result.configs}


def synonyms_of(row):
    return [(one.name, one.value, one.source) for one in row.synonyms]


def store(world, kind, name, **values):
    records = [m.ConfigRecord(kind, name, key.replace("_", "."), value) for key, value in values.items()]
    world.change(*records)


def test_a_topic_shows_its_own_settings_and_where_the_others_come_from(make_world):
    world = make_world(log_segment_bytes="2000000")
    world.create("t", retention_ms=" 5000 ", cleanup_policy="compact, delete")
    rows = describe(world, TOPIC, "t")
    assert {name for name in table.rows(TOPIC_SCOPE) if not table.rows(TOPIC_SCOPE)[name].internal} == set(rows)
    assert (rows["retention.ms"].value, rows["retention.ms"].config_source) == ("5000", 1)
    assert synonyms_of(rows["cleanup.policy"]) == [
        ("cleanup.policy", "compact,delete", 1),
        ("log.cleanup.policy", "delete", 5),
    ]
    assert (rows["segment.bytes"].value, rows["segment.bytes"].config_source) == ("2000000", 4)
    assert (rows["flush.messages"].value, rows["flush.messages"].config_source) == (str(2**63 - 1), 5)
    assert not any(row.read_only or row.is_sensitive for row in rows.values())


TOPIC_SCOPE = table.TOPIC


def test_only_named_settings_are_told_and_unknown_names_left_out(world):
    world.create("t")
    assert list(describe(world, TOPIC, "t", "retention.ms", "unknown")) == ["retention.ms"]
    assert describe(world, TOPIC, "t", "unknown") == {}
    (everything,) = ask(world, (TOPIC, "t", []))
    assert len(everything.configs) == len(describe(world, TOPIC, "t"))


def test_synonyms_types_and_documentation_are_told_if_asked_for(world):
    world.create("t")
    row = describe(world, TOPIC, "t", "compression.type", synonyms=False, documentation=True)["compression.type"]
    assert (row.synonyms, row.config_type) == ([], 2)
    assert row.documentation
    row = describe(world, TOPIC, "t", "compression.type")["compression.type"]
    assert (synonyms_of(row), row.documentation) == ([("compression.type", "producer", 5)], None)
    assert describe(world, TOPIC, "t", "compression.type", version=1)["compression.type"].config_type == 0


def test_a_broker_shows_its_layers(make_world):
    world = make_world(num_partitions="3")
    store(world, BROKER, "1", log_retention_ms="1000")
    store(world, BROKER, "", log_retention_ms="2000")
    rows = describe(world, BROKER, "1")
    assert (rows["num.partitions"].value, rows["num.partitions"].read_only) == ("3", True)
    assert synonyms_of(rows["num.partitions"]) == [("num.partitions", "3", 4), ("num.partitions", "1", 5)]
    row = rows["log.retention.ms"]
    assert (row.value, row.config_source, row.read_only) == ("1000", 2, False)
    assert synonyms_of(row)[:2] == [("log.retention.ms", "1000", 2), ("log.retention.ms", "2000", 3)]
    everywhere = describe(world, BROKER, "", "log.retention.ms")["log.retention.ms"]
    assert (everywhere.value, everywhere.config_source) == ("2000", 3)
    assert synonyms_of(everywhere) == [("log.retention.ms", "2000", 3)]
    world.create("t")
    assert describe(world, TOPIC, "t", "retention.ms")["retention.ms"].config_source == 2


def test_secrets_are_not_told(world):
    store(world, BROKER, "1", listener_name_plaintext_ssl_keystore_password="secret", unknown_to_everybody="secret")
    rows = describe(world, BROKER, "1")
    for name in ("listener.name.plaintext.ssl.keystore.password", "unknown.to.everybody"):
        assert (rows[name].value, rows[name].is_sensitive) == (None, True)
        assert synonyms_of(rows[name])[0] == (name, None, 2)


def test_loggers_show_their_levels(world):
    rows = describe(world, BROKER_LOGGER, "1")
    assert "root" in rows
    assert {row.config_source for row in rows.values()} == {6}
    assert {row.value for row in rows.values()} <= {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
    assert list(describe(world, BROKER_LOGGER, "1", "root")) == ["root"]


def test_groups_and_client_metrics_have_settings_before_they_exist(world):
    group = describe(world, GROUP, "g")["consumer.session.timeout.ms"]
    assert (group.value, group.config_source) == ("45000", 5)
    assert synonyms_of(group) == [("group.consumer.session.timeout.ms", "45000", 5)]
    store(world, GROUP, "g", consumer_session_timeout_ms="50000")
    assert describe(world, GROUP, "g")["consumer.session.timeout.ms"].config_source == 8
    store(world, CLIENT_METRICS, "m", interval_ms="1000")
    metrics = describe(world, CLIENT_METRICS, "m")
    assert {name: (row.value, row.config_source) for name, row in metrics.items()} == {
        "interval.ms": ("1000", 7),
        "match": ("", 5),
        "metrics": ("", 5),
    }


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "unknown", Error.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", Error.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", Error.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", Error.INVALID_REQUEST),
        (BROKER, "x", Error.INVALID_REQUEST),
        (BROKER, " 1", Error.INVALID_REQUEST),
        (BROKER_LOGGER, "", Error.INVALID_REQUEST),
        (BROKER_LOGGER, "2", Error.INVALID_REQUEST),
        (CLIENT_METRICS, "", Error.INVALID_REQUEST),
        (GROUP, "", Error.INVALID_REQUEST),
    ],
)
def test_what_is_not_there_is_refused_by_itself(world, kind, name, error):
    refused, good = ask(world, (kind, name, None), (GROUP, "g", None))
    assert (refused.error_code, refused.configs, good.error_code) == (error, [], 0)


@pytest.mark.parametrize("kind", [-1, 0, 1, 3, 64])
def test_an_unknown_resource_type_fails_the_whole_request(world, kind):
    assert [row.error_code for row in ask(world, (GROUP, "g", None), (kind, "x", None))] == [Error.INVALID_REQUEST] * 2


def test_a_resource_may_be_asked_for_twice(world):
    assert len(ask(world, (GROUP, "g", None), (GROUP, "g", None))) == 2
    assert ask(world) == []
