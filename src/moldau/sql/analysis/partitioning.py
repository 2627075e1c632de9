"""PARTITION BY: a new key for a stream."""

from __future__ import annotations

from dataclasses import replace

from moldau.sql.analysis.aggregation import group_name
from moldau.sql.analysis.checks import by_name, calls_of, typed
from moldau.sql.analysis.projection import KeyRule
from moldau.sql.analysis.scope import Aliases, Scope
from moldau.sql.catalogue import Columns, Schema
from moldau.sql.errors import SqlError
from moldau.sql.format_rules import check, check_keys, key_features
from moldau.sql.printer import expression_text
from moldau.sql.steps import Formats, SelectKey, Step, kind_of, window_of
from moldau.sql.tree import Column, Expression, Literal, Query


def partition(
    query: Query, scope: Scope, before: Step, formats: Formats, aliases: Aliases
) -> tuple[Step, KeyRule, dict[Expression, Column]]:
    """Return the step, what SELECT must contain, and which expressions are now columns of the key."""
    assert query.partition_by is not None
    if not query.partition_by:
        raise SqlError("PARTITION BY requires at least one expression")
    if kind_of(before) == "TABLE":
        raise SqlError("PARTITION BY is not supported for tables. See https://github.com/confluentinc/ksql/issues/2356")
    if window_of(before) is not None:
        raise SqlError(
            "Implicit repartitioning of windowed sources is not supported. "
            "See https://github.com/confluentinc/ksql/issues/4385."
        )
    keys = tuple(scope.plain(e) for e in query.partition_by)
    columns = by_name(before.schema)
    if any(isinstance(key, Literal) and key.kind == "NULL" for key in keys):
        if len(keys) > 1:
            raise SqlError("Cannot PARTITION BY multiple columns including NULL")
        schema = Schema((), before.schema.value)
        return SelectKey("PartitionBy", schema, before, (), formats), KeyRule((), "partitioning expression"), {}
    for key in keys:
        for call in calls_of(key, "aggregate"):
            raise SqlError(f"PARTITION BY does not support aggregate functions: {call.name} is an aggregate function.")
    named: Columns = tuple((group_name(key, aliases), typed(key, columns)) for key in keys)
    check_keys(named)
    features = key_features(formats.key.name, named)
    formats = replace(formats, key=replace(formats.key, features=features))
    check(formats.key, named, True)
    texts = [expression_text(e) for e in query.partition_by]
    own = tuple(Column(name) for name, _ in before.schema.key)
    if keys == own:
        return before, KeyRule(tuple(zip(own, texts, strict=True)), "key column"), {}
    known = dict(before.schema.value)
    added = tuple((name, kind) for (name, kind), key in zip(named, keys, strict=True) if name not in known)
    schema = Schema(named, (*before.schema.value, *added))
    step = SelectKey("PartitionBy", schema, before, keys, formats)
    rule = tuple((Column(name), text) for (name, _), text in zip(named, texts, strict=True))
    became = {key: Column(name) for (name, _), key in zip(named, keys, strict=True)}
    return step, KeyRule(rule, "partitioning expression"), became
