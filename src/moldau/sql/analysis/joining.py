"""FROM with joins: which kind each join is, the keys on both sides, and the steps.

The rows of a joined source are renamed to ALIAS_COLUMN before they meet, so that expressions of the query can name all
of them. A join of a join is prefixed with L_ in the names of its steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from moldau.sql.analysis.aggregation import group_name, milliseconds
from moldau.sql.analysis.checks import by_name, typed
from moldau.sql.analysis.projection import KeyRule
from moldau.sql.analysis.scope import Aliases, Named, Scope, synthetic_name
from moldau.sql.catalogue import Catalogue, Columns, Format, Schema
from moldau.sql.errors import SqlError
from moldau.sql.format_rules import check_keys, key_features, rule
from moldau.sql.printer import expression_text, quoted, type_text
from moldau.sql.steps import (
    Formats,
    JoinKind,
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
from moldau.sql.tree import Column, Compare, Expression, Join, Logical, Query, SelectAll, SelectItem, Table, Type, walk

Reader = Callable[[Named, str], Read]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: its rows, the columns that may stand for its key, and its left-most source."""

    step: Step
    equal: tuple[Expression, ...]  # qualified expressions that equal the key; the columns among them may stand for it
    source: Named
    aliases: frozenset[str]
    formats: Formats
    foreign: bool = False  # the key is the primary key of the left table of a foreign-key join

    @property
    def viable(self) -> tuple[Column, ...]:
        return tuple(e for e in self.equal if isinstance(e, Column))

    def has_key(self, expression: Expression) -> bool:
        """Tell whether the rows have this key."""
        return len(self.step.schema.key) == 1 and expression in self.equal


@dataclass(frozen=True, slots=True)
class Condition:
    """ON left = right, with each side where it belongs."""

    left: Expression
    right: Expression
    text: str
    flipped: bool  # whether it was written the other way round


def with_synthetic(query: Query, scope: Scope) -> Scope:
    """Let a query name ROWKEY where the key of its join is that of no source."""
    if not isinstance(query.source, Join):
        return scope
    on = query.source.on
    columns = isinstance(on, Compare) and (isinstance(on.left, Column) or isinstance(on.right, Column))
    needed = query.source.kind == "OUTER" or not columns
    return replace(scope, synthetic=synthetic_name(scope.sources) if needed else None)


