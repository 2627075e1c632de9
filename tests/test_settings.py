"""The settings of a broker: the table, typed values, properties files, layers, warnings and listeners."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau import settings
from moldau.settings import BROKER, CLIENT, GROUP, TOPIC, Endpoint, SettingError, Settings, endpoints, rows


def value(scope: str, name: str, text: str) -> object:
    return rows(scope)[name].parse(text)


def refusal(scope: str, name: str, text: str) -> str:
    with pytest.raises(SettingError) as caught:
        value(scope, name, text)
    return str(caught.value)


def every_row() -> list[settings.Row]:
    return [row for named in settings.table().values() for row in named.values()]


def test_every_default_is_a_valid_value_written_as_kafka_writes_it() -> None:
    for row in every_row():
        if row.default is not None:
            assert settings.format_value(row.parse(row.default)) == row.default, row.name


def test_every_chain_leads_to_broker_settings() -> None:
    for row in every_row():
        if row.scope != CLIENT:  # there a chain has other names for the same
            assert {link.removeprefix("=") for link in row.chain} <= set(rows(BROKER)), row.name


def test_every_row_says_what_it_does_in_a_sentence() -> None:
    for row in every_row():
        assert row.doc[0].isupper() and row.doc.endswith("."), row.name
        assert row.importance in ("high", "medium", "low", "internal"), row.name


def test_no_name_without_effect_is_hidden_behind_a_row() -> None:
    assert not set(settings.inert_names()) & set(rows(BROKER))


@pytest.mark.parametrize(
    ("scope", "name", "text", "expected"),
    [
        (TOPIC, "retention.ms", " 77 ", 77),
        (TOPIC, "flush.messages", "+007", 7),
        (TOPIC, "preallocate", " TRUE ", True),
        (TOPIC, "min.cleanable.dirty.ratio", "1e-1", 0.1),
        (TOPIC, "min.cleanable.dirty.ratio", ".5d", 0.5),
        (TOPIC, "cleanup.policy", " compact , delete ", ("compact", "delete")),
        (TOPIC, "cleanup.policy", "compact, compact", ("compact",)),
        (TOPIC, "cleanup.policy", "", ()),
        (TOPIC, "compression.gzip.level", "-1", -1),
        (TOPIC, "leader.replication.throttled.replicas", "*", ("*",)),
        (TOPIC, "leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
        (GROUP, "share.auto.offset.reset", "by_duration:P1DT2H3M4.5S", "by_duration:P1DT2H3M4.5S"),
        (BROKER, "group.consumer.migration.policy", "Upgrade", "Upgrade"),
        (BROKER, "offsets.topic.replication.factor", "32767", 32767),
    ],
)
def test_values_are_read_by_javas_rules(scope: str, name: str, text: str, expected: object) -> None:
    assert value(scope, name, text) == expected


@pytest.mark.parametrize(
    ("scope", "name", "text", "words"),
    [
        (TOPIC, "retention.ms", "1.5", "whole number"),
        (TOPIC, "retention.ms", "", "whole number"),
        (TOPIC, "retention.ms", "1_000", "whole number"),
        (TOPIC, "retention.ms", "٣", "whole number"),
        (TOPIC, "retention.ms", "99999999999999999999", "64 bits"),
        (TOPIC, "segment.bytes", "3000000000", "32 bits"),
        (TOPIC, "segment.bytes", "1000", "at least 1048576"),
        (TOPIC, "retention.ms", "-2", "at least -1"),
        (TOPIC, "preallocate", "yes", "true or false"),
        (TOPIC, "min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
        (TOPIC, "min.cleanable.dirty.ratio", "nan", "number (double)"),
        (TOPIC, "compression.gzip.level", "0", "between 1 and 9, or -1"),
        (TOPIC, "compression.type", "GZIP", "one of uncompressed"),
        (TOPIC, "cleanup.policy", "compact,", "must not be empty"),
        (TOPIC, "cleanup.policy", "foo", "some of compact, delete"),
        (TOPIC, "leader.replication.throttled.replicas", "0:1,*", "partition:broker"),
        (GROUP, "share.auto.offset.reset", "by_duration:-PT1H", "ISO 8601"),
        (GROUP, "share.auto.offset.reset", "by_duration:P", "ISO 8601"),
        (BROKER, "log.dirs", "", "must not be empty"),
        (BROKER, "offsets.topic.replication.factor", "32768", "16 bits"),
        (BROKER, "max.connections.per.ip.overrides", "127.0.0.1", "host:number"),
    ],
)
def test_a_wrong_value_is_refused_by_name_with_what_is_allowed(scope: str, name: str, text: str, words: str) -> None:
    sentence = refusal(scope, name, text)
    assert sentence.startswith(f"{name} cannot be ") and words in sentence


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2147483647.0, "2.147483647E9"),
        (-0.0, "-0.0"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert settings.format_value(number) == text


@given(st.floats(allow_nan=False))
def test_a_written_double_is_read_back(number: float) -> None:
    row = rows(BROKER)["log.cleaner.io.max.bytes.per.second"]
    assert row.parse(settings.format_value(number) or "") == number


PROPERTIES = r"""
# a comment \
! another
a=1
  b : 2
