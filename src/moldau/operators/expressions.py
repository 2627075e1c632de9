"""SQL expressions over a record, `value.amount > 1000 and key is not null`, as functions of the record.

Syntax and meaning are Spark's: None is NULL and makes most results NULL, `and` and `or` have three values, `/` returns
a double, division by zero is an error. What is not in the tables below is refused by name.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import Expr, exp
from sqlglot.errors import SqlglotError

from .context import UNKNOWN_TIME, Context, TopologyError
from .record import Record

Evaluate = Callable[[Record], Any]
MAX_LENGTH = 10_000
COLUMNS: dict[str, Evaluate] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "timestamp": lambda record: record.timestamp,
    "headers": lambda record: dict(record.headers),
}


def parse(text: str, node: str) -> Expr:
    """Return the expression as a tree, and refuse what is not an expression."""
    if len(text) > MAX_LENGTH:
        raise TopologyError(f"the expression of {node} is longer than {MAX_LENGTH} characters: use a function")
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except (SqlglotError, RecursionError) as error:
        raise TopologyError(f"the expression {text[:80]!r} of {node} is not valid SQL: {first_line(error)}") from None
    if not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query | exp.AggFunc):
        raise TopologyError(f"{text[:80]!r} of {node} is not an expression over key, value, timestamp and headers")
    return tree


def first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0] or "it nests too deeply"


@lru_cache(maxsize=1000)
def evaluation(text: str, node: str) -> Evaluate:
    """Compile the expression into a function, and refuse one that uses something unknown."""
    try:
        return compile_tree(parse(text, node))
    except Unknown as error:
        raise TopologyError(f"the expression {text[:80]!r} of {node} uses {error}: write it as a function") from None
    except RecursionError:
        raise TopologyError(f"the expression of {node} nests too deeply: write it as a function") from None


class Unknown(Exception):
    """A part of an expression that is unknown, in words."""


def compile_tree(tree: Expr) -> Evaluate:
    kind = type(tree)
    if kind in STRICT:
        return strict(STRICT[kind], [compile_tree(part) for part in parts(tree)])
    if kind in SPECIAL:
        return SPECIAL[kind](tree)
    raise Unknown(f"{tree.sql(dialect='spark')[:60]}, which cannot be evaluated here")


def parts(tree: Expr) -> list[Expr]:
    """Return the arguments of an operator or a function in the order in which they are written."""
    found: list[Expr] = []
    for name in tree.arg_types:
        given = tree.args.get(name)
        if isinstance(given, Expr):
            found.append(given)
        elif isinstance(given, list):
            found += given
    return found


def strict(function: Callable[..., Any], arguments: Sequence[Evaluate]) -> Evaluate:
    """Return a function whose result is NULL if any argument is."""
    if len(arguments) == 2:
        left, right = arguments

        def of_two(record: Record) -> Any:
            one, other = left(record), right(record)
            return None if one is None or other is None else function(one, other)

        return of_two

    def all_of(record: Record) -> Any:
        values = [argument(record) for argument in arguments]
        return None if any(value is None for value in values) else function(*values)

    return all_of


def whole(left: Any, right: Any) -> int:
    """Divide towards zero, as SQL does."""
    quotient = abs(left) // abs(right)
    return int(quotient if (left < 0) == (right < 0) else -quotient)


def remainder(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        return left - right * whole(left, right)
    return math.fmod(left, right)


def rounded(number: Any, digits: int = 0) -> Any:
    """Round halves away from zero."""
    scale = 10**digits
    up = math.floor(abs(number) * scale + 0.5) / scale
    signed = math.copysign(up, number)
    return int(signed) if isinstance(number, int) else signed


def substring(text: str, start: int, length: int | None = None) -> str:
    """Count from 1, or from the end if `start` is negative."""
    begin = start - 1 if start > 0 else max(len(text) + start, 0) if start < 0 else 0
    return text[begin:] if length is None else text[begin : begin + max(length, 0)]


def like(text: str, pattern: str) -> bool:
    rest = iter(pattern)
    regex = "".join(
        ".*" if c == "%" else "." if c == "_" else re.escape(next(rest, c) if c == "\\" else c) for c in rest
    )
    return re.fullmatch(regex, text, re.DOTALL) is not None


def compare(decide: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Compare a text with a number as numbers."""

    def compared(left: Any, right: Any) -> bool:
        if isinstance(left, str) is not isinstance(right, str):
            left, right = (float(side) if isinstance(side, str) else side for side in (left, right))
        return decide(left, right)

    return compared


