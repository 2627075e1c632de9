"""Lowering: the steps of a query become calls of `streams/`, in the order in which ksqlDB calls Kafka Streams.

So stores, repartition topics and changelogs get the names that they have there. A key is a tuple of the key's columns,
or None; a value is a tuple of all columns of the step's schema, or None.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from moldau.operators.stores.spec import StoreSpec
from moldau.operators.windows import EmitStrategy, JoinWindows, SessionWindows, SlidingWindows, TimeWindows
from moldau.sql.analysis.aggregation import DAY_MS
from moldau.sql.catalogue import Format, Schema, Source, WindowInfo
from moldau.sql.codegen import Report
from moldau.sql.lowering import rows
from moldau.sql.lowering.aggregates import Aggregation
from moldau.sql.lowering.serdes import key_serde, value_serde
from moldau.sql.processing_log import ProcessingLog, step_name
from moldau.sql.steps import (
    Aggregate,
    Filter,
    FlatMap,
    Formats,
    GroupBy,
    QueryPlan,
    Read,
    Select,
    SelectKey,
    Step,
    StreamStreamJoin,
    StreamTableJoin,
    TableTableJoin,
    kind_of,
    window_of,
)
from moldau.streams.builder import StreamsBuilder
from moldau.streams.stores import persistent_versioned_key_value_store
from moldau.streams.stream import KStream
from moldau.streams.table import KTable


def application_id(plan: QueryPlan, service_id: str = "default_") -> str:
    """Return the id of the application, with which the names of its internal topics begin."""
    return f"_confluent-ksql-{service_id}query_{plan.query_id}"


def build(
    plan: QueryPlan, registry: Any = None, log: ProcessingLog | None = None, service_id: str = "default_"
) -> StreamsBuilder:
    """Return a builder with the topology of a query."""
    lowering = _lowering(plan, registry, log, service_id)
    lowering.run()
    return lowering.builder


def build_rows(
    plan: QueryPlan,
    emit: rows.Emit,
    registry: Any = None,
    log: ProcessingLog | None = None,
    service_id: str = "default_",
) -> StreamsBuilder:
    """Return a builder with the topology of a transient query, whose rows go to a function."""
    lowering = _lowering(plan, registry, log, service_id)
    result = lowering.lower(plan.step)
    stream = result.to_stream() if isinstance(result, KTable) else result
    stream.process_values(lambda: rows.Emitter(emit))
    return lowering.builder


def _lowering(plan: QueryPlan, registry: Any, log: ProcessingLog | None, service_id: str) -> _Lowering:
    settings = {
        "deserialization.exception.handler": "continue",
        "statestore.cache.max.bytes": 0,
    }
    return _Lowering(plan, StreamsBuilder(application_id(plan, service_id), settings), registry, log)


def describe(plan: QueryPlan, registry: Any = None) -> tuple[str, dict[str, tuple[Schema, Formats]]]:
    """Return the topology of a query as Kafka prints it, and what its steps read and write, under ksqlDB's names."""
    builder = StreamsBuilder()
    lowering = _Lowering(plan, builder, registry, None)
    lowering.run()
    schemas = {step_name(plan.query_id, context): made for context, made in lowering.schemas.items()}
    return builder.describe(), schemas


# ksqlDB counts the rows of these steps in a node of its own, unless a new key, a join or a table function follows.
REKEYED = (SelectKey, FlatMap, StreamStreamJoin, StreamTableJoin)
COUNTED = (*REKEYED, Read, Filter)


