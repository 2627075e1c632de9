"""The sink of a query: the source that CREATE ... AS makes, or that INSERT INTO writes to."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.analysis.query import Planned
from moldau.sql.catalogue import Catalogue, Format, Schema, Settings, Source
from moldau.sql.errors import SqlError
from moldau.sql.format_rules import check, check_keys, check_properties, key_features, rule, value_features
from moldau.sql.properties import With
from moldau.sql.sources import timestamp_column
from moldau.sql.steps import Select, kind_of, window_of
from moldau.sql.tree import Cast, CreateAs, Expression
from moldau.sql.types import fits

INHERITED = frozenset({"fullSchemaName", "delimiter", "unwrapPrimitives", "nullableRepresentation"})


def requested_key_format(given: With) -> Format | None:
    """Return the key format of the WITH clause, which internal topics use too."""
    name = given.format_name("KEY")
    return None if name is None else Format(name, given.format_properties("KEY", name))


def sink_of(statement: CreateAs, given: With, planned: Planned, catalogue: Catalogue, settings: Settings) -> Source:
    """Make the source that the query fills."""
    kind = kind_of(planned.step)
    if kind != statement.kind:
        raise SqlError(
            f"Invalid result type. Your SELECT query produces a {kind}. "
            f"Please use CREATE {kind} AS SELECT statement instead."
        )
    first = planned.sources[0].source
    schema = planned.step.schema
    key_format = _format(given, "KEY", first.key_format)
    if not schema.key:
        if given.format_name("KEY") not in (None, "NONE") and planned.query.partition_by is not None:
            raise SqlError("Key format specified for stream without key columns.")
        if planned.query.partition_by is not None:
            key_format = Format("NONE")
    elif key_format.name == "NONE" and given.format_name("KEY") is None:
        key_format = Format(settings.text("ksql.persistence.default.format.key", "KAFKA") or "KAFKA")
    value_format = _format(given, "VALUE", first.value_format)
    check_keys(schema.key)
    key_format = replace(key_format, features=key_features(key_format.name, schema.key))
    default = settings.flag("ksql.persistence.wrap.single.values", True)
    features = value_features(value_format.name, schema.value, given.flag("WRAP_SINGLE_VALUE"), default)
    value_format = replace(value_format, features=features)
    for format_, columns, is_key in ((key_format, schema.key, True), (value_format, schema.value, False)):
        check_properties(format_)
        check(format_, columns, is_key)
    text = given.text("TIMESTAMP")
    timestamp = None if text is None else timestamp_column(text, given.text("TIMESTAMP_FORMAT"), schema)
    window = window_of(planned.step)
    prefix = settings.text("ksql.output.topic.name.prefix", "") or ""
    return Source(
        statement.name,
        statement.kind,
        schema,
        given.text("KAFKA_TOPIC") or prefix + statement.name,
        key_format,
        value_format,
        (),
        timestamp,
        given.text("TIMESTAMP_FORMAT"),
        window,
        False,
        True,
        statement.text,
        given.history_ms(kind, window),
    )


def _format(given: With, side: str, inherited: Format) -> Format:
    name = given.format_name(side) or inherited.name
    properties = dict(given.format_properties(side, name))
    if name == inherited.name:
        kept = {n: v for n, v in inherited.properties if n in INHERITED and n in rule(name).properties}
        properties = kept | properties
    return Format(name, tuple(sorted(properties.items())))


def insert_into(sink: Source, planned: Planned) -> Planned:
    """Check that the query fits the stream that it writes to, and cast what is narrower."""
    if kind_of(planned.step) != "STREAM":
        raise SqlError(
            f"Incompatible data sink and query result. Data sink ({sink.name}) type is KSTREAM but select query result "
            "is KTABLE."
        )
    result, wanted = planned.step.schema, Schema(sink.schema.key, sink.stored_value)
    step = planned.step
    matches = (
        len(result.key) == len(wanted.key)
        and len(result.value) == len(wanted.value)
        and all(
            one[0] == other[0] and (one[1] == other[1] or fits(one[1], other[1]))
            for one, other in zip((*result.key, *result.value), (*wanted.key, *wanted.value), strict=True)
        )
    )
    if not matches or not isinstance(step, Select):
        raise SqlError(
            f"Incompatible schema between results and sink.\nResult schema is {result.text()}\n"
            f"Sink schema is {wanted.text()}"
        )
    columns: list[tuple[str, Expression]] = []
    for (name, value), (_, had), (_, want) in zip(step.columns, result.value, wanted.value, strict=True):
        columns.append((name, value if had == want else Cast(value, want)))
    return replace(planned, step=replace(step, schema=wanted, columns=tuple(columns)))
