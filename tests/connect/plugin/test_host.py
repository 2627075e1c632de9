"""Plugins of jars in the host: what they say of themselves, their tasks, and what they do badly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from moldau.client.librdkafka import GroupMember
from moldau.connect import data as d
from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.errors import ConnectError, RetriableError
from moldau.connect.handling import trace_of
from moldau.connect.jvm.link import JavaError
from moldau.connect.jvm.parts import Part
from moldau.connect.jvm.tasks import JavaSink, JavaSource
from tests.connect.judge.inputs import random_struct
from tests.connect.plugin.conftest import BACKWARDS, KEEPER, LONG_KEY, NUMBERS, SUFFIX, Java

pytestmark = pytest.mark.needs("java", "sample-plugin")
PATIENCE_S = 120.0


def source(
    java: Java, config: Mapping[str, str], offset: Any = None, *, stopped: bool = False, **more: Any
) -> JavaSource:
    context = SourceContext({"topic": "t", **config}, lambda _: offset, lambda _: stopped, **more)
    made = java.connector(NUMBERS).open(context)
    assert isinstance(made, JavaSource)
    return made


def polled(task: JavaSource, count: int) -> list[d.Record]:
    found: list[d.Record] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        found += task.poll()
        assert time.monotonic() < deadline
    return found


def until(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_jar_says_what_is_in_it(java: Java) -> None:
    assert {name: (one.kind, one.version) for name, one in java.entries.items()} == {
        NUMBERS: ("source", "1.2.3"),
        KEEPER: ("sink", "4.5.6"),
        SUFFIX: ("transformation", "7"),
        LONG_KEY: ("predicate", "undefined"),
        BACKWARDS: ("converter", "undefined"),
    }


def test_records_keep_their_schemas_values_and_headers(java: Java) -> None:
    task = source(java, {})
    try:
        first = polled(task, 3)[0]
    finally:
        task.close()
    schema = first.value_schema
    assert schema is not None
    assert (schema.name, schema.version, schema.doc) == ("sample.Value", 2, "of a test")
    assert schema.by_name["raw"].schema.default == b"\1\2"
    assert schema.by_name["at"].schema == d.TIMESTAMP_SCHEMA
    d.validate(schema, first.value)
    values = {place.name: value for place, value in first.value}
    inner = values.pop("inner")
    assert inner["x"] == 1
    exact = values.pop("exact")
    assert str(exact) == "1.25"
    assert values == {
        "n": 1,
        "small": 1,
        "half": 0.5,
        "at": 86_400_000,
        "words": ["a", "ž"],
        "counts": {"k": 7},
        "raw": b"\1",
    }
    assert (first.key_schema, first.key, first.timestamp) == (d.STRING, "k1", 1001)
    assert [(one.name, one.schema, one.value) for one in first.headers] == [
        ("number", d.INT32, 1),
        ("text", d.STRING, "t1"),
    ]
    assert (first.source_partition, first.source_offset) == ({"task": "0"}, {"n": 1})


def test_a_source_goes_on_where_it_was_and_hears_of_commits(java: Java, journal: Path) -> None:
    task = source(java, {"log": str(journal), "count": "4"}, {"n": 2})
    assert [one.key for one in polled(task, 2)] == ["k3", "k4"]
    task.committed()
    task.close()
    assert journal.read_text().split("\n")[:-1] == ["start at 3", "record 3", "record 4", "commit", "stop"]


def test_a_source_draws_its_own_transactions(java: Java) -> None:
    task = source(java, {"count": "6"}, draws_boundaries=True)
    try:
        batches = []
        while len(batches) < 3:
            if records := task.poll():
                batches.append(([one.key for one in records], dict(task.boundaries)))
    finally:
        task.close()
    # the third record ends a transaction that is thrown away, the commit is asked for the batch
    assert batches == [(["k1", "k2"], {}), (["k3", "k4"], {0: False}), (["k5", "k6"], {1: True})]


def test_a_failure_has_javas_own_trace(java: Java) -> None:
    task = source(java, {"act": "fail", "count": "0"})
    with pytest.raises(JavaError, match="broken on purpose") as caught:
        polled(task, 1)
    task.close()
    trace = trace_of(caught.value)
    assert trace.startswith("java.lang.IllegalStateException: broken on purpose\n\tat sample.Sample$NumbersTask")
    assert "Caused by: java.io.IOException: deep inside" in trace


def test_a_plugin_that_exits_fails_alone(java: Java) -> None:
    good, bad = source(java, {"count": "1"}), source(java, {"act": "exit", "count": "0"})
    with pytest.raises(JavaError, match=r"System.exit\(3\)") as caught:
        polled(bad, 1)
    assert "at sample.Sample$NumbersTask.act" in caught.value.java_trace
    bad.close()
    assert polled(good, 1)[0].key == "k1"
    good.close()


def test_a_value_that_connect_does_not_have_is_refused(java: Java) -> None:
    task = source(java, {"act": "strange", "count": "1"})
    assert polled(task, 1)[0].key == "k1"
    with pytest.raises(JavaError, match=r"Values of java.lang.Thread are not among those of Connect"):
        polled(task, 1)
    task.close()


def test_a_poll_that_never_returns_is_cancelled(java: Java, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.connect.jvm.tasks.STOP_S", 0.05)
    task = source(java, {"act": "hang", "count": "0", "log": str(journal)})
    until(lambda: not task.poll() and "hangs" in journal.read_text())
    task.close()
    until(lambda: "stop\n" in journal.read_text() and "interrupted\n" in journal.read_text())


# Sinks.


class Sinking:
    """A sink's task, and what it has asked for."""

    def __init__(self, java: Java, journal: Path, *, tolerates: bool = True) -> None:
        self.asked: list[Any] = []
        self.tolerates, self.journal = tolerates, journal
        note = self.asked.append
        context = SinkContext(
            {"log": str(journal)},
            self._report,
            lambda _: False,
            seek=lambda offsets: note(("seek", dict(offsets))),
            pause=lambda places: note(("pause", list(places))),
            request_commit=lambda: note("commit"),
            retry_after=lambda seconds: note(("retry", seconds)),
            member=lambda: GroupMember("connect-it", 3, "member-1", None),
            committed=lambda places: dict.fromkeys(places, 5),
        )
        made = java.connector(KEEPER).open(context)
        assert isinstance(made, JavaSink)
        self.task = made

    def _report(self, record: d.Record, error: Exception) -> None:
        self.asked.append((record.original_topic, record.original_partition, record.original_offset, str(error)))
        if not self.tolerates:
            raise ConnectError("Tolerance exceeded in error handler")

    def put(self, *values: str) -> None:
        self.task.put([d.Record("t", 0, None, None, d.STRING, one, offset=at) for at, one in enumerate(values)])

    def lines(self) -> list[str]:
        return self.journal.read_text().split("\n")[:-1]


