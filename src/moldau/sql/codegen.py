"""Generated Python: WHERE and all columns of a step become one function.

The source consists of names that are generated here and of nothing that a user wrote: constants and functions are
bound in the function's globals. If anything in a row fails, the row is computed again column by column, with each call
guarded: what fails is null and reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any

import regex

from .errors import SqlError
from .printer import expression_text
from .tree import BIGINT, BOOLEAN, DOUBLE, INTEGER, DecimalType, Expression, Type
from .types import text
from .typing import Typed, coerced, typed

Row = tuple[Any, ...]
Report = Callable[[str, BaseException, Row], None]
DEEP = 40  # how deeply brackets are nested before an expression becomes a function of its own
LIKE_SECONDS = 5


def compile_row(
    expressions: Sequence[Expression],
    columns: Sequence[tuple[str, Type]],
    where: Expression | None = None,
    log: Report | None = None,
) -> Callable[[Row], Row | None]:
    """Make a function that computes a row of a row; None if WHERE drops it."""
    types = dict(columns)
    places = {name: number for number, (name, _) in enumerate(columns)}
    made = [typed(each, types) for each in expressions]
    condition = None if where is None else _condition(where, types)
    return _compile(made, [expression_text(each) for each in expressions], places, condition, log)


def constant(expression: Expression, type: Type | None) -> Any:
    """Compute an expression without columns, as a value of a type."""
    value = typed(expression, {})
    result = _compile([coerced(value, type)], [expression_text(expression)], {}, None, _refuse)(())
    assert result is not None
    return result[0]


def _refuse(message: str, cause: BaseException, _row: Row) -> None:
    raise SqlError(f"{message}: {cause}") from None


def _condition(where: Expression, types: dict[str, Type]) -> Typed:
    found = typed(where, types)
    if found.type != BOOLEAN:
        raise SqlError(f"Should evaluate to boolean but is {expression_text(where)} ({text(found.type)}) instead.")
    return found


def _compile(
    made: Sequence[Typed], shown: Sequence[str], places: dict[str, int], condition: Typed | None, log: Report | None
) -> Callable[[Row], Row | None]:
    code = _Code(places)
    values = [code.write(each)[0] for each in made]
    test = None if condition is None else code.write(condition)[0]
    lines = [*code.functions, "def row(r):", "    try:"]
    if test is not None:
        lines.append(f"        if {test} is not True: return None")
    lines.append(f"        return ({', '.join(values)}{',' if len(values) == 1 else ''})")
    lines.append("    except Exception: return slow(r)")
    for number, value in enumerate(values):
        lines += [f"def column{number}(r):", f"    return {value}"]
    if test is not None:
        lines += ["def test(r):", f"    return {test}"]
    source = compile("\n".join(lines), "<sql>", "exec")
    careful = {key: _guarded(value, log) if isinstance(value, _Named) else value for key, value in code.names.items()}
    plain = {key: value.call if isinstance(value, _Named) else value for key, value in code.names.items()}
    exec(source, careful)
    exec(source, plain)
    plain["slow"] = _slow(careful, shown, condition is not None, log)
    return plain["row"]


def _slow(
    names: dict[str, Any], shown: Sequence[str], has_test: bool, log: Report | None
) -> Callable[[Row], Row | None]:
    """Compute a row column by column; what fails is null and reported."""

    def value(name: str, message: str, row: Row) -> Any:
        try:
            return names[name](row)
        except Exception as error:
            if log:
                log(message, error, row)
            return None

    def slow(row: Row) -> Row | None:
        if has_test and value("test", "Error evaluating predicate", row) is not True:
            return None
        return tuple(
            value(f"column{number}", f"Error computing expression {each} for column with index {number}", row)
            for number, each in enumerate(shown)
        )

    return slow


@dataclass(frozen=True, slots=True)
class _Named:
    """A function that can fail, with the text of its call."""

    call: Callable[..., Any]
    shown: str


def _guarded(named: _Named, log: Report | None) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            return named.call(*arguments)
        except Exception as error:
            if log:
                log(f"Failed to evaluate {named.shown}", error, arguments)
            return None

    return call


Written = tuple[str, int]  # source and how deeply its brackets are nested


@dataclass(slots=True)
class _Code:
    places: dict[str, int]
    names: dict[str, Any] = field(default_factory=lambda: dict(GLOBALS))
    functions: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def bind(self, value: Any, prefix: str = "k") -> str:
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def write(self, node: Typed) -> Written:
        source, depth = WRITERS[node.op](self, node)
        if depth < DEEP:
            return source, depth
        name = self.fresh("e")
        passed = ", ".join(["r", *self.variables.values()])
        self.functions += [f"def {name}({passed}):", f"    return {source}"]
        return f"{name}({passed})", 1

    def parts(self, node: Typed) -> tuple[list[str], int]:
        written = [self.write(each) for each in node.args]
        return [source for source, _ in written], max((depth for _, depth in written), default=0)

    def strict(self, node: Typed, template: Callable[..., str]) -> Written:
        """Write an operation whose value is null if an argument is."""
        sources, depth = self.parts(node)
        tests, values = [], []
        for source, arg in zip(sources, node.args, strict=True):
            if arg.op == "lambda" or (arg.op == "const" and arg.data is not None):
                values.append(source)
                continue
            name = self.fresh("t")
            tests.append(f"({name} := {source}) is None")
            values.append(name)
        body = template(*values)
        return (f"(None if {' or '.join(tests)} else {body})" if tests else f"({body})"), depth + 3

    def const(self, node: Typed) -> Written:
        if node.data is None or node.data is True or node.data is False:
            return repr(node.data), 0
        return self.bind(node.data, "c"), 0

    def column(self, node: Typed) -> Written:
        return f"r[{self.places[node.data]}]", 1

    def variable(self, node: Typed) -> Written:
        return self.variables[node.data], 0

    def call(self, node: Typed) -> Written:
        function, takes_nulls, shown = node.data
        name = self.bind(_Named(function, shown), "f")
        if takes_nulls:
            sources, depth = self.parts(node)
            return f"{name}({', '.join(sources)})", depth + 1
        return self.strict(node, lambda *values: f"{name}({', '.join(values)})")

    def apply(self, node: Typed) -> Written:
        name = self.bind(node.data, "a")
        return self.strict(node, lambda value: f"{name}({value})")

    def arithmetic(self, node: Typed) -> Written:
        """Write an operation. In a lambda a null is an error of the whole call, as in ksqlDB."""
        if isinstance(node.type, DecimalType):
            name = self.bind(decimal_operation(node.data, node.type), "d")
            return self.strict(node, lambda left, right: f"{name}({left}, {right})")
        pattern = ARITHMETIC[node.type, node.data] if node.data != "concat" else "{0} + {1}"
        if self.variables:
            sources, depth = self.parts(node)
            return f"({pattern.format(*sources)})", depth + 4
        return self.strict(node, pattern.format)

    def negate(self, node: Typed) -> Written:
        wrap = WRAP_32 if node.type == INTEGER else WRAP_64 if node.type == BIGINT else "{0}"
        return self.strict(node, wrap.replace("{0}", "-{0}").format)

    def compare(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        one, two = self.fresh("t"), self.fresh("t")
        sign = {"=": "==", "<>": "!="}.get(node.data, node.data)
        test = f"({one} := {sources[0]}) is not None and ({two} := {sources[1]}) is not None"
        return f"({test} and {one} {sign} {two})", depth + 3

    def distinct(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"({sources[0]} {'!=' if node.data == 'IS DISTINCT FROM' else '=='} {sources[1]})", depth + 2

    def logical(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"(truth({sources[0]}) {node.op} truth({sources[1]}))", depth + 3

    def negation(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"(not truth({sources[0]}))", depth + 3

    def membership(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        name = self.fresh("t")
        return f"(({name} := {sources[0]}) is not None and {name} in ({', '.join(sources[1:])},))", depth + 3

    def like(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        escape = self.bind(node.data, "c")
        return f"like({sources[0]}, {sources[1]}, {escape})", depth + 2

    def is_null(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"({sources[0]} is {'not ' if node.data else ''}None)", depth + 2

    def case(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        conditions, values, default = sources[:-1:2], sources[1:-1:2], sources[-1]
        if len(conditions) + depth < DEEP:
            chain = "".join(f"{v} if {c} is True else " for c, v in zip(conditions, values, strict=True))
            return f"({chain}{default})", depth + 2
        name = self.fresh("e")
        passed = ", ".join(["r", *self.variables.values()])
        lines = [f"    if {c} is True: return {v}" for c, v in zip(conditions, values, strict=True)]
        self.functions += [f"def {name}({passed}):", *lines, f"    return {default}"]
        return f"{name}({passed})", 1

    def array(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"[{', '.join(sources)}]", depth + 1

    def map(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        pairs = zip(sources[::2], sources[1::2], strict=True)
        return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}", depth + 1

    def struct(self, node: Typed) -> Written:
        sources, depth = self.parts(node)
        return f"({', '.join(sources)}{',' if len(sources) == 1 else ''})", depth + 1

    def field_of(self, node: Typed) -> Written:
        return self.strict(node, lambda value: f"{value}[{node.data}]")

    def item(self, node: Typed) -> Written:
        return self.strict(node, "item({0}, {1})".format)

    def lookup(self, node: Typed) -> Written:
        return self.strict(node, "{0}.get({1})".format)

    def function(self, node: Typed) -> Written:
        outer = dict(self.variables)
        names = [self.fresh("v") for _ in node.data]
        self.variables.update(zip(node.data, names, strict=True))
        source, depth = self.write(node.args[0])
        self.variables = outer
        return f"(lambda {', '.join(names)}: {source})", depth + 1


WRITERS: dict[str, Callable[[_Code, Typed], Written]] = {
    "const": _Code.const,
    "column": _Code.column,
    "variable": _Code.variable,
    "call": _Code.call,
    "apply": _Code.apply,
    "arithmetic": _Code.arithmetic,
    "negate": _Code.negate,
    "compare": _Code.compare,
    "distinct": _Code.distinct,
    "and": _Code.logical,
    "or": _Code.logical,
    "not": _Code.negation,
    "in": _Code.membership,
    "like": _Code.like,
    "is null": _Code.is_null,
    "case": _Code.case,
    "array": _Code.array,
    "map": _Code.map,
    "struct": _Code.struct,
    "field": _Code.field_of,
    "item": _Code.item,
    "lookup": _Code.lookup,
    "lambda": _Code.function,
}

WRAP_32 = "({0} + 0x80000000 & 0xFFFFFFFF) - 0x80000000"
WRAP_64 = "({0} + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000"
ARITHMETIC: dict[tuple[Type | None, str], str] = {
    **{(INTEGER, op): WRAP_32.replace("{0}", f"({{0}} {op} {{1}})") for op in "+-*"},
    **{(BIGINT, op): WRAP_64.replace("{0}", f"({{0}} {op} {{1}})") for op in "+-*"},
    **{(DOUBLE, op): f"{{0}} {op} {{1}}" for op in "+-*"},
    (INTEGER, "/"): WRAP_32.replace("{0}", "quotient({0}, {1})"),
    (BIGINT, "/"): WRAP_64.replace("{0}", "quotient({0}, {1})"),
    (DOUBLE, "/"): "divide({0}, {1})",
    (INTEGER, "%"): "remainder({0}, {1})",
    (BIGINT, "%"): "remainder({0}, {1})",
    (DOUBLE, "%"): "float_remainder({0}, {1})",
}


def _truth(value: Any) -> bool:
    if value is None:
        raise ValueError("a BOOLEAN is null")
    return value


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ZeroDivisionError("/ by zero")
    found = abs(left) // abs(right)
    return found if (left < 0) == (right < 0) else -found


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    if left != left or left == 0 or right != right:
        return float("nan")
    negative = (left < 0) != (str(right)[0] == "-")
    return float("-inf") if negative else float("inf")


def _float_remainder(left: float, right: float) -> float:
    return float("nan") if right == 0 or math.isinf(left) or left != left or right != right else math.fmod(left, right)


def _item(array: list[Any], index: int) -> Any:
    """Return an element by its place from 1, or from the end if it is negative."""
    if index > 0:
        index -= 1
    elif index == 0:
        return None
    return array[index] if -len(array) <= index < len(array) else None


def decimal_operation(op: str, to: DecimalType) -> Callable[[Decimal, Decimal], Decimal]:
    """Return an operation that is exact within the precision of its result, and fails otherwise."""
    failing = [Inexact, DivisionByZero, InvalidOperation]
    context, wide = Context(prec=max(1, to.precision), traps=failing), Context(prec=200, traps=failing)
    unit = Decimal(1).scaleb(-to.scale)
    function = {
        "+": context.add,
        "-": context.subtract,
        "*": context.multiply,
        "/": context.divide,
        "%": lambda left, right: _decimal_remainder(left, right, wide, to.precision),
    }[op]
    return lambda left, right: function(left, right).quantize(unit, context=wide)


def _decimal_remainder(left: Decimal, right: Decimal, context: Context, precision: int) -> Decimal:
    if not right:
        raise ZeroDivisionError("Division by zero")
    whole = context.divide_int(left, right)
    if whole and len(whole.normalize(context).as_tuple().digits) > precision:
        raise ArithmeticError("Division impossible")  # as BigDecimal has it: the quotient needs more digits
    return context.remainder(left, right)


_IN_LINE = "[^\\n\\r\\u0085\\u2028\\u2029]"


@lru_cache(maxsize=1000)
def _like_pattern(pattern: str, escape: str | None) -> regex.Pattern[str]:
    """Translate a pattern, whose wildcards match no ends of lines, as in ksqlDB."""
    made, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if escape is not None and char == escape:
            at += 1
            if at == len(pattern):
                raise ValueError("LIKE pattern must not end with escape character")
            made += regex.escape(pattern[at])
        else:
            made += {"%": f"{_IN_LINE}*", "_": _IN_LINE}.get(char, regex.escape(char))
        at += 1
    return regex.compile(made)


def _like(value: str | None, pattern: str | None, escape: str | None) -> bool:
    if value is None or pattern is None:
        raise ValueError("LIKE compares texts, not null")  # so NOT LIKE is not true either
    return _like_pattern(pattern, escape).fullmatch(value, timeout=LIKE_SECONDS) is not None


GLOBALS: dict[str, Any] = {
    "__builtins__": {"Exception": Exception},
    "truth": _truth,
    "quotient": _quotient,
    "remainder": _remainder,
    "divide": _divide,
    "float_remainder": _float_remainder,
    "item": _item,
    "like": _like,
}
