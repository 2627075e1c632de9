"""What ksqlDB refuses in the WHERE of a pull query, in its words; `ksql.dialect=strict` keeps to it."""

from __future__ import annotations

from moldau.sql.catalogue import BOUNDS, Source
from moldau.sql.errors import SqlError
from moldau.sql.printer import expression_text, quoted
from moldau.sql.tree import Between, Column, Compare, Expression, In, Like, Logical, Not, walk
from moldau.sql.typing import OPERATORS

MORE = " See https://cnfl.io/queries for more info."
PUSH_HINT = f"{MORE}\nAdd EMIT CHANGES if you intended to issue a push query."
BOUND_NAMES = frozenset(name for name, _ in BOUNDS)
BOUND_OPERATORS = ("=", ">", ">=", "<", "<=")
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_HELP = (
    "\nPull queries require a WHERE clause that:\n"
    " - includes a key equality expression, e.g. `SELECT * FROM X WHERE <key-column> = Y;`.\n"
    " - in the case of a multi-column key, is a conjunction of equality expressions that cover all key columns.\n"
    " - to support range expressions, e.g.,  SELECT * FROM X WHERE <key-column> < Y;`, range scans need to be enabled "
    "by setting ksql.query.pull.range.scan.enabled=true"
)
_WINDOWED = (
    "\n - (optionally) limits the time bounds of the windowed table.\n"
    "\t Bounds on [`WINDOWSTART`, `WINDOWEND`] are supported\n"
    f"\t Supported operators are [{', '.join(OPERATORS[op] for op in BOUND_OPERATORS)}]"
)
_SCANS = (
    "\nIf more flexible queries are needed, , table scans can be enabled by setting "
    "ksql.query.pull.table.scan.enabled=true."
)


def refused_where(message: str, windowed: bool) -> SqlError:
    """Return the refusal of a WHERE, with ksqlDB's advice."""
    return SqlError(f"{message}. {PUSH_HINT}{_HELP}{_WINDOWED if windowed else ''}{_SCANS}")


def pushed_down(where: Expression, negated: bool = False) -> Expression:
    """Write a condition with NOT only before what has no opposite, and with IN and BETWEEN as comparisons."""
    match where:
        case Not(value):
            return pushed_down(value, not negated)
        case Logical(op=op, left=left, right=right):
            word = {"AND": "OR", "OR": "AND"}[op] if negated else op
            return Logical("OR" if word == "OR" else "AND", pushed_down(left, negated), pushed_down(right, negated))
        case In(value, options):
            first, *others = (Compare("=", value, option) for option in options)
            joined: Expression = first
            for each in others:
                joined = Logical("OR", joined, each)
            return pushed_down(joined, negated)
        case Between(value, low, high):
            return pushed_down(Logical("AND", Compare(">=", value, low), Compare("<=", value, high)), negated)
        case Compare(op=op) if negated and op in NEGATED:
            return Compare(NEGATED[op], where.left, where.right)
        case _:
            return Not(where) if negated else where


def check_parts(parts: list[list[Expression]], source: Source) -> None:
    """Check the alternatives of a condition up to the first one that only a scan can answer."""
    for part in parts:
        for condition in part:
            _check(condition)
        if any(_needs_scan(condition, source) for condition in part) or not any(_on_key(c, source) for c in part):
            return
    if source.window is not None:
        for part in parts:
            _check_bounds(part)


def _check(condition: Expression) -> None:
    if not isinstance(condition, Compare | Like):
        raise refused_where(f"Unsupported expression in WHERE clause: {expression_text(condition)}", False)
    name = _column(condition)
    if not isinstance(condition, Compare) or name not in BOUND_NAMES or name is None:
        return
    if condition.op not in BOUND_OPERATORS and not _has_column(_other(condition)):
        raise refused_where(f"Unsupported {quoted(name)} bounds: {OPERATORS[condition.op]}", True)


def _column(condition: Expression) -> str | None:
    """Return the column that a comparison is about; the right one if both sides are columns."""
    if not isinstance(condition, Compare):
        return None
    sides = (condition.right, condition.left)
    return next((side.name for side in sides if isinstance(side, Column)), None)


def _other(condition: Compare) -> Expression:
    return condition.left if isinstance(condition.right, Column) else condition.right


def _has_column(expression: Expression) -> bool:
    return any(isinstance(node, Column) for node in walk(expression))


def _on_key(condition: Expression, source: Source) -> bool:
    return _column(condition) in dict(source.schema.key)


def _needs_scan(condition: Expression, source: Source) -> bool:
    if isinstance(condition, Like):
        return not isinstance(condition.value, Column)
    assert isinstance(condition, Compare)
    if _column(condition) is None or _has_column(_other(condition)):
        return True
    return _on_key(condition, source) and condition.op not in BOUND_OPERATORS


def _check_bounds(part: list[Expression]) -> None:
    """Refuse a bound of windows that is given twice, or beside the window itself."""
    seen: dict[str, set[str]] = {}
    for condition in part:
        name = _column(condition)
        if name not in BOUND_NAMES or name is None or not isinstance(condition, Compare):
            continue
        op = FLIPPED.get(condition.op, condition.op) if isinstance(condition.right, Column) else condition.op
        kind = op[0]
        known = seen.setdefault(name, set())
        if "=" in known | {kind} and len(known | {kind}) > 1:
            text = expression_text(condition)
            raise refused_where(f"`{text}` cannot be combined with other {quoted(name)} bounds", True)
        if kind in known:
            raise refused_where(f"Duplicate {quoted(name)} bounds on: {OPERATORS[kind]}", True)
        known.add(kind)
