"""Steps: what a query does, one after the other, each with the schema of its rows.

A row is a key and a tuple of values. `schema.value` holds every column that an expression may name, so it repeats the
key's columns and holds pseudo columns until a Select leaves them out. Names are plain: `A` of a single source, `L_A` of
a source L in a join. `build.py` turns steps into calls of `streams/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from moldau.sql.catalogue import Columns, Format, Kind, Schema, Source, Topic, WindowInfo
from moldau.sql.tree import Call, Expression

JoinKind: TypeAlias = Literal["INNER", "LEFT", "RIGHT", "OUTER"]
Named: TypeAlias = tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Formats:
    """How the rows of a step are written to an internal topic or a store."""

    key: Format
    value: Format


@dataclass(frozen=True, slots=True)
class Read:
    """The records of a source, with pseudo columns and the key's columns added to the values."""

    context: str
    schema: Schema
    source: Source
    formats: Formats

    @property
    def kind(self) -> Kind:
        return self.source.kind

    @property
    def window(self) -> WindowInfo | None:
        return self.source.window


@dataclass(frozen=True, slots=True)
class Filter:
    context: str
    input: Step
    condition: Expression

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, slots=True)
class Select:
    """New values, and new names for the key's columns."""

    context: str
    schema: Schema
    input: Step
    columns: Named


@dataclass(frozen=True, slots=True)
class FlatMap:
    """A row for each result of the table functions, which are added to the values."""

    context: str
    schema: Schema
    input: Step
    calls: tuple[tuple[str, Call], ...]


@dataclass(frozen=True, slots=True)
class SelectKey:
    """A new key. Expressions that are not columns are added to the values, too."""

    context: str
    schema: Schema
    input: Step
    keys: tuple[Expression, ...]
    formats: Formats


@dataclass(frozen=True, slots=True)
class GroupBy:
    """Rows by a new key, or by the key that they have (`keys` is empty)."""

    context: str
    schema: Schema
    input: Step
    keys: tuple[Expression, ...]
    formats: Formats


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The WINDOW clause in milliseconds."""

    kind: Literal["TUMBLING", "HOPPING", "SESSION", "SLIDING"]
    size_ms: int
    advance_ms: int
    grace_ms: int
    retention_ms: int | None
    final: bool = False

    @property
    def info(self) -> WindowInfo:
        if self.kind == "SLIDING":  # whoever reads the topic finds windows of one size that overlap
            return WindowInfo("HOPPING", self.size_ms)
        return WindowInfo(self.kind, None if self.kind == "SESSION" else self.size_ms)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregates of groups. Values are the last ones of `columns`, a result for each call, and the window's bounds."""

    context: str
    schema: Schema
    input: GroupBy
    columns: tuple[str, ...]
    calls: tuple[Call, ...]
    formats: Formats
    time_window: TimeWindow | None = None


@dataclass(frozen=True, slots=True)
class StreamStreamJoin:
    context: str
    schema: Schema
    left: Step
    right: Step
    join: JoinKind
    before_ms: int
    after_ms: int
    grace_ms: int | None
    left_formats: Formats
    right_formats: Formats

    @property
    def formats(self) -> Formats:
        return self.left_formats


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    context: str
    schema: Schema
    left: Step
    right: Step
    join: JoinKind
    formats: Formats


@dataclass(frozen=True, slots=True)
class TableTableJoin:
    """A join of tables by their keys; with `foreign_key`, an expression over the left rows, by that."""

    context: str
    schema: Schema
    left: Step
    right: Step
    join: JoinKind
    formats: Formats
    right_formats: Formats
    foreign_key: Expression | None = None


Joined: TypeAlias = StreamStreamJoin | StreamTableJoin | TableTableJoin
Step: TypeAlias = Read | Filter | Select | FlatMap | SelectKey | GroupBy | Aggregate | Joined


Runtime: TypeAlias = Literal["spark", "local"]


@dataclass(frozen=True, slots=True)
class Run:
    """How a persistent query is run: decided once, when its statement is."""

    runtime: Runtime = "local"
    shared: bool = True  # whether it shares a Spark query with others
    levels: int | None = None  # with state
    starts: tuple[tuple[str, tuple[int, ...]], ...] = ()  # topics that are not read from their start: offsets
    registry: str | None = None  # the address of the Schema Registry
    version: int = 1  # more if CREATE OR REPLACE has changed the query
    functions: tuple[tuple[str, str], ...] = ()  # the files of functions in Python that it calls: names and texts


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A persistent query: its steps, and the source that it writes."""

    query_id: str
    step: Step
    sink: Source
    sources: tuple[str, ...]
    text: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    run: Run = Run()


@dataclass(frozen=True, slots=True)
class Planned:
    """What a statement does: the source that it makes, with its topic, and the queries that it starts.

    The id of a query has only its beginning here; the number of the statement completes it. A query that `replaces`
    another one takes over its id instead; one that is `named` by WITH (QUERY_ID = ...) has its whole id. UNION ALL
    starts `more` queries.
    """

    source: Source | None = None
    topic: Topic | None = None
    query: QueryPlan | None = None
    replaces: str | None = None
    more: tuple[QueryPlan, ...] = ()
    named: bool = False


def inputs(step: Step) -> tuple[Step, ...]:
    match step:
        case Read():
            return ()
        case StreamStreamJoin() | StreamTableJoin() | TableTableJoin():
            return step.left, step.right
        case _:
            return (step.input,)


def kind_of(step: Step) -> Kind:
    """Tell whether rows are those of a stream or of a table."""
    match step:
        case Read():
            return step.kind
        case Aggregate() | TableTableJoin():
            return "TABLE"
        case StreamStreamJoin() | StreamTableJoin():
            return "STREAM"
        case _:
            return kind_of(step.input)


def window_of(step: Step) -> WindowInfo | None:
    """Return the windows of the keys."""
    match step:
        case Read():
            return step.window
        case Aggregate():
            return None if step.time_window is None else step.time_window.info
        case SelectKey() | GroupBy():
            return None
        case StreamStreamJoin() | StreamTableJoin() | TableTableJoin():
            return window_of(step.left)
        case _:
            return window_of(step.input)


def without(columns: Columns, names: frozenset[str]) -> Columns:
    return tuple((name, kind) for name, kind in columns if name not in names)
