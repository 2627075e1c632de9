"""A batch that fails in columns is processed record by record, alone and counted; the failed try leaves no trace."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from moldau import operators
from moldau.operators.aggregate import StreamAggregate, StreamReduce
from moldau.operators.columns import NO_AGGREGATE, Columns, InRows
from moldau.operators.record import Raw, Record
from moldau.operators.stateless import Filter, FlatMap, FlatMapValues, Map, MapValues, PassThrough, SelectKey
from moldau.operators.stream_table_join import StreamTableJoin
from moldau.operators.table import TableFilter, TableMapValues, TableSource, TableTransformValues, ToStream
from moldau.operators.table_join import JoinedTable, TableJoin
from moldau.operators.user import FixedKey, ForColumns
from moldau.operators.window_aggregate import TimeWindowAggregate
from moldau.operators.windowed import Windowed
from moldau.plan import fallbacks
from moldau.plan.blobs import Blob, rows
from moldau.plan.fallbacks import LONGEST_PAUSE, Fallbacks, add
from moldau.plan.levels import ShardId
from moldau.plan.page_cache import HotPages
from moldau.plan.stateless_pass import Passing
from moldau.streams import KStream, KTable, StreamsBuilder, String, TimeWindows

from .in_memory import Conveyor, Watched

TEXTS = {"default.key.serde": String(), "default.value.serde": String()}
PARTITIONS = {"in": 1, "other": 1}
START, SHARD = "a start", ShardId(0, 0)
ODD = "odd"  # the key of a record that cannot be processed in columns
KEYS = ("a", "b", "a", "c", ODD, "b", "a", "c", "b")
EVERY = (False, True, False, True, True, False)  # which batches have such a record


def choose(topic: str, key: Any, value: Any, count: int) -> Any:
    """Of a record with the odd key, a list of partitions: that only rows can have."""
    return [0] if (key.key if isinstance(key, Windowed) else key) == ODD else 0


def in_partitions(stream: KStream[Any, Any] | KTable[Any, Any]) -> None:
    (stream.to_stream() if isinstance(stream, KTable) else stream).to("out", partitioner=choose)


def joined(mine: str | None, other: str | None) -> str:
    return f"{mine}&{other}"


def appended(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}{value[-1]}"[-9:]


def none_if_odd(key: str, value: str, aggregate: str) -> Any:
    return None if key == ODD else appended(key, value, aggregate)


def reduced(aggregate: str, value: str) -> Any:
    return None if value.startswith(ODD) else f"{aggregate}{value[-1]}"[-9:]


class Doubled(ForColumns):
    """A processor, and a transformer of tables."""

    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(record.with_value(record.value * 2))

    def transform(self, key: Any, value: Any) -> Any:
        return None if value is None else value * 2

    def process_all(self, columns: Columns) -> Columns:
        values = list(map(self.transform, columns.keys, columns.values))
        return Columns(columns.keys, values, columns.timestamps, columns.headers)


WINDOWS = TimeWindows.of(10, advance=5, grace=100)
Build = Callable[[StreamsBuilder], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A topology with an operator, whose batches with an odd record fall back behind that operator or in it."""

    operator: type
    build: Build
    itself: bool = False  # the operator itself raises InRows


def stream(of: Callable[[KStream[Any, Any]], Any]) -> Build:
    return lambda builder: in_partitions(of(builder.stream("in")))


def table(of: Callable[[KTable[Any, Any]], Any], **options: Any) -> Build:
    return lambda builder: in_partitions(of(builder.table("in", **options)))


def both(of: Callable[[Any, KTable[Any, Any]], Any], table: bool = True) -> Build:
    return lambda builder: in_partitions(of((builder.table if table else builder.stream)("in"), builder.table("other")))