def join(query: Query, scope: Scope, catalogue: Catalogue, read: Reader) -> tuple[Step, KeyRule]:
    """Make the steps of all joins, and return what SELECT must contain."""
    names = [named.source.name for named in scope.sources if named.source.value_format.name == "KAFKA"]
    if names:
        raise SqlError(
            f"Source(s) {', '.join(names)} are using the 'KAFKA' value format. This format does not yet support JOIN."
        )
    assert isinstance(query.source, Join)
    selected = [item.value for item in query.items if isinstance(item, SelectItem)]
    stars = [item.source for item in query.items if isinstance(item, SelectAll)]
    side = _join(query.source, "", scope, catalogue, read, _Wanted(selected, stars))
    return side.step, _rule(side, scope)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The columns of SELECT, which decide under which name the key of a join goes on."""

    columns: list[Expression]
    stars: list[str | None]  # the aliases of `alias.*`, None of `*`

    def choose(self, viable: tuple[Column, ...]) -> Column:
        for column in viable:
            if column in self.columns or None in self.stars or column.source in self.stars:
                return column
        return viable[0]


def _rule(side: Side, scope: Scope) -> KeyRule:
    if side.foreign:
        keys = tuple((Column(name), name.removeprefix(f"{side.source.alias}_")) for name, _ in side.step.schema.key)
        return KeyRule(keys, "foreign", alternatives=((Column(""), side.source.alias),))
    key = side.step.schema.key
    if not side.viable:
        keys = tuple((Column(name), name) for name, _ in key)
        return KeyRule(keys, "join expression")
    options = tuple((scope.plain(column), expression_text(column)) for column in side.viable)
    return KeyRule(((Column(key[0][0]), options[0][1]),), "join expression", alternatives=options)


def _join(node: Join, prefix: str, scope: Scope, catalogue: Catalogue, read: Reader, wanted: _Wanted) -> Side:
    condition = _condition(node, scope)
    right = _source(node.right, f"{prefix}Right", scope, read)
    if isinstance(node.left, Join):
        left = _join(node.left, f"{prefix}L_", scope, catalogue, read, wanted)
    else:
        left = _source(node.left, f"{prefix}Left", scope, read)
    _check_windows(left, right)
    kinds = (kind_of(left.step), kind_of(right.step))
    if kinds[0] == "STREAM" or left.has_key(condition.left):
        _check_partitions(left, right, catalogue)
    if kinds == ("STREAM", "STREAM"):
        return _streams(node, prefix, condition, left, right, scope, wanted)
    if node.within is not None:
        raise SqlError(_windowed_join(kinds[0] == "STREAM"))
    if kinds == ("STREAM", "TABLE"):
        return _stream_table(node, prefix, condition, left, right, scope, wanted)
    if kinds == ("TABLE", "STREAM"):
        raise SqlError(
            f"Invalid join order: table-stream joins are not supported; only stream-table joins. "
            f"Got {_sources(left, node.kind, right)}."
        )
    return _tables(node, prefix, condition, left, right, scope, wanted)


def _windowed_join(stream: bool) -> str:
    if stream:
        return (
            "A window definition was provided for a Stream-Table join. These joins are not windowed. Please drop the "
            "window definition (ie. the WITHIN clause) and try to execute your join again."
        )
    return (
        "A window definition was provided for a Table-Table join. These joins are not windowed. Please drop the "
        "window definition (i.e. the WITHIN clause) and try to execute your Table-Table join again."
    )


def _words(kind: JoinKind) -> str:
    words = {"INNER": "[INNER] JOIN", "LEFT": "LEFT [OUTER] JOIN", "RIGHT": "RIGHT [OUTER] JOIN"}
    return words.get(kind, "[FULL] OUTER JOIN")


def _sources(left: Side, kind: JoinKind, right: Side) -> str:
    return f"{left.source.source.name} {_words(kind)} {right.source.source.name}"


def _condition(node: Join, scope: Scope) -> Condition:
    on = node.on
    if isinstance(on, Logical) and _is_equality(on.left) and _is_equality(on.right):
        raise SqlError(
            f"Invalid join condition: joins on multiple conditions are not yet supported. Got {expression_text(on)}."
        )
    if not isinstance(on, Compare):
        raise SqlError(f"Unsupported join expression: {expression_text(on)}")
    if not _is_equality(on):
        raise SqlError("Only equality join criteria is supported.")
    sides = [sorted({c.source or "" for c in walk(e) if isinstance(c, Column)}) for e in (on.left, on.right)]
    for expression, found in zip((on.left, on.right), sides, strict=True):
        if len(found) != 1:
            raise SqlError(
                f"Invalid comparison expression '{expression_text(expression)}' in join '{expression_text(on)}'. "
                "Each side of the join comparision must contain references from exactly one source."
            )
    if sides[0] == sides[1]:
        raise SqlError(
            "Each side of the join must reference exactly one source and not the same source. "
            f"Left side references {quoted(sides[0][0])} and right references {quoted(sides[1][0])}"
        )
    (left_alias,), (right_alias,) = sides
    if node.right.alias not in (left_alias, right_alias):
        raise SqlError(
            f"A join criteria is expected to reference the source ({quoted(node.right.alias)}) in the FROM clause, "
            f"instead the right source references {quoted(right_alias)} and the left source references "
            f"{quoted(left_alias)}"
        )
    left, right = (on.left, on.right) if right_alias == node.right.alias else (on.right, on.left)
    text = f"{expression_text(on.left)} = {expression_text(on.right)}"
    return Condition(left, right, text, left is not on.left)


def _is_equality(on: Expression) -> bool:
    return isinstance(on, Compare) and on.op == "="


def _source(table: Table, place: str, scope: Scope, read: Reader) -> Side:
    named = scope.named(table.alias)
    step = read(named, f"KafkaTopic_{place}")
    equal = tuple(Column(name, named.alias) for name, _ in step.schema.key)
    return Side(step, equal, named, frozenset({named.alias}), step.formats)


def _check_windows(left: Side, right: Side) -> None:
    one, other = window_of(left.step), window_of(right.step)
    if (one is None) != (other is None):
        texts = [
            f"{quoted(side.source.alias)} is {'not' if w is None else w.kind} windowed"
            for side, w in ((left, one), (right, other))
        ]
        raise SqlError("Can not join windowed source to non-windowed source.\n" + "\n".join(texts))
    if one is None or other is None:
        return
    if (one.kind == "SESSION") != (other.kind == "SESSION"):
        raise SqlError(
            f"Incompatible windowed sources.\nLeft source: {one.kind}\nRight source: {other.kind}\n"
            "Session windowed sources can only be joined to other session windowed sources, and may still not result "
            "in expected behaviour as session bounds must be an exact match for the join to work\n"
            "Hopping and tumbling windowed sources can only be joined to other hopping and tumbling windowed sources"
        )


def _check_partitions(left: Side, right: Side, catalogue: Catalogue) -> None:
    counts = [catalogue.topics[s.source.source.topic].partitions for s in (left, right)]
    if counts[0] != counts[1]:
        one, other = quoted(left.source.alias), quoted(right.source.alias)
        raise SqlError(
            f"Can't join {one} with {other} since the number of partitions don't match. {one} partitions = "
            f"{counts[0]}; {other} partitions = {counts[1]}. "
            "Please repartition either one so that the number of partitions match."
        )


def _types(condition: Condition, left: Side, right: Side, scope: Scope) -> None:
    """Refuse keys of different types."""
    one = typed(_local(condition.left, left, scope), by_name(left.step.schema))
    other = typed(_local(condition.right, right, scope), by_name(right.step.schema))
    if one == other:
        return
    if kind_of(left.step) == "STREAM":
        raise SqlError(f"Invalid join. Key types differ: {type_text(one, quoted)} vs {type_text(other, quoted)}")
    texts = [
        f"{expression_text(each)}{{{type_text(kind, quoted)}}}"
        for each, kind in ((condition.left, one), (condition.right, other))
    ]
    written = texts[::-1] if condition.flipped else texts
    raise SqlError(f"Invalid join condition: types don't match. Got {' = '.join(written)}.")


def _local(expression: Expression, side: Side, scope: Scope) -> Expression:
    """Write an expression over the rows of a side, which are named ALIAS_COLUMN only after a join or a renaming."""
    if isinstance(side.step, Read):
        return replace(scope, sources=(side.source,)).plain(expression)
    return scope.plain(expression)


def _both_keyed(left: Side, right: Side, condition: Condition, scope: Scope, prefix: str) -> tuple[Side, Side]:
    """Give both sides the key that they are joined by, in one format."""
    prefer_right = right.has_key(condition.right) and not left.has_key(condition.left)
    first, second = (right, left) if prefer_right else (left, right)
    named = (side.formats.key for side in (first, second) if side.formats.key.name != "NONE")
    key_format = next(named, Format("KAFKA"))
    return (
        _keyed(left, condition.left, key_format, scope, f"{prefix}LeftSourceKeyed"),
        _keyed(right, condition.right, key_format, scope, f"{prefix}RightSourceKeyed"),
    )


def _keyed(side: Side, expression: Expression, key_format: Format, scope: Scope, place: str) -> Side:
    """Give rows the key that a join needs. Equal keys must be equal bytes, so they are written anew if their formats
    differ, or if they begin with the id of a schema, which may be another one for the other side.
    """
    registered = isinstance(side.step, Read) and rule(side.formats.key.name).infers
    known = side.has_key(expression)
    if known and not registered and side.formats.key.name == key_format.name:
        return side
    if window_of(side.step) is not None:
        raise SqlError(
            "Implicit repartitioning of windowed sources is not supported. "
            "See https://github.com/confluentinc/ksql/issues/4385."
        )
    local = _local(expression, side, scope)
    columns = by_name(side.step.schema)
    if isinstance(local, Column):
        name = local.name
    else:
        name = group_name(local, Aliases({known for known, _ in side.step.schema.value}))
    key: Columns = ((name, typed(local, columns)),)
    value = side.step.schema.value if name in columns else (*side.step.schema.value, key[0])
    properties = tuple(p for p in key_format.properties if p[0] != "schemaId")
    written = Format(key_format.name, properties, key_features(key_format.name, key))
    formats = replace(side.formats, key=written)
    renamed = f"{side.source.alias}_{name}" if isinstance(side.step, Read) else name
    check_keys(((renamed, key[0][1]),))
    step = SelectKey(place, Schema(key, value), side.step, (local,), formats)
    equal = side.equal if known else (expression,)
    return replace(side, step=step, equal=equal, formats=formats, foreign=False)


def _renamed(side: Side, place: str) -> Side:
    """Name all columns ALIAS_COLUMN; rows of a join have such names already."""
    step = side.step
    inner = step.input if isinstance(step, SelectKey) else step
    if not isinstance(inner, Read):
        return side
    alias = side.source.alias
    columns = tuple((f"{alias}_{name}", Column(name)) for name, _ in step.schema.value)
    value = tuple((f"{alias}_{name}", kind) for name, kind in step.schema.value)
    key = tuple((f"{alias}_{name}", kind) for name, kind in step.schema.key)
    return replace(side, step=Select(f"PrependAlias{place}", Schema(key, value), step, columns))


def _joined_key(
    kind: JoinKind, left: Side, right: Side, condition: Condition, scope: Scope, wanted: _Wanted
) -> tuple[Columns, tuple[Expression, ...]]:
    """Return the key's column after a join, and the expressions that equal it."""
    key_type: Type = left.step.schema.key[0][1]
    equal = tuple(dict.fromkeys((condition.left, condition.right, *left.equal, *right.equal)))
    viable = tuple(e for e in equal if isinstance(e, Column))
    if kind == "OUTER" or not viable:
        return ((synthetic_name(scope.sources), key_type),), ()
    return ((scope.row_name(wanted.choose(viable)), key_type),), equal


