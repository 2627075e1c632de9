"""The condition of a search: SQL over a record, `value.amount > 1000 and key like 'eu-%'`, or words.

The language is that of expressions in streams: Spark's SQL, in which NULL makes most results NULL. `value.a.b[0]` is a
nested field of JSON or of a value that the registry decoded. A condition is translated to DuckDB's SQL piece by piece
with the tables here; anything else is refused by name, so a condition can do nothing but look at the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlglot
from sqlglot import Expr, exp
from sqlglot.errors import SqlglotError

from moldau.console.model.problems import Refused

LONGEST = 2000
DEEPEST = 100
EXACT = 2**53  # doubles do not represent all larger whole numbers
TEXT, NUMBER, TRUTH, TIME, FIELD = "text", "number", "truth", "time", "field"
COLUMNS = {
    "key": ("key", TEXT),
    "value": ("value", TEXT),
    "partition": ("partition", NUMBER),
    "offset": ('"offset"', NUMBER),
    "timestamp": ('"timestamp"', NUMBER),
    # A record may have a time that no calendar has.
    "time": ('(case when abs("timestamp") < 250000000000000 then make_timestamp("timestamp" * 1000) end)', TIME),
}
HINT = "Write a condition such as value.amount > 1000 and key like 'eu-%', or words to find."
OPERATORS = re.compile(r"[=<>!()\[\]'\"+*/|]")


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL over the columns that it uses."""

    sql: str
    columns: frozenset[str]


class Piece(NamedTuple):
    """SQL of a part of an expression, and the kind of its result. A FIELD is text that may also be a number."""

    sql: str
    kind: str


def condition(text: str) -> Condition:
    """Return the condition of a text; Refused if it is neither a condition nor words."""
    text = text.strip()
    if len(text) > LONGEST:
        raise Refused(f"A search has at most {LONGEST} characters.")
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except (SqlglotError, RecursionError):
        tree = None
    if tree is not None and not isinstance(tree, exp.Column | exp.Literal | exp.Alias | exp.Identifier):
        return _expression(tree)
    if isinstance(tree, exp.Literal) and tree.is_string:
        return words(tree.name)
    if OPERATORS.search(text):
        raise Refused(f"{text[:80]!r} is not a condition. {HINT}")
    return words(text)


def words(text: str) -> Condition:
    """Match records that contain a text anywhere, ignoring case."""
    wanted = quoted(text.lower())
    places = ("key", "value", "cast(headers as varchar)")
    sql = " or ".join(f"coalesce(contains(lower({place}), {wanted}), false)" for place in places)
    return Condition(sql, frozenset(("key", "value", "headers")))