CASES = {
    "filter": Case(Filter, stream(lambda s: s.filter(lambda key, value: not value.endswith("5")))),
    "map": Case(Map, stream(lambda s: s.map(lambda key, value: (key, value * 2)))),
    "select_key": Case(SelectKey, stream(lambda s: s.select_key(lambda key, value: key))),
    "map_values": Case(MapValues, stream(lambda s: s.map_values(str.upper))),
    "flat_map": Case(FlatMap, stream(lambda s: s.flat_map(lambda key, value: [(key, value)] * 2))),
    "flat_map_values": Case(FlatMapValues, stream(lambda s: s.flat_map_values(list))),
    "merge": Case(PassThrough, lambda builder: in_partitions(builder.stream("in").merge(builder.stream("other")))),
    "aggregate": Case(StreamAggregate, stream(lambda s: s.group_by_key().aggregate(str, appended))),
    "aggregate to None": Case(StreamAggregate, stream(lambda s: s.group_by_key().aggregate(str, none_if_odd)), True),
    "reduce": Case(StreamReduce, stream(lambda s: s.group_by_key().reduce(lambda old, new: (old + new)[-9:]))),
    "reduce to None": Case(
        StreamReduce,
        stream(lambda s: s.group_by(lambda key, value: "all", name="all").reduce(reduced)),
        True,
    ),
    "windows": Case(
        TimeWindowAggregate, stream(lambda s: s.group_by_key().windowed_by(WINDOWS).aggregate(str, appended))
    ),
    "windows to None": Case(
        TimeWindowAggregate, stream(lambda s: s.group_by_key().windowed_by(WINDOWS).aggregate(str, none_if_odd)), True
    ),
    "table": Case(TableSource, table(lambda t: t, store="kept")),
    "to_stream": Case(ToStream, table(lambda t: t)),
    "table filter": Case(TableFilter, table(lambda t: t.filter(lambda key, value: not value.endswith("5"), store="f"))),
    "table map_values": Case(TableMapValues, table(lambda t: t.map_values(str.upper, store="m"))),
    "process_values": Case(FixedKey, stream(lambda s: s.process_values(Doubled))),
    "table transform_values": Case(TableTransformValues, table(lambda t: t.transform_values(Doubled, store="m"))),
    "stream-table join with what is computed": Case(
        StreamTableJoin, both(lambda s, other: s.left_join(other.transform_values(Doubled), joined), table=False)
    ),
    "table join": Case(TableJoin, both(lambda t, other: t.join(other, joined))),
    "joined table": Case(JoinedTable, both(lambda t, other: t.join(other, joined, store="j"))),
    "stream-table join": Case(StreamTableJoin, both(lambda s, other: s.left_join(other, joined), table=False)),
}