STRICT: dict[type[Expr], Callable[..., Any]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul, exp.Neg: operator.neg,
    exp.Div: operator.truediv, exp.IntDiv: whole, exp.Mod: remainder,
    exp.EQ: compare(operator.eq), exp.NEQ: compare(operator.ne), exp.LT: compare(operator.lt),
    exp.LTE: compare(operator.le), exp.GT: compare(operator.gt), exp.GTE: compare(operator.ge),
    exp.Not: operator.not_, exp.Like: like, exp.ILike: lambda text, pattern: like(text.lower(), pattern.lower()),
    exp.RegexpLike: lambda text, pattern: re.search(pattern, text) is not None,
    exp.DPipe: lambda left, right: as_text(left) + as_text(right),
    exp.Concat: lambda *texts: "".join(map(as_text, texts)),
    exp.Upper: str.upper, exp.Lower: str.lower, exp.Length: len, exp.Trim: str.strip,
    exp.Substring: substring, exp.StartsWith: str.startswith, exp.EndsWith: str.endswith,
    exp.Contains: lambda text, part: part in text, exp.Replace: str.replace,
    exp.Abs: abs, exp.Round: rounded, exp.Floor: math.floor, exp.Ceil: math.ceil,
    exp.ArraySize: len, exp.ArrayContains: lambda items, item: item in items,
}  # fmt: skip


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def literal(tree: Expr) -> Evaluate:
    text = tree.name
    return constant(text if tree.is_string else int(text) if text.isdecimal() else float(text))


def constant(value: Any) -> Evaluate:
    return lambda record: value


def column(tree: Expr) -> Evaluate:
    """Compile `value.a.b`: key, value, timestamp or headers, and fields below."""
    names = [part.name for part in getattr(tree, "parts", [tree])]
    start = COLUMNS.get(names[0].lower())
    if start is None:
        raise Unknown(f"the name {names[0]}, which is none of {', '.join(COLUMNS)}")
    for name in names[1:]:
        start = field(start, name)
    return start


def field(inner: Evaluate, name: str) -> Evaluate:
    def find(record: Record) -> Any:
        found = inner(record)
        return found.get(name) if isinstance(found, dict) else getattr(found, name, None)

    return find


def bracket(tree: Expr) -> Evaluate:
    (place,) = (compile_tree(part) for part in tree.expressions)
    inner = compile_tree(tree.this)

    def find(record: Record) -> Any:
        found, at = inner(record), place(record)
        if found is None or at is None:
            return None
        if isinstance(found, dict):
            return found.get(at)
        return found[at] if 0 <= at < len(found) else None

    return find


def logic(decisive: bool) -> Callable[[Expr], Evaluate]:
    """Return what compiles AND, which False on either side decides, or OR, which True does."""

    def compile_sides(tree: Expr) -> Evaluate:
        left, right = compile_tree(tree.this), compile_tree(tree.expression)

        def decide(record: Record) -> Any:
            one = left(record)
            if one is decisive:
                return decisive
            other = right(record)
            return decisive if other is decisive else None if one is None or other is None else not decisive

        return decide

    return compile_sides


both, either = logic(False), logic(True)


def same(tree: Expr) -> Evaluate:
    """Compile IS NULL, IS TRUE and <=>, which are never NULL."""
    left, right = compile_tree(tree.this), compile_tree(tree.expression)
    return lambda record: left(record) == right(record)


def different(tree: Expr) -> Evaluate:
    left, right = compile_tree(tree.this), compile_tree(tree.expression)
    return lambda record: left(record) != right(record)


def among(tree: Expr) -> Evaluate:
    if not tree.expressions:
        raise Unknown("IN without a list of values")
    wanted, items = compile_tree(tree.this), [compile_tree(part) for part in tree.expressions]
    equal = STRICT[exp.EQ]

    def find(record: Record) -> Any:
        value, known = wanted(record), [item(record) for item in items]
        if value is None:
            return None
        if any(item is not None and equal(value, item) for item in known):
            return True
        return None if None in known else False

    return find