def _merged(left: Side, right: Side, key: Columns) -> Schema:
    value = (*left.step.schema.value, *right.step.schema.value)
    known = {name for name, _ in value}
    return Schema(key, (*value, *(column for column in key if column[0] not in known)))


def _streams(
    node: Join, prefix: str, condition: Condition, left: Side, right: Side, scope: Scope, wanted: _Wanted
) -> Side:
    if node.within is None:
        raise SqlError(
            "Stream-Stream joins must have a WITHIN clause specified. None was provided. To learn about how to specify "
            "a WITHIN clause with a stream-stream join, please visit: "
            "https://docs.confluent.io/current/ksql/docs/syntax-reference.html#create-stream-as-select"
        )
    _types(condition, left, right, scope)
    left, right = _both_keyed(left, right, condition, scope, prefix)
    left, right = _renamed(left, f"{prefix}Left"), _renamed(right, f"{prefix}Right")
    key, equal = _joined_key(node.kind, left, right, condition, scope, wanted)
    before, after = milliseconds(node.within.before), milliseconds(node.within.after)
    grace = None if node.within.grace is None else milliseconds(node.within.grace)
    step = StreamStreamJoin(
        f"{prefix}Join",
        _merged(left, right, key),
        left.step,
        right.step,
        node.kind,
        before,
        after,
        grace,
        left.formats,
        right.formats,
    )
    return Side(step, equal, left.source, left.aliases | right.aliases, left.formats)