@dataclass(slots=True)
class _Lowering:
    plan: QueryPlan
    builder: StreamsBuilder
    registry: Any
    log: ProcessingLog | None
    schemas: dict[str, tuple[Schema, Formats]] = field(default_factory=dict)

    def run(self) -> None:
        self.write(self.lower(self.plan.step), self.plan.sink)

    def report(self, context: str) -> Report | None:
        """Return what a step calls for a value that it could not compute."""
        return self.log.step(self.plan.query_id, context) if self.log else None

    def lower(self, step: Step, then: Step | None = None) -> Any:
        """Lower a step whose rows go to `then`."""
        result = self.read(step, then) if isinstance(step, Read) else self.lowered(step)
        if isinstance(step, COUNTED) and not isinstance(then, REKEYED) and isinstance(result, KStream):
            result.show_peek()
        return result

    def lowered(self, step: Step) -> Any:
        match step:
            case Read():
                raise AssertionError("read needs to know what follows")
            case Filter():
                return self.filter(step)
            case Select():
                return self.select(step)
            case FlatMap():
                return self.flat_map(step)
            case SelectKey():
                return self.select_key(step)
            case GroupBy():
                raise AssertionError("GroupBy is a part of Aggregate")
            case Aggregate():
                return self.aggregate(step)
            case StreamStreamJoin():
                return self.join_streams(step)
            case StreamTableJoin():
                return self.join_table(step)
            case TableTableJoin():
                return self.join_tables(step)

    def serdes(
        self, context: str, schema: Schema, formats: Formats, window: WindowInfo | None = None, topic: str = ""
    ) -> tuple[Any, Any]:
        """Return the serdes of keys and values, and note them under the step's name."""
        self.schemas[context] = (schema, formats)
        failed: list[Any] = [None, None]
        if self.log is not None and topic:
            failed = [self.log.reader(self.plan.query_id, context, topic, side) for side in ("key", "value")]
        key = key_serde(formats.key, schema.key, window, topic, context, self.registry, failed[0])
        made = value_serde(formats.value, schema.value, topic, context, self.registry, failed[1])
        if self.plan.run.functions:  # what a user's aggregate keeps may be read as something else
            made = replace(made, values_again=False)
        return key, made

    def note(self, context: str, schema: Schema, formats: Formats) -> None:
        self.schemas[context] = (schema, formats)

    def read(self, step: Read, then: Step | None) -> KStream[Any, Any] | KTable[Any, Any]:
        source = step.source
        stored = Schema(source.schema.key, source.stored_value)
        key, value = self.serdes(step.context, stored, step.formats, source.window, source.topic)
        extractor = rows.extractor(source)
        if step.kind == "STREAM":
            stream = self.builder.stream(source.topic, key=key, value=value, timestamp=extractor)
            return stream.process_values(lambda: rows.AddColumns(source))
        name = step.context.removesuffix("/Source")
        table = self.builder.table(source.topic, key=key, value=value, timestamp=extractor)
        kept = Schema(source.schema.key, (*source.schema.value, *rows.POSITION))
        formats = replace(step.formats, value=_internal(step.formats.value))
        self.note(f"{step.context}/Materialized", kept, formats)
        if isinstance(then, SelectKey):  # the table of the new key has the store
            table = table.transform_values(lambda: rows.AddPosition(source))
            return table.transform_values(rows.AddKeyColumns)
        key, value = self.serdes(f"{step.context}/Materialized", kept, formats, source.window)
        store = _store(f"{name}-Reduce", source)
        table = table.transform_values(lambda: rows.AddPosition(source), store=store, key=key, value=value)
        table.key = key
        return table.transform_values(rows.AddKeyColumns)

    def filter(self, step: Filter) -> KStream[Any, Any] | KTable[Any, Any]:
        above = self.lower(step.input, step)
        passes = rows.predicate(step.condition, step.schema.value, self.report(step.context))
        name = step.context.replace("/", "-")
        if isinstance(above, KStream):
            return above.process_values(lambda: rows.Filter(passes), name=name)
        above = above.transform_values(rows.Unchanged, name=f"{name}-ApplyPredicate")
        above = above.filter(lambda key, row: passes(row), name=f"{name}-Filter")
        return above.map_values(lambda row: row, name=f"{name}-PostProcess")

    def select(self, step: Select, counted: bool = False) -> KStream[Any, Any] | KTable[Any, Any]:
        above = self.lower(step.input, step)
        compute = rows.projection(step.columns, step.input.schema.value, self.report(step.context))
        name = step.context.replace("/", "-")
        if isinstance(above, KStream):
            return above.process_values(lambda: rows.Project(compute, drops=counted), name=name)
        formats = _formats_of(step.input)
        self.note(step.context, step.schema, formats)
        if _joins_tables(step.input):
            key, value = self.side(step.context, step, formats, window_of(step))
            kept = {"store": f"{name}-Last", "key": key, "value": value}
            return above.transform_values(lambda: rows.TransformRow(compute), **kept)
        return above.transform_values(lambda: rows.TransformRow(compute), name=name)

    def flat_map(self, step: FlatMap) -> KStream[Any, Any]:
        above = self.lower(step.input, step)
        explode = rows.exploder(step.calls, step.input.schema.value, self.report(step.context))
        return above.process_values(lambda: rows.FlatMap(explode), name=step.context)

    def select_key(self, step: SelectKey) -> KStream[Any, Any] | KTable[Any, Any]:
        above = self.lower(step.input, step)
        mapper = rows.rekey(step, self.report(step.context))
        name = f"{step.context}-SelectKey"
        if isinstance(above, KStream):
            return above.map(mapper, name=name)
        key, value = self.side(f"{step.context}/Materialize", step, step.formats, None)
        stream = above.to_stream().map(mapper, name=f"{name}-Mapper")
        store = f"{step.context}-Materialize"
        if isinstance(step.input, Read):
            store = _store(store, step.input.source)
        return stream.to_table(name=name, store=store, key=key, value=value)

    def aggregate(self, step: Aggregate) -> KTable[Any, Any]:
        select = step.input.input
        assert isinstance(select, Select), "an aggregate follows its Prepare step"
        prepared = self.select(select, counted=True)
        made = Aggregation(step, self.plan.settings)
        formats = Formats(step.formats.key, _internal(step.formats.value))
        grouped = self.grouped(prepared, step.input, formats)
        key, value = self.serdes(f"{step.context}/Materialize", made.schema, formats)
        store = {"store": "Aggregate-Aggregate-Materialize", "key": key, "value": value}
        window = step.time_window
        if kind_of(step.input) == "TABLE":
            table = grouped.aggregate(made.init, made.add, made.undo, **store)
        elif window is None:
            table = grouped.aggregate(made.init, made.add, **store)
        else:
            table = _windowed(grouped, window, made, store)
        table = table.transform_values(
            lambda: rows.TransformRow(made.results), name="Aggregate-Aggregate-ToOutputSchema"
        )
        if window is not None:
            table = table.transform_values(rows.AddBounds, name="Aggregate-Aggregate-WindowSelect")
        return table

    def grouped(self, prepared: Any, step: GroupBy, formats: Formats) -> Any:
        key, value = self.serdes(step.context, step.schema, formats)
        if not step.keys:
            return prepared.group_by_key(key=key, value=value, name="Aggregate-GroupBy")
        group = rows.grouper(step.keys, step.input.schema.value, self.report(step.context))
        if isinstance(prepared, KStream):
            filtered = prepared.filter(lambda key, row: row is not None)
            return filtered.group_by(lambda key, row: group(row), key=key, value=value, name="Aggregate-GroupBy")
        filtered = prepared.filter(lambda key, row: row is not None)
        return filtered.group_by(lambda key, row: (group(row), row), key=key, value=value, name="Aggregate-GroupBy")

    def join_streams(self, step: StreamStreamJoin) -> KStream[Any, Any]:
        left, right = self.lower(step.left, step), self.lower(step.right, step)
        eager = step.grace_ms is None
        grace = DAY_MS if step.grace_ms is None else step.grace_ms
        before, after = step.before_ms, step.after_ms
        window = window_of(step.left)
        names = ("Right", "Left") if step.join == "RIGHT" else ("Left", "Right")
        key, value = self.side(f"{step.context}/{names[0]}", step.left, step.left_formats, window)
        other_key, other_value = self.side(f"{step.context}/{names[1]}", step.right, step.right_formats, window)
        first = (step.right, step.right_formats) if step.join == "RIGHT" else (step.left, step.left_formats)
        self.note(step.context, first[0].schema, first[1])
        joiner = rows.joiner(step)
        if step.join == "RIGHT":
            left, right, value, other_value = right, left, other_value, value
            before, after, key = after, before, other_key
            joiner = rows.mirrored(joiner)
        windows = JoinWindows(before, after, max(grace - before - after, 0) if eager else grace, eager)
        join = {"INNER": left.join, "LEFT": left.left_join, "RIGHT": left.left_join, "OUTER": left.outer_join}[
            step.join
        ]
        return join(right, joiner, key=key, value=value, other_value=other_value, window=windows, name=step.context)

    def side(self, context: str, step: Step, formats: Formats, window: WindowInfo | None) -> tuple[Any, Any]:
        internal = Formats(_plain_key(formats.key), _internal(formats.value))
        return self.serdes(context, step.schema, internal, window)

    def join_table(self, step: StreamTableJoin) -> KStream[Any, Any]:
        right, left = self.lower(step.right, step), self.lower(step.left, step)
        key, value = self.side(f"{step.context}/Left", step.left, step.formats, window_of(step.left))
        self.note(step.context, step.left.schema, step.formats)
        join = left.join if step.join == "INNER" else left.left_join
        return join(right, rows.joiner(step), key=key, value=value, name=step.context)

    def join_tables(self, step: TableTableJoin) -> KTable[Any, Any]:
        left, right = self.lower(step.left, step), self.lower(step.right, step)
        joiner = rows.joiner(step)
        if step.foreign_key is not None:
            left.key, left.value = self.side(f"{step.context}/Left", step.left, step.formats, None)
            right.key, right.value = self.side(f"{step.context}/Right", step.right, step.right_formats, None)
            key, value = self.side(step.context, step, step.formats, None)
            find = rows.foreign_key(step.foreign_key, step.left.schema.value, self.report(step.context))
            join = left.join if step.join == "INNER" else left.left_join
            return join(right, joiner, foreign_key=lambda key, row: find(row), key=key, value=value)
        if step.join == "RIGHT":
            return right.left_join(left, rows.mirrored(joiner))
        join = {"INNER": left.join, "LEFT": left.left_join, "OUTER": left.outer_join}[step.join]
        return join(right, joiner)

    def write(self, result: KStream[Any, Any] | KTable[Any, Any], sink: Source) -> None:
        formats = Formats(sink.key_format, sink.value_format)
        schema = Schema(sink.schema.key, sink.schema.value)
        key, value = self.serdes(sink.name, schema, formats, sink.window, sink.topic)
        stream = result.to_stream() if isinstance(result, KTable) else result
        if sink.timestamp is not None:
            extract = rows.extractor(sink)
            stream = stream.process_values(
                lambda: rows.SetTimestamp(extract), name=f"ApplyTimestampTransform-{sink.name}"
            )
        stream.to(sink.topic, key=key, value=value)


