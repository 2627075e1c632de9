"""The table of settings against Apache Kafka itself: its definitions, its parser, and Java's reader of properties."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau import settings
from moldau.settings import BROKER, CLIENT_METRICS, GROUP, IP, QUOTA, TOPIC, Row, SettingError, entries, rows

pytestmark = pytest.mark.needs("java", "javac")

SCOPES = (TOPIC, BROKER, GROUP, CLIENT_METRICS, QUOTA, IP)
# Rows that Kafka keeps outside its definitions, and our own.
ELSEWHERE = {
    "moldau.audit.file",
    "moldau.authentication.max.connections",
    "moldau.authentication.timeout.ms",
    "moldau.delegation.token.implicit",
    "moldau.group.max.count",
    "moldau.quick.fencing",
    "moldau.request.max.elements",
    "moldau.sasl.oauthbearer.allowed.urls",
    "moldau.sasl.oauthbearer.unsecured",
    "moldau.telemetry",
    "allow.everyone.if.no.acl.found",
    "super.users",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
}
# Stricter here: Kafka checks limits and codecs when the broker starts, and takes a lone comma for replicas.
STRICTER = {
    "max.connections.per.ip.overrides",
    "offsets.topic.compression.codec",
    "share.coordinator.state.topic.compression.codec",
}
COMMA = {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
TRIED = ["", " ", "0", "-1", "+1", "1", "007", "1.5", "1e3", "1_0", "NaN", "-Infinity", "2147483647", "2147483648"]
TRIED += ["32768", "9223372036854775808", "true", "TRUE", " false ", "yes", "a", "a,b", "a,,b", ",", "a, a", "*"]
TRIED += ["0:1", "0:1,2:3", "compact", "compact,delete", "delete, delete", "gzip", "GZIP", "LogAppendTime", "earliest"]
TRIED += ["1@a:9093", "1@a:9093,2@[::1]:9093", "a:9092", "a:b", "[::1]:9092,a:1"]
TRIED += ["by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:-PT1H", "by_duration:P", "broker", "streams"]

PROGRAM = """
import java.io.*; import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.*;

public class Facts {
    static Map<String, ConfigDef> definitions = new LinkedHashMap<>();

    static String text(Object value, ConfigDef.Type type) {
        boolean none = value == ConfigDef.NO_DEFAULT_VALUE || value == null;
        return none ? "null" : "=" + ConfigDef.convertToString(value, type);
    }

    static String parsed(String scope, String name, String value) {
        ConfigDef.ConfigKey key = definitions.get(scope).configKeys().get(name);
        try {
            ConfigDef one = new ConfigDef().define(key);
            return text(one.parse(Map.of(name, value)).get(name), key.type);
        } catch (Exception e) { return "refused"; }
    }

    static String properties(String hex) {
        try {
            Properties read = new Properties();
            read.load(new StringReader(new String(HexFormat.of().parseHex(hex), "UTF-8")));
            TreeMap<String, String> sorted = new TreeMap<>();
            for (String name : read.stringPropertyNames()) sorted.put(hex(name), hex(read.getProperty(name)));
            return sorted.toString();
        } catch (Exception e) { return "refused"; }
    }

    static String hex(String text) throws Exception { return HexFormat.of().formatHex(text.getBytes("UTF-16BE")); }

    static void say(Object... words) {
        StringJoiner line = new StringJoiner("\\t");
        for (Object word : words) line.add(String.valueOf(word));
        System.out.println(line);
    }

    public static void main(String[] arguments) throws Exception {
        definitions.put("topic", org.apache.kafka.storage.internals.log.LogConfig.configDefCopy());
        definitions.put("broker", AbstractKafkaConfig.CONFIG_DEF);
        definitions.put("group", org.apache.kafka.coordinator.group.GroupConfig.CONFIG_DEF);
        definitions.put("client-metrics", org.apache.kafka.server.metrics.ClientMetricsConfigs.configDef());
        definitions.put("quota", QuotaConfig.userAndClientQuotaConfigs());
        definitions.put("ip", QuotaConfig.ipConfigs());
        definitions.forEach((scope, definition) -> definition.configKeys().values().forEach(key -> {
            String importance = key.internalConfig ? "internal" : key.importance.name().toLowerCase();
            say("key", scope, key.name, key.type.name().toLowerCase(), importance, text(key.defaultValue, key.type));
        }));
        DynamicBrokerConfig.dynamicConfigUpdateModes().forEach((name, mode) -> say("mode", name, mode));
        DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS.forEach(name -> say("security", name));
        ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.forEach((name, broker) -> say("synonym", name, broker));
        org.apache.kafka.coordinator.group.GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach(
            (name, broker) -> broker.ifPresent(there -> say("synonym", name, there)));
        for (var source : org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource.values())
            say("source", source, source.id());
        for (var type : org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType.values())
            say("type", type.name().toLowerCase(), type.id());
        for (var line : new BufferedReader(new InputStreamReader(System.in, "UTF-8")).lines().toList()) {
            String[] words = line.split("\\t", -1);
            if (words[0].equals("properties")) say("properties", words[1], properties(words[1]));
            else say("parsed", words[1], words[2], words[3], parsed(words[1], words[2], words[3]));
        }
    }
}
"""


def tries(row: Row) -> list[str]:
    """Values that every parser must agree on: the usual suspects, and both sides of the row's limits."""
    low, _, high = row.valid.partition("|")[0].partition("..")
    edges = [int(float(edge)) for edge in (low, high) if edge.removeprefix("-").replace(".", "").isdigit()]
    near = [str(edge + step) for edge in edges for step in (-1, 0, 1)]
    words = row.valid[1:].partition("}")[0].split(",") if row.valid[0] == "{" else []
    return [*TRIED, *near, *words, *(word.upper() for word in words)]