def _stream_table(
    node: Join, prefix: str, condition: Condition, left: Side, right: Side, scope: Scope, wanted: _Wanted
) -> Side:
    if node.kind == "OUTER":
        raise SqlError(
            "Invalid join type: full-outer join not supported for stream-table join. "
            f"Got {_sources(left, node.kind, right)}."
        )
    if not right.has_key(condition.right):
        raise SqlError(
            "Invalid join condition: stream-table joins require to join on the table's primary key. "
            f"Got {condition.text}."
        )
    _types(condition, left, right, scope)
    if node.kind == "RIGHT":
        raise SqlError(f"Invalid join type encountered: {_words(node.kind)}")
    left, right = _both_keyed(left, right, condition, scope, prefix)
    left, right = _renamed(left, f"{prefix}Left"), _renamed(right, f"{prefix}Right")
    key, equal = _joined_key(node.kind, left, right, condition, scope, wanted)
    step = StreamTableJoin(f"{prefix}Join", _merged(left, right, key), left.step, right.step, node.kind, left.formats)
    return Side(step, equal, left.source, left.aliases | right.aliases, left.formats)


def _tables(
    node: Join, prefix: str, condition: Condition, left: Side, right: Side, scope: Scope, wanted: _Wanted
) -> Side:
    if not right.has_key(condition.right):
        raise SqlError(
            "Invalid join condition: table-table joins require to join on the primary key of the right input table. "
            f"Got {condition.text}."
        )
    if not left.has_key(condition.left):
        return _foreign(node, prefix, condition, left, right, scope)
    _types(condition, left, right, scope)
    left, right = _both_keyed(left, right, condition, scope, prefix)
    left, right = _renamed(left, f"{prefix}Left"), _renamed(right, f"{prefix}Right")
    key, equal = _joined_key(node.kind, left, right, condition, scope, wanted)
    step = TableTableJoin(
        f"{prefix}Join",
        _merged(left, right, key),
        left.step,
        right.step,
        node.kind,
        left.formats,
        right.formats,
    )
    return Side(step, equal, left.source, left.aliases | right.aliases, left.formats)


def _foreign(node: Join, prefix: str, condition: Condition, left: Side, right: Side, scope: Scope) -> Side:
    if node.kind == "OUTER":
        raise SqlError(
            "Invalid join type: full-outer join not supported for foreign-key table-table join. "
            f"Got {_sources(left, node.kind, right)}."
        )
    if not isinstance(left.step, Read) and (scope.strict or not isinstance(left.step, TableTableJoin)):
        raise SqlError(
            "Invalid join condition: foreign-key table-table joins are not supported as part of n-way joins. "
            f"Got {condition.text}."
        )
    _types(condition, left, right, scope)
    if window_of(right.step) is not None:
        raise SqlError("Foreign-key table-table joins are not supported on windowed tables.")
    if node.kind == "RIGHT":
        raise SqlError("RIGHT OUTER JOIN on a foreign key is not supported")
    left, right = _renamed(left, f"{prefix}Left"), _renamed(right, f"{prefix}Right")
    key = left.step.schema.key
    step = TableTableJoin(
        f"{prefix}Join",
        _merged(left, right, key),
        left.step,
        right.step,
        node.kind,
        left.formats,
        right.formats,
        scope.plain(condition.left),
    )
    return Side(step, left.equal, left.source, left.aliases | right.aliases, left.formats, foreign=True)