def _store(name: str, source: Source) -> str | StoreSpec:
    """Return the store of a table: with a history, it is looked up as of the time of the record that looks."""
    return name if source.history_ms is None else persistent_versioned_key_value_store(name, source.history_ms)


def _joins_tables(step: Step) -> bool:
    """Tell whether rows are those of a join of tables, which no store keeps."""
    return isinstance(step, TableTableJoin) or (isinstance(step, Filter) and _joins_tables(step.input))


def _formats_of(step: Step) -> Formats:
    """Return the formats in which the rows of a step would be written."""
    return _formats_of(step.input) if isinstance(step, Filter | Select | FlatMap) else step.formats


def _internal(value: Format) -> Format:
    """Return the format of a value in an internal topic: all columns are wrapped, under no schema of the user's."""
    return replace(value, properties=tuple(p for p in value.properties if p[0] != "schemaId"), features=frozenset())


def _plain_key(key: Format) -> Format:
    return replace(key, properties=tuple(p for p in key.properties if p[0] != "schemaId"))


def _windowed(grouped: Any, window: Any, made: Aggregation, store: dict[str, Any]) -> KTable[Any, Any]:
    is_sliding = window.kind == "SLIDING"
    least = window.size_ms * (2 if is_sliding else 1) + window.grace_ms
    store = {**store, "retention": max(window.retention_ms or 0, least)}
    emit = EmitStrategy.on_window_close() if window.final else EmitStrategy.on_window_update()
    if window.kind == "SESSION":
        windows = SessionWindows(window.size_ms, window.grace_ms)
        return grouped.windowed_by(windows).emit_strategy(emit).aggregate(made.init, made.add, made.merge, **store)
    if is_sliding:
        windows = SlidingWindows(window.size_ms, window.grace_ms)
    else:
        windows = TimeWindows(window.size_ms, window.advance_ms, window.grace_ms)
    return grouped.windowed_by(windows).emit_strategy(emit).aggregate(made.init, made.add, **store)
