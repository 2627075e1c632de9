"""`moldau topic` on a real broker."""

from __future__ import annotations

import json

import yaml

from tests.cli.running import Moldau


def test_a_topic_from_its_making_to_its_end(moldau: Moldau) -> None:
    assert moldau("topic", "create", "life", "-p", "3", "-c", "retention.ms=1000") == (
        "Topic life created: 3 partitions, 1 replicas.\n"
    )
    [row] = moldau.json("topic", "list", "life")
    assert (row["name"], row["partitions"], row["replicas"]) == ("life", 3, 1)
    moldau("topic", "alter", "life", "--set", "retention.ms=2000", "--set", "segment.bytes=1048576")
    [found] = moldau.json("topic", "describe", "life")
    assert {one["name"]: one["value"] for one in found["configs"]} == {
        "retention.ms": "2000",
        "segment.bytes": "1048576",
    }
    moldau("topic", "alter", "life", "--unset", "segment.bytes")
    assert "12 partitions, 9 more" in moldau("topic", "add-partitions", "life", "--total", "12")
    assert "13 partitions, 1 more" in moldau("topic", "add-partitions", "life", "--more", "1")
    described = moldau("topic", "describe", "life")
    assert "retention.ms" in described and "segment.bytes" not in described
    assert moldau("topic", "delete", "life") == "Deleted life.\n"
    assert moldau.json("topic", "list", "life") == []


def test_dry_runs_change_nothing(moldau: Moldau) -> None:
    assert "could be created" in moldau("topic", "create", "never", "--dry-run")
    assert moldau.json("topic", "list", "never") == []
    name = moldau.topic()
    assert "could be" in moldau("topic", "alter", name, "--set", "retention.ms=5", "--dry-run")
    assert moldau.json("topic", "describe", name)[0]["configs"] == []


def test_sizes_and_records_are_counted(moldau: Moldau) -> None:
    name = moldau.topic(2)
    moldau.write(name, *map(str, range(20)), options=("-k", "x"))
    [row] = moldau.json("topic", "list", name, "--sizes")
    assert row["records"] == 20 and row["size"] > 60
    assert yaml.safe_load(moldau("topic", "list", name, "-o", "yaml"))[0]["name"] == name


def test_records_are_trimmed_by_offset_time_and_altogether(moldau: Moldau) -> None:
    name = moldau.topic()
    moldau.write(name, *"abcdef")
    planned = moldau.json("topic", "trim", name, "--offset", "2", "--dry-run")
    assert planned == [{"topic": name, "partition": 0, "start": 0, "new_start": 2, "deleted": 2}]
    assert moldau.read(name) == [*"abcdef"]
    moldau("topic", "trim", name, "--offset", "2")
    assert moldau.read(name) == [*"cdef"]
    assert moldau.json("topic", "trim", name, "--before", "-7d")[0]["deleted"] == 0
    moldau("topic", "trim", name, "--all")
    assert moldau.read(name) == []


def test_an_analysis_knows_keys_and_what_compaction_leaves(moldau: Moldau) -> None:
    name = moldau.topic()
    moldau.write(name, "a:1", "b:2", "a:3", "c:", options=("-K", ":", "--null"))
    facts = moldau.json("topic", "analyze", name)
    assert (facts["records"], facts["distinct_keys"], facts["tombstones"]) == (4, 3, 1)
    assert facts["compaction_keeps"] == 0.75 and facts["compression"] == {"none": 1}
    assert moldau.json("topic", "analyze", name, "--last", "1")["records"] == 1
    assert "compaction would keep" in moldau("topic", "analyze", name)
    assert moldau.json("topic", "analyze", moldau.topic())["average_record"] is None


def test_mistakes_get_a_sentence_and_a_code(moldau: Moldau) -> None:
    name = moldau.topic()
    for words, code, sentence in (
        (("describe", "nobody"), 1, "There is no topic nobody. `moldau topic list`"),
        (("create", name), 1, "already exists"),
        (("create", "bad/name"), 1, "bad/name"),
        (("create", "x", "-c", "retention.ms=soon"), 1, "retention.ms"),
        (("alter", name), 2, "--set"),
        (("trim", name), 2, "--offset, --before and --all"),
        (("trim", name, "--offset", "0", "-p", "7"), 1, "has no partition 7: they go from 0 to 0"),
        (("add-partitions", name, "--total", "1"), 1, "partitions"),
        (("delete", "nobody"), 1, "nobody"),
        (("list", "-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=300"), 1, "`moldau up` starts one"),
        (("list", "-X", "no.such.setting=1"), 2, "no.such.setting"),
        (("list", "-X", "novalue"), 2, "NAME=VALUE"),
    ):
        done = moldau.run("topic", *words)
        assert done.code == code, (words, done)
        assert sentence in done.err and done.err.startswith("moldau topic "), done.err
        assert "Traceback" not in done.err and not done.out
    assert moldau("topic", "create", name, "--if-not-exists") == "\n"
    assert moldau("topic", "delete", "nobody", "--if-exists") == "Nothing to delete.\n"


def test_names_cannot_steer_the_terminal(moldau: Moldau) -> None:
    name = moldau.topic()
    moldau.write(name, "x", options=("-k", "k"))
    group = "evil\x1b[2J"
    moldau.read(name, options=("--group", group))
    assert "\x1b" not in moldau("group", "list")
    assert json.loads(moldau("group", "list", "-o", "json"))