c 3
d = four \
    fi\
    ve
e\=f\:g = \u0041\t|
h
path=C:\\temp
i==j
a=6
"""


def test_properties_are_read_as_java_reads_them() -> None:
    assert settings.properties(PROPERTIES) == {
        "a": "6",
        "b": "2",
        "c": "3",
        "d": "four five",
        "e=f:g": "A\t|",
        "h": "",
        "path": "C:\\temp",
        "i": "=j",
    }


def test_a_broken_escape_is_refused() -> None:
    with pytest.raises(SettingError, match="four hexadecimal digits"):
        settings.properties(r"a=\u00g0")


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_as_properties_is_read_back(pairs: dict[str, str]) -> None:
    assert settings.properties(settings.write_properties(pairs)) == pairs


def test_a_file_is_utf8_or_latin1(tmp_path: Path) -> None:
    for encoding in ("utf-8", "latin-1"):
        (tmp_path / encoding).write_text("broker.rack=Žižkov" if encoding == "utf-8" else "broker.rack=Köln", encoding)
    assert settings.read_properties(str(tmp_path / "utf-8")) == {"broker.rack": "Žižkov"}
    assert settings.read_properties(str(tmp_path / "latin-1")) == {"broker.rack": "Köln"}


@pytest.mark.parametrize("text", ["num.partitions", "=3", ""])
def test_an_argument_must_be_key_equals_value(text: str) -> None:
    with pytest.raises(SettingError, match="key=value"):
        Settings.load("", [text])


def test_overrides_win_over_the_file() -> None:
    loaded = Settings.load("num.partitions=2\nbroker.rack=a", ["num.partitions = 5", "broker.rack=x=y"])
    assert (loaded["num.partitions"], loaded["broker.rack"]) == (5, "x=y")


def test_without_anything_the_broker_listens_on_loopback_and_keeps_its_data_here() -> None:
    loaded = Settings.load()
    assert loaded["listeners"] == loaded["advertised.listeners"] == ("PLAINTEXT://127.0.0.1:9092",)
    assert loaded["log.dirs"] == ("./moldau-data",)
    assert loaded["node.id"] == loaded["broker.id"] == 1
    assert loaded["offsets.topic.replication.factor"] == 1
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("", 168 * 3_600_000),
        ("log.retention.hours=2", 7_200_000),
        ("log.retention.hours=2\nlog.retention.minutes=3", 180_000),
        ("log.retention.hours=2\nlog.retention.minutes=3\nlog.retention.ms=4", 4),
        ("log.retention.hours=-1", -1),
    ],
)
def test_the_finer_unit_wins(text: str, milliseconds: int) -> None:
    loaded = Settings.load(text)
    assert loaded["log.retention.ms"] == milliseconds
    assert settings.topic_settings(loaded, {})["retention.ms"] == milliseconds


def test_a_change_for_one_broker_wins_over_one_for_all_and_that_over_the_start() -> None:
    start = Settings.load("log.retention.hours=1\nmessage.max.bytes=10")
    changed = start.with_dynamic({"log.retention.ms": "5"}, {"log.retention.ms": "6", "message.max.bytes": "11"})
    assert (changed["log.retention.ms"], changed["message.max.bytes"]) == (5, 11)
    assert start["message.max.bytes"] == 10


def test_a_listener_has_its_own_settings() -> None:
    loaded = Settings.load(
        {
            "ssl.client.auth": "none",
            "listener.name.secure.ssl.client.auth": "required",
            "listener.name.secure.scram-sha-512.sasl.jaas.config": "secret",
        }
    )
    assert loaded.warnings == ()
    assert loaded.listener("SECURE", "ssl.client.auth") == "required"
    assert loaded.listener("OTHER", "ssl.client.auth") == "none"
    assert loaded.listener("SECURE", "sasl.jaas.config", "SCRAM-SHA-512") == "secret"


def test_unknown_and_useless_settings_are_warnings_that_name_them() -> None:
    loaded = Settings.load("zookeeper.connect=x\nnum.io.threads=4\nno.such.thing=1\nremote.log.reader.threads=3")
    assert loaded.warnings == (
        "Setting zookeeper.connect has no effect in Moldau.",
        "Setting num.io.threads has no effect in Moldau.",
        "Setting no.such.thing is unknown and ignored.",
        "Setting remote.log.reader.threads has no effect in Moldau.",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("node.id=1\nbroker.id=2", "broker.id cannot be '2': it must be the same as node.id"),
        ("log.retention.ms=0", "log.retention.ms cannot be '0'"),
        ("log.roll.ms=0", "log.roll.ms cannot be '0'"),
        ("num.partitions=0", "num.partitions cannot be '0': it must be at least 1"),
        ("queued.max.request.bytes=5", "at least socket.request.max.bytes"),
        ("max.connections.per.ip=0", "max.connections.per.ip.overrides"),
        ("connections.max.idle.ms=50", "connection.failed.authentication.delay.ms"),
        ("replica.fetch.wait.max.ms=40000", "at most replica.socket.timeout.ms"),
        ("group.consumer.session.timeout.ms=70000", "at most group.consumer.max.session.timeout.ms"),
        ("group.share.min.record.lock.duration.ms=30000\ngroup.share.record.lock.duration.ms=20000", "record.lock"),
        ("group.streams.num.standby.replicas=3", "at most group.streams.max.standby.replicas"),
        ("listener.name.a.ssl.client.auth=perhaps", "required"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(text: str, words: str) -> None:
    with pytest.raises(SettingError) as caught:
        Settings.load(text)
    assert words in str(caught.value)


def test_listeners_have_a_name_a_protocol_a_host_and_a_port() -> None:
    loaded = Settings.load(
        {
            "listeners": "PLAINTEXT://:9092,inside://[::1]:0,CONTROLLER://127.0.0.1:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
        }
    )
    assert endpoints(loaded) == [
        Endpoint("PLAINTEXT", "PLAINTEXT", "", 9092),
        Endpoint("INSIDE", "SASL_PLAINTEXT", "::1", 0),
    ]


@pytest.mark.parametrize(
    "text", ["localhost:9092", "PLAINTEXT://a:99999", "PLAINTEXT://a", "OTHER://a:1", "PLAINTEXT://::1:9"]
)
def test_a_listener_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="listeners cannot be"):
        endpoints(Settings.load({"listeners": text}))


CLUSTERED = "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER"


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        ("", 1),
        ("listeners=PLAINTEXT://:9092", 1),
        (CLUSTERED, 3),
        ("process.roles=broker", 3),
        (f"{CLUSTERED}\noffsets.topic.replication.factor=2", 2),
    ],
)
def test_internal_topics_have_kafkas_defaults_unless_the_node_is_alone(text: str, factor: int) -> None:
    given = Settings.load(text)
    name = "offsets.topic.replication.factor"
    assert given[name] == factor
    (entry,) = settings.describe(BROKER, given, names=[name])
    assert entry.value == str(factor)