def between(tree: Expr) -> Evaluate:
    low = exp.GTE(this=tree.this, expression=tree.args["low"])
    return both(exp.And(this=low, expression=exp.LTE(this=tree.this, expression=tree.args["high"])))


def case(tree: Expr) -> Evaluate:
    subject = tree.this
    ways = []
    for way in tree.args.get("ifs") or ():
        test = way.this if subject is None else exp.EQ(this=subject, expression=way.this)
        ways.append((compile_tree(test), compile_tree(way.args["true"])))
    return chosen(ways, tree.args.get("default"))


def when(tree: Expr) -> Evaluate:
    return chosen([(compile_tree(tree.this), compile_tree(tree.args["true"]))], tree.args.get("false"))


def chosen(ways: list[tuple[Evaluate, Evaluate]], default: Expr | None) -> Evaluate:
    otherwise = compile_tree(default) if default is not None else nothing

    def choose(record: Record) -> Any:
        for test, result in ways:
            if test(record) is True:
                return result(record)
        return otherwise(record)

    return choose


def nothing(record: Record) -> None:
    """NULL."""


def coalesce(tree: Expr) -> Evaluate:
    ways = [compile_tree(tree.this), *(compile_tree(part) for part in tree.expressions)]
    return lambda record: next((found for way in ways if (found := way(record)) is not None), None)


def nullif(tree: Expr) -> Evaluate:
    left, right = compile_tree(tree.this), compile_tree(tree.expression)

    def decide(record: Record) -> Any:
        value = left(record)
        return None if value == right(record) else value

    return decide


def truth(value: Any) -> bool:
    if isinstance(value, str):
        return {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}[value.strip().lower()]
    return bool(value)


def integer(value: Any) -> int:
    return int(value) if not isinstance(value, str) else int(value.strip())


CASTS: dict[str, Callable[[Any], Any]] = {
    "TEXT": as_text, "VARCHAR": as_text, "STRING": as_text, "INT": integer, "BIGINT": integer, "SMALLINT": integer,
    "TINYINT": integer, "DOUBLE": float, "FLOAT": float, "BOOLEAN": truth,
}  # fmt: skip


def cast(tree: Expr) -> Evaluate:
    to = tree.args["to"].this
    name = getattr(to, "name", str(to))
    if name not in CASTS:
        raise Unknown(f"a cast to {name}")
    return strict(CASTS[name], [compile_tree(tree.this)])


SPECIAL: dict[type[Expr], Callable[[Any], Evaluate]] = {
    exp.Literal: literal, exp.Boolean: lambda tree: constant(bool(tree.this)), exp.Null: lambda tree: nothing,
    exp.Column: column, exp.Dot: lambda tree: field(compile_tree(tree.this), tree.expression.name),
    exp.Bracket: bracket, exp.Paren: lambda tree: compile_tree(tree.this), exp.And: both, exp.Or: either, exp.Is: same,
    exp.NullSafeEQ: same, exp.NullSafeNEQ: different, exp.In: among, exp.Between: between, exp.Case: case, exp.If: when,
    exp.Coalesce: coalesce, exp.Nullif: nullif, exp.Cast: cast, exp.TryCast: cast,
}  # fmt: skip


class ExpressionFilter:
    """A filter: it passes records for which the expression is true, neither false nor NULL."""

    def __init__(self, text: str, node: str) -> None:
        self.evaluate = evaluation(text, node)

    def init(self, context: Context) -> None:
        self.emit = context.emit

    def process(self, record: Record) -> None:
        if self.evaluate(record) is True:
            self.emit(record)


class ExpressionKey(ExpressionFilter):
    """The expression's result as key."""

    def process(self, record: Record) -> None:
        self.emit(record.with_key(self.evaluate(record)))


class ExpressionValue(ExpressionFilter):
    """The expression's result as value."""

    def process(self, record: Record) -> None:
        self.emit(record.with_value(self.evaluate(record)))


def of_key_and_value(text: str, node: str) -> Callable[[Any, Any], Any]:
    """Compile into a function of key and value, for tables."""
    for name in parse(text, node).find_all(exp.Column):
        if name.parts[0].name.lower() in ("timestamp", "headers"):
            raise TopologyError(f"the expression {text[:80]!r} of {node} is of a table, which has key and value alone")
    evaluate = evaluation(text, node)
    return lambda key, value: evaluate(Record(key, value, UNKNOWN_TIME))