def test_a_sink_is_opened_put_flushed_and_closed(java: Java, journal: Path) -> None:
    sink = Sinking(java, journal)
    assert sink.task.open([("t", 0), ("t", 1)]) == {}
    sink.put("a", "b")
    assert sink.task.flush({("t", 0): 2}) == {("t", 0): 2}
    sink.task.revoked([("t", 1)])
    sink.task.close()
    rows = ["t-0@0 null=a", "t-0@1 null=b", "commit t-0 2", "close [t-1]", "close [t-0]", "stop"]
    assert sink.lines() == ["open [t-0, t-1]", *rows]


def test_a_sink_uses_its_context(java: Java, journal: Path) -> None:
    sink = Sinking(java, journal)
    sink.task.open([("t", 0)])
    with pytest.raises(RetriableError, match="not now"):
        sink.put("again")
    sink.put("again", "bad", "pause", "back", "commit")
    sink.task.close()
    assert sink.asked == [
        ("retry", 0.01),
        ("retry", 0.01),
        ("t", 0, 1, "I do not like it"),
        ("pause", [("t", 0)]),
        ("seek", {("t", 0): 0}),
        "commit",
    ]


def test_a_sink_finds_its_consumer(java: Java, journal: Path) -> None:
    sink = Sinking(java, journal)
    sink.task.open([("t", 0)])
    sink.put("consumer")
    sink.task.close()
    assert sink.asked == [("seek", {("t", 0): 7})]
    assert sink.lines()[1:4] == [
        "connect-it 3 member-1",
        "[t-0] at 5",
        "The consumer of a sink is the worker's; a plugin may not call poll.",
    ]


def test_a_task_is_told_of_some_partitions_or_of_nothing(java: Java, journal: Path) -> None:
    sink = Sinking(java, journal)
    assert sink.task.open([]) == {}
    sink.task.revoked([])
    sink.task.close()
    assert sink.lines() == ["stop"]


def test_a_record_that_nobody_tolerates_fails_the_task(java: Java, journal: Path) -> None:
    sink = Sinking(java, journal, tolerates=False)
    sink.task.open([("t", 0)])
    with pytest.raises(ConnectError, match="Tolerance exceeded"):
        sink.put("bad")
    sink.task.close()


# Other plugins.


def test_transforms_predicates_and_converters_of_jars_work(java: Java) -> None:
    suffix = Part(java.host, java.entries[SUFFIX], "transform", {"suffix": "-y"})
    record = d.Record("t", None, d.STRING, "key", d.INT32, 5, source_partition={"p": "q"}, source_offset={"o": 1})
    assert suffix.apply(record) == record.but(topic="t-y")
    assert suffix.apply(record.but(key="drop")) is None
    assert Part(java.host, java.entries[LONG_KEY], "predicate", {"least": "2"}).test(record)
    assert not Part(java.host, java.entries[LONG_KEY], "predicate", {"least": "3"}).test(record)
    for seed in range(200):
        schema, value = random_struct(seed)
        made = suffix.apply(record.but(value_schema=schema, value=value))
        assert made is not None and (made.value_schema, made.value) == (schema, value), seed
    backwards = Part(java.host, java.entries[BACKWARDS], "value", {"converter.type": "value"})
    assert backwards.write("t", d.INT32, 12) == b"21"
    assert backwards.read("t", b"abc") == d.SchemaAndValue(d.OPTIONAL[d.Type.STRING], "cba")