def asked() -> list[tuple[str, str, str]]:
    every = [row for scope in SCOPES for row in rows(scope).values()]
    return [(row.scope, row.name, text) for row in every if row.name not in ELSEWHERE for text in tries(row)]


def texts() -> list[str]:
    """Properties texts made of all that is special in them."""
    dice = random.Random(7)
    pieces = [
        "a",
        "b.c",
        "=",
        ":",
        " ",
        "\t",
        "\f",
        "\\",
        "\n",
        "\r",
        "\r\n",
        "#",
        "!",
        "\\u0041",
        "\\\n",
        "é",
        "1",
        "\\=",
    ]
    return ["".join(dice.choices(pieces, k=dice.randrange(1, 25))) for _ in range(2000)]


@pytest.fixture(scope="module")
def facts(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[str]]]:
    """What the program says, by the first word of a line."""
    program = tmp_path_factory.mktemp("facts") / "Facts.java"
    program.write_text(PROGRAM)
    questions = [f"parse\t{scope}\t{name}\t{text}" for scope, name, text in asked()]
    questions += [f"properties\t{text.encode().hex()}" for text in texts()]
    command = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", f"{kafka_libs}/*", str(program)]
    done = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, list[list[str]]] = {}
    for line in done.stdout.splitlines():
        kind, *words = line.split("\t")
        said.setdefault(kind, []).append(words)
    return said


def ours(scope: str) -> Iterator[Row]:
    return (row for row in rows(scope).values() if row.name not in ELSEWHERE)


def test_names_types_importances_and_defaults_are_kafkas(facts: dict[str, list[list[str]]]) -> None:
    theirs = {(scope, name): tuple(rest) for scope, name, *rest in facts["key"]}
    for scope in SCOPES:
        for row in ours(scope):
            default = "null" if row.kafka_default is None else f"={row.kafka_default}"
            assert (row.type, row.importance, default) == theirs.pop((scope, row.name)), row.name
    left = [name for scope, name in theirs if scope != BROKER or not settings.is_inert(name)]
    assert not left, f"neither in the table nor without effect: {left}"


def test_what_changes_while_a_broker_runs_is_what_changes_in_kafka(facts: dict[str, list[list[str]]]) -> None:
    security = {name for (name,) in facts["security"]}
    modes = {name: "per-listener" if name in security else mode for name, mode in facts["mode"]}
    for row in rows(BROKER).values():
        if row.mode not in ("dynamic", "unlisted"):
            assert row.mode == modes.get(row.name, "read-only"), row.name


def test_topics_and_groups_take_the_same_broker_settings_as_in_kafka(facts: dict[str, list[list[str]]]) -> None:
    mine = {row.name: row.chain[0] for scope in (TOPIC, GROUP) for row in rows(scope).values() if row.chain}
    assert mine == dict(map(tuple, facts["synonym"]))


def test_sources_and_types_have_kafkas_numbers(facts: dict[str, list[list[str]]]) -> None:
    names = {"TOPIC_CONFIG": "DYNAMIC_TOPIC_CONFIG"}
    for name, number in facts["source"][1:]:
        assert getattr(entries, names.get(name, name)) == int(number)
    assert {name: str(code) for name, code in settings.TYPE_CODES.items()} == dict(map(tuple, facts["type"]))


def test_every_value_is_read_or_refused_as_in_kafka(facts: dict[str, list[list[str]]]) -> None:
    wrong = []
    for scope, name, text, theirs in facts["parsed"]:
        row = rows(scope)[name]
        if row.name in STRICTER or row.type in ("class", "password"):  # Kafka loads the class, and shows no password
            continue
        try:
            mine = f"={settings.format_value(row.parse(text))}"
        except SettingError:
            mine = "refused"
        if mine != theirs and not (text == "," and name in COMMA):
            wrong.append((name, text, mine, theirs))
    assert not wrong, json.dumps(wrong[:20], indent=1)


def test_properties_are_read_as_in_java(facts: dict[str, list[list[str]]]) -> None:
    for text, (_, theirs) in zip(texts(), facts["properties"], strict=True):
        assert shown(text) == theirs, repr(text)


def shown(text: str) -> str:
    """Our reading in the words of the program."""

    def hexed(word: Any) -> str:
        return word.encode("utf-16-be").hex()

    try:
        pairs = settings.properties(text)
    except SettingError:
        return "refused"
    ordered = sorted((hexed(name), hexed(value)) for name, value in pairs.items())
    return "{" + ", ".join(f"{name}={value}" for name, value in ordered) + "}"
