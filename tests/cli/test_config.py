"""`moldau config` on a real broker."""

from __future__ import annotations

from tests.cli.running import Moldau


def shown(moldau: Moldau, *words: str) -> dict[str, str]:
    """Without what a topic has from the whole cluster."""
    rows = moldau.json("config", "show", *words)
    return {row["name"]: row["value"] for row in rows if words[0] != "topic" or "broker" not in row["source"]}


def test_settings_of_a_topic_are_set_appended_and_taken_back(moldau: Moldau) -> None:
    topic = moldau.topic()
    moldau("config", "set", "topic", topic, "retention.ms=5000", "cleanup.policy=compact")
    assert shown(moldau, "topic", topic) == {"retention.ms": "5000", "cleanup.policy": "compact"}
    moldau("config", "set", "topic", topic, "cleanup.policy=delete", "--append")
    assert shown(moldau, "topic", topic, "cleanup.*") == {"cleanup.policy": "compact,delete"}
    moldau("config", "set", "topic", topic, "cleanup.policy=compact", "--subtract")
    assert "could be changed" in moldau("config", "set", "topic", topic, "retention.ms=7", "--dry-run")
    assert shown(moldau, "topic", topic) == {"retention.ms": "5000", "cleanup.policy": "delete"}
    moldau("config", "unset", "topic", topic, "retention.ms", "cleanup.policy")
    assert shown(moldau, "topic", topic) == {}
    assert len(shown(moldau, "topic", topic, "--all")) > 20


def test_a_value_tells_where_it_comes_from(moldau: Moldau) -> None:
    topic = moldau.topic(1, "retention.ms=5000")
    [row] = moldau.json("config", "show", "topic", topic, "retention.ms", "--why")
    assert row["source"] == "dynamic_topic_config" and row["from"][0] == "retention.ms=5000 (dynamic_topic_config)"
    assert row["documentation"]


def test_settings_of_brokers_and_groups(moldau: Moldau) -> None:
    number = str(moldau.json("cluster", "brokers")[0]["id"])
    assert "log.dirs" in shown(moldau, "broker", number, "--all")
    moldau("config", "set", "broker", "all", "log.cleaner.threads=2")
    assert shown(moldau, "broker", "all")["log.cleaner.threads"] == "2"
    moldau("config", "unset", "broker", "all", "log.cleaner.threads")
    moldau("config", "set", "group", "some", "consumer.session.timeout.ms=50000")
    assert {"kind": "group", "name": "some"} in moldau.json("config", "list", "--kind", "group")


def test_mistakes_get_a_sentence(moldau: Moldau) -> None:
    topic = moldau.topic()
    for words, code, sentence in (
        (("show", "topic", "nobody"), 1, "nobody"),
        (("show", "broker", "first"), 2, "number"),
        (("set", "topic", topic, "retention.ms=soon"), 1, "retention.ms"),
        (("set", "topic", topic, "no.such.thing=1"), 1, "no.such.thing"),
        (("set", "topic", topic, "retention.ms=1", "--append", "--subtract"), 2, "not both"),
        (("set", "topic", topic, "novalue"), 2, "NAME=VALUE"),
        (("show", "thing", "x"), 2, "topic"),
    ):
        done = moldau.run("config", *words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