def quoted(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _expression(tree: Expr) -> Condition:
    if sum(1 for _ in tree.walk()) > LONGEST:
        raise Refused("The condition has too many parts.")
    maker = Maker()
    try:
        piece = maker.piece(tree)
    except RecursionError:
        raise Refused("The condition nests too deeply.") from None
    if piece.kind != TRUTH:
        raise Refused(f"{tree.sql(dialect='spark')[:80]} is not a condition: it is neither true nor false. {HINT}")
    return Condition(piece.sql, frozenset(maker.columns))


class Maker:
    """A translator of an expression to SQL, which notes the columns that it uses."""

    def __init__(self) -> None:
        self.columns: set[str] = set()

    def piece(self, tree: Expr) -> Piece:
        path = way(tree)
        if path is not None:
            return self.field(*path)
        make = MAKERS.get(type(tree))
        if make is None:
            raise Refused(f"{tree.sql(dialect='spark')[:60]} cannot be searched for. {HINT}")
        return make(self, tree)

    def field(self, root: str, steps: list[str]) -> Piece:
        """Return a column, or a field below it."""
        if root == "headers" and len(steps) == 1:
            self.columns.add("headers")
            return Piece(f"list_extract(map_extract(headers, {quoted(steps[0])}), 1)", FIELD)
        if root not in COLUMNS or (steps and root not in ("key", "value")):
            raise Refused(f"There is no {'.'.join((root, *steps))}: a record has {', '.join(COLUMNS)} and headers.")
        sql, kind = COLUMNS[root]
        self.columns.add("timestamp" if root == "time" else root)
        if not steps:
            return Piece(sql, kind)
        return Piece(f"json_extract_string({root}_json, {quoted(pointer(steps))})", FIELD)

    def text(self, tree: Expr) -> str:
        piece = self.piece(tree)
        return piece.sql if piece.kind in (TEXT, FIELD) else f"cast({piece.sql} as varchar)"

    def number(self, tree: Expr) -> str:
        piece = self.piece(tree)
        return piece.sql if piece.kind == NUMBER else f"try_cast({piece.sql} as double)"

    def truth(self, tree: Expr) -> str:
        piece = self.piece(tree)
        return piece.sql if piece.kind == TRUTH else f"try_cast({piece.sql} as boolean)"

    def parts(self, tree: Expr) -> list[Expr]:
        found: list[Expr] = []
        for name in tree.arg_types:
            given = tree.args.get(name)
            found += [given] if isinstance(given, Expr) else given if isinstance(given, list) else []
        return found

    def compare(self, left: Expr, right: Expr, sign: str) -> Piece:
        """Compare as times, truths or numbers if one side is one, otherwise as text."""
        one, other = self.piece(left), self.piece(right)
        kinds = {one.kind, other.kind}
        if TIME in kinds:
            sides = [side.sql if side.kind == TIME else f"try_cast({side.sql} as timestamp)" for side in (one, other)]
        elif TRUTH in kinds:
            sides = [self.truth(left), self.truth(right)]
        elif NUMBER in kinds and not _is_large(left) and not _is_large(right):
            sides = [self.number(left), self.number(right)]
        elif kinds == {FIELD} and sign not in ("=", "<>"):
            numbers = f"{self.number(left)} {sign} {self.number(right)}"
            return Piece(f"coalesce({numbers}, {one.sql} {sign} {other.sql})", TRUTH)
        else:
            sides = [self.text(left), self.text(right)]
        return Piece(f"({sides[0]} {sign} {sides[1]})", TRUTH)


def pointer(steps: list[str]) -> str:
    """Return the JSON Pointer of a field."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def _is_large(tree: Expr) -> bool:
    """Say whether this is a whole number too large for a double: it is compared as text."""
    return isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdecimal() and int(tree.name) > EXACT


def way(tree: Expr) -> tuple[str, list[str]] | None:
    """Return a column and the steps below it: a, 0 and b for `value.a[0].b`. None for other expressions."""
    match tree:
        case exp.Column():
            names = [part.name for part in tree.parts]
            return names[0].lower(), names[1:]
        case exp.Dot() if isinstance(tree.expression, exp.Identifier):
            found = way(tree.this)
            return found and (found[0], [*found[1], tree.expression.name])
        case exp.Bracket() if len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Literal):
            found = way(tree.this)
            return found and (found[0], [*found[1], tree.expressions[0].name])
    return None


Make = Callable[[Maker, Any], Piece]


def _comparison(sign: str) -> Make:
    return lambda maker, tree: maker.compare(tree.this, tree.expression, sign)


def _arithmetic(sign: str) -> Make:
    return lambda maker, tree: Piece(f"({maker.number(tree.this)} {sign} {maker.number(tree.expression)})", NUMBER)


def _logic(sign: str) -> Make:
    return lambda maker, tree: Piece(f"({maker.truth(tree.this)} {sign} {maker.truth(tree.expression)})", TRUTH)


def _function(name: str, kind: str, takes: str = TEXT) -> Make:
    """Translate a function whose arguments are all of one kind."""

    def make(maker: Maker, tree: Expr) -> Piece:
        given = maker.text if takes == TEXT else maker.number
        return Piece(f"{name}({', '.join(given(part) for part in maker.parts(tree))})", kind)

    return make


def _pattern(sign: str) -> Make:
    return lambda maker, tree: Piece(
        f"({maker.text(tree.this)} {sign} {maker.text(tree.expression)} escape '\\')", TRUTH
    )


def _literal(maker: Maker, tree: Any) -> Piece:
    if tree.is_string:
        return Piece(quoted(tree.name), TEXT)
    if not re.fullmatch(r"\d+(\.\d*)?([eE][+-]?\d{1,3})?|\.\d+", tree.name):
        raise Refused(f"{tree.name[:40]} is not a number.")
    return Piece(tree.name, NUMBER)


def _substring(maker: Maker, tree: Any) -> Piece:
    rest = [
        f"try_cast({maker.number(tree.args[name])} as bigint)" for name in ("start", "length") if tree.args.get(name)
    ]
    return Piece(f"substring({', '.join((maker.text(tree.this), *rest))})", TEXT)


def _among(maker: Maker, tree: Any) -> Piece:
    if not tree.expressions or tree.args.get("query"):
        raise Refused(f"IN needs a list of values. {HINT}")
    return Piece("(" + " or ".join(maker.compare(tree.this, one, "=").sql for one in tree.expressions) + ")", TRUTH)


def _between(maker: Maker, tree: Any) -> Piece:
    low = maker.compare(tree.this, tree.args["low"], ">=").sql
    return Piece(f"({low} and {maker.compare(tree.this, tree.args['high'], '<=').sql})", TRUTH)


def _is(maker: Maker, tree: Any) -> Piece:
    if isinstance(tree.expression, exp.Null):
        return Piece(f"({maker.piece(tree.this).sql} is null)", TRUTH)
    return Piece(f"({maker.truth(tree.this)} is not distinct from {maker.truth(tree.expression)})", TRUTH)


def _coalesce(maker: Maker, tree: Any) -> Piece:
    pieces = [maker.piece(part) for part in (tree.this, *tree.expressions)]
    if all(piece.kind == NUMBER for piece in pieces):
        return Piece(f"coalesce({', '.join(piece.sql for piece in pieces)})", NUMBER)
    return Piece(f"coalesce({', '.join(maker.text(part) for part in (tree.this, *tree.expressions))})", FIELD)


def _size(maker: Maker, tree: Any) -> Piece:
    path = way(tree.this)
    if path is None or path[0] not in ("key", "value"):
        raise Refused("size is of a list in key or value: size(value.items) > 2.")
    maker.columns.add(path[0])
    return Piece(f"json_array_length({path[0]}_json, {quoted(pointer(path[1]))})", NUMBER)


CASTS = {"TEXT": TEXT, "VARCHAR": TEXT, "INT": NUMBER, "BIGINT": NUMBER, "DOUBLE": NUMBER, "FLOAT": NUMBER}
CASTS |= {"BOOLEAN": TRUTH, "TIMESTAMP": TIME}


def _cast(maker: Maker, tree: Any) -> Piece:
    name = getattr(tree.args["to"].this, "name", "")
    if name not in CASTS:
        raise Refused(f"There is no cast to {name}: there are {', '.join(CASTS)}.")
    return Piece(f"try_cast({maker.piece(tree.this).sql} as {name})", CASTS[name])


MAKERS: dict[type[Expr], Make] = {
    exp.Literal: _literal,
    exp.Boolean: lambda maker, tree: Piece(str(bool(tree.this)).lower(), TRUTH),
    exp.Paren: lambda maker, tree: maker.piece(tree.this),
    exp.Not: lambda maker, tree: Piece(f"(not {maker.truth(tree.this)})", TRUTH),
    exp.And: _logic("and"), exp.Or: _logic("or"), exp.Is: _is, exp.In: _among, exp.Between: _between,
    exp.EQ: _comparison("="), exp.NEQ: _comparison("<>"), exp.LT: _comparison("<"), exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"), exp.GTE: _comparison(">="),
    exp.Add: _arithmetic("+"), exp.Sub: _arithmetic("-"), exp.Mul: _arithmetic("*"), exp.Div: _arithmetic("/"),
    exp.Mod: _arithmetic("%"), exp.Neg: lambda maker, tree: Piece(f"(-{maker.number(tree.this)})", NUMBER),
    exp.Like: _pattern("like"), exp.ILike: _pattern("ilike"),
    exp.RegexpLike: _function("regexp_matches", TRUTH), exp.StartsWith: _function("starts_with", TRUTH),
    exp.EndsWith: _function("ends_with", TRUTH), exp.Contains: _function("contains", TRUTH),
    exp.Upper: _function("upper", TEXT), exp.Lower: _function("lower", TEXT), exp.Trim: _function("trim", TEXT),
    exp.Length: _function("length", NUMBER), exp.Replace: _function("replace", TEXT),
    exp.Concat: _function("concat", TEXT), exp.DPipe: _function("concat", TEXT), exp.Substring: _substring,
    exp.Abs: _function("abs", NUMBER, NUMBER), exp.Round: _function("round", NUMBER, NUMBER),
    exp.Floor: _function("floor", NUMBER, NUMBER), exp.Ceil: _function("ceil", NUMBER, NUMBER),
    exp.Coalesce: _coalesce, exp.Cast: _cast, exp.TryCast: _cast,
    exp.ArraySize: _size,
}  # fmt: skip