def taking_columns() -> Iterator[type]:
    for module in pkgutil.walk_packages(operators.__path__, "moldau.operators."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if found.__module__ == module.name and hasattr(found, "process_all") and hasattr(found, "process"):
                yield found


def test_every_operator_that_takes_columns_has_a_case_here() -> None:
    assert {case.operator for case in CASES.values()} == set(taking_columns())


def records(odd: bool, batch: int) -> list[Raw]:
    found, first = [], batch * len(KEYS)
    for at, key in enumerate(KEYS, first):
        name = key if odd or key != ODD else "d"
        for topic in PARTITIONS:
            time = at * 3 + (topic == "other")
            found.append(Raw(topic, 0, at, name.encode(), f"{name}{topic}{at}".encode(), time))
    return found


def conveyor(case: Case, cache_bytes: int, in_rows: bool = False, hot: HotPages | None = None) -> Conveyor:
    builder = StreamsBuilder("app", TEXTS)
    case.build(builder)
    topics = {topic for node in builder.build().freeze().nodes for topic in getattr(node, "topics", ())}
    counts = {topic: count for topic, count in PARTITIONS.items() if topic in topics}
    settings = {**TEXTS, "statestore.cache.max.bytes": cache_bytes}
    return Conveyor(builder, counts, settings, hot=hot, logged=True, in_rows=in_rows)


def feed(conveyor: Conveyor, odd: bool, batch: int) -> None:
    read = conveyor.conveyed.schedule.reader
    conveyor.batch([raw for raw in records(odd, batch) if raw.topic in read])


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> dict[type, int]:
    """How often each operator was given columns."""
    calls: dict[type, int] = {}
    for found in taking_columns():
        monkeypatch.setattr(found, "process_all", counting(calls, found, found.process_all))  # type: ignore[attr-defined]
    return calls


def counting(calls: dict[type, int], of: type, process_all: Any) -> Any:
    def counted(self: Any, columns: Any) -> Any:
        calls[of] = calls.get(of, 0) + 1
        return process_all(self, columns)

    return counted


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
@pytest.mark.parametrize("name", CASES)
def test_a_fallback_in_the_middle_of_a_batch_leaves_no_trace(
    name: str, cache_bytes: int, worked: dict[type, int]
) -> None:
    """Pages and outputs are those of records one by one, also with pages that a worker keeps from batch to batch."""
    case = CASES[name]
    in_columns, in_rows = conveyor(case, cache_bytes, hot=HotPages()), conveyor(case, cache_bytes, in_rows=True)
    for batch, odd in enumerate(EVERY):
        worked.clear()
        before = len(in_columns.fallbacks.errors)
        feed(in_columns, odd, batch)
        feed(in_rows, odd, batch)
        assert in_columns.written() == in_rows.written()
        errors = in_columns.fallbacks.errors[before:]
        if batch < 4:  # behind the second failure in a row there is a pause
            assert worked.get(case.operator), "the operator was not reached"
            assert len(errors) == int(odd)
        assert all(isinstance(error, InRows) for error in errors)
        assert not case.itself or all(str(error) == NO_AGGREGATE for error in errors)
    assert in_columns.outputs == in_rows.outputs
    assert in_columns.outputs["out"]


@pytest.mark.parametrize("name", ["filter", "map", "select_key", "map_values", "flat_map", "flat_map_values"])
def test_a_fallback_of_what_remembers_nothing_leaves_no_trace(name: str, worked: dict[type, int]) -> None:
    made = conveyor(CASES[name], 0)
    watched = Watched()
    in_columns, in_rows = (Passing(made.conveyed, {}, watched, in_rows=rows) for rows in (False, True))
    for batch, odd in enumerate(EVERY):
        found = [raw for raw in records(odd, batch) if raw.topic == "in"]
        blobs = list(made.packed(found, frozenset()))  # three of three records, the odd one in the second
        worked.clear()
        assert through(in_columns, blobs) == through(in_rows, blobs)
        assert worked.get(CASES[name].operator)
    assert [str(error) for error in watched.errors] == [
        "a partitioner chose several partitions for a record, or none"
    ] * 3
    assert sum(watched.drain(made.conveyed.start).values()) == 3


def through(passing: Passing, blobs: list[Blob]) -> list[Any]:
    return [row for blob in blobs for out in passing.through(blob) for row in rows(out.data)]


def test_a_shard_that_fails_once_is_tried_again_with_the_next_batch() -> None:
    known = Fallbacks()
    known.fell_back(START, SHARD, InRows(NO_AGGREGATE))
    assert not known.is_paused(START, SHARD)
    known.succeeded(START, SHARD)
    known.fell_back(START, SHARD, InRows(NO_AGGREGATE))
    assert not known.is_paused(START, SHARD)


def test_a_shard_that_always_fails_is_tried_ever_more_rarely_but_never_given_up() -> None:
    known, tries = Fallbacks(), list[int]()
    for batch in range(500):
        if known.is_paused(START, SHARD):
            known.fell_back(START, SHARD, None)
        else:
            known.fell_back(START, SHARD, InRows(NO_AGGREGATE))
            tries.append(batch)
    pauses = [later - earlier - 1 for earlier, later in pairwise(tries)]
    assert pauses == [0, 1, 3, 7, 15, 31, 63, 63, 63, 63, 63, 63]
    assert max(pauses) == LONGEST_PAUSE
    assert known.drain(START) == {(0, NO_AGGREGATE): 500}
    assert not known.is_paused(START, ShardId(0, 1))
    assert not known.is_paused("another", SHARD)


def test_a_reason_is_logged_once_for_each_sub_topology(caplog: pytest.LogCaptureFixture) -> None:
    known = Fallbacks()
    with caplog.at_level(logging.WARNING):
        for shard in (SHARD, ShardId(0, 1), ShardId(1, 0)):
            for error in (InRows(NO_AGGREGATE), KeyError("a"), KeyError("b")):
                known.fell_back(START, shard, error)
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == 4
    assert found[0] == "Sub-topology 0 processes batches record by record, which is slow: an aggregate is None."
    assert "KeyError in columns alone" in found[1]
    assert known.drain(START) == {
        (0, NO_AGGREGATE): 2,
        (0, "KeyError in columns alone"): 4,
        (1, NO_AGGREGATE): 1,
        (1, "KeyError in columns alone"): 2,
    }
    assert known.drain(START) == {}


def test_counts_of_several_workers_are_added() -> None:
    assert add({(0, "a"): 1, (1, "a"): 2}, {(1, "a"): 3, (1, "b"): 4}) == {(0, "a"): 1, (1, "a"): 5, (1, "b"): 4}


def test_a_process_remembers_a_bounded_number_of_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallbacks, "MOST_KNOWN", 3)
    known = Fallbacks()
    for _ in range(2):
        for partition in range(5):
            known.fell_back(START, ShardId(0, partition), InRows(NO_AGGREGATE))
    known.fell_back(START, ShardId(0, 4), InRows(NO_AGGREGATE))
    assert [known.is_paused(START, ShardId(0, partition)) for partition in range(5)] == [False] * 4 + [True]


def test_nothing_of_a_failed_try_is_kept_alive() -> None:
    """An error's trace would hold the whole batch."""
    made = conveyor(CASES["aggregate to None"], 0)
    feed(made, True, 0)
    assert made.fallbacks.errors[0].__traceback__ is None
