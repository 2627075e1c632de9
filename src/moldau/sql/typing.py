"""The types of expressions: a tree becomes typed nodes in which every coercion is explicit.

`typed` refuses what ksqlDB refuses, in its words. `codegen.py` writes Python of what is left; it needs no types of its
own. A `Typed` has a simple operation, arguments, and what else the operation needs (`data`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from . import casts, tree
from .coercion import Typed, coerced, coerced_list, decimal_type
from .errors import SqlError
from .functions.registry import REGISTRY, Scalar
from .functions.signatures import (
    Argument,
    Bindings,
    LambdaArgument,
    LambdaOf,
    Parameter,
    UnitArgument,
    Variable,
    instantiate,
)
from .printer import expression_text
from .tree import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    Expression,
    Field,
    MapType,
    StructType,
    Type,
)
from .types import TIMES, arithmetic, base, is_numeric, text

OPERATORS = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
DISTINCT = ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")
EQUALITY = ("=", "<>", *DISTINCT)
MOMENTS = ("ROWTIME", "WINDOWSTART", "WINDOWEND")  # BIGINTs that a text of a time is compared with


Columns = Mapping[str, Type]


def type_of(expression: Expression, columns: Columns) -> Type | None:
    """Return the type of an expression; None for an untyped NULL."""
    return typed(expression, columns).type


def typed(expression: Expression, columns: Columns) -> Typed:
    return _Typing(columns, {}).visit(expression)


@dataclass(slots=True)
class _Typing:
    columns: Columns
    variables: dict[str, Type | None]

    def visit(self, node: Expression) -> Typed:
        method = VISITORS.get(type(node))
        if method is None:
            raise SqlError(f"{expression_text(node)} cannot be used here")
        try:
            return method(self, node)
        except RecursionError:
            raise SqlError("The expression is nested too deeply") from None

    def literal(self, node: tree.Literal) -> Typed:
        match node.kind:
            case "NULL":
                return Typed("const", None)
            case "DECIMAL":
                return Typed("const", decimal_type(node.value), data=node.value)
            case "DATE":
                return Typed("const", DATE, data=_time_literal(casts.text_to_date, node.value))
            case "TIME":
                return Typed("const", TIME, data=_time_literal(casts.text_to_time, node.value))
            case "TIMESTAMP":
                return Typed("const", TIMESTAMP, data=_time_literal(casts.text_to_timestamp, node.value))
            case kind:
                return Typed("const", tree.Primitive(kind), data=node.value)

    def column(self, node: tree.Column) -> Typed:
        if node.name not in self.columns:
            raise SqlError(f"Unknown column {expression_text(node)}.")
        return Typed("column", self.columns[node.name], data=node.name)

    def variable(self, node: tree.LambdaVariable) -> Typed:
        if node.name not in self.variables:
            raise SqlError(f"Can't find lambda variable '{node.name}'")
        return Typed("variable", self.variables[node.name], data=node.name)

    def deref(self, node: tree.Deref) -> Typed:
        of = self.visit(node.base)
        if not isinstance(of.type, StructType):
            raise SqlError(f"Expected STRUCT type, got: {text(of.type)}")
        for number, field in enumerate(of.type.fields):
            if field.name == node.name:
                return Typed("field", field.type, (of,), number)
        raise SqlError(f"Could not find field '{node.name}' in '{expression_text(node.base)}'.")

    def subscript(self, node: tree.Subscript) -> Typed:
        of, index = self.visit(node.base), self.visit(node.index)
        match of.type:
            case ArrayType(item):
                return Typed("item", item, (of, index))
            case MapType(key, value):
                return Typed("lookup", value, (of, coerced(index, key)))
            case _:
                hint = (
                    f" Use the dereference operator for STRUCTS: {expression_text(node.base)}->"
                    f"{expression_text(node.index)}"
                    if isinstance(of.type, StructType)
                    else ""
                )
                raise SqlError(f"Subscript expression ({expression_text(node)}) do not apply to {text(of.type)}.{hint}")

    def call(self, node: tree.Call) -> Typed:
        if REGISTRY.kind(node.name) in ("aggregate", "table"):
            raise SqlError(f"{node.name} cannot be used here: it is not a function of one row")
        return self.scalar(node)

    def scalar(self, node: tree.Call) -> Typed:
        """Choose the overload, bind its type variables from left to right, and type lambdas with them."""
        given: list[Typed | None] = []
        arguments: list[Argument] = []
        for each in node.args:
            value = None if isinstance(each, tree.Lambda | tree.IntervalUnit) else self.visit(each)
            given.append(value)
            arguments.append(argument_of(each, value))
        row, bindings = REGISTRY.choose(node.name, arguments)
        if not isinstance(row, Scalar):
            raise SqlError(f"{node.name} cannot be used here: it is not a function of one row")
        parameters = row.signature.stretched(len(arguments))
        assert parameters is not None
        made = tuple(
            self.argument(parameter, each, value, bindings)
            for parameter, each, value in zip(parameters, node.args, given, strict=True)
        )
        types = [each.type for each in made]
        if row.result:
            result: Type | None = row.result(types)
        else:
            result = instantiate(row.signature.result, bindings)
        function = row.make(types) if row.make else row.call
        return Typed("call", result, made, (function, row.takes_nulls, expression_text(node)))

    def argument(self, parameter: Parameter, node: Expression, value: Typed | None, bindings: Bindings) -> Typed:
        if isinstance(node, tree.IntervalUnit):
            return Typed("const", STRING, data=node.unit)
        if isinstance(node, tree.Lambda):
            assert isinstance(parameter, LambdaOf)
            return self.lambda_argument(parameter, node, bindings)
        assert value is not None
        return (
            coerced(value, instantiate(parameter, bindings))
            if not isinstance(value.type, DecimalType) or isinstance(parameter, tree.Primitive | Variable)
            else value
        )

    def lambda_argument(self, parameter: LambdaOf, node: tree.Lambda, bindings: Bindings) -> Typed:
        inner = dict(self.variables)
        for name, each in zip(node.parameters, parameter.inputs, strict=True):
            inner[name] = instantiate(each, bindings)
        body = _Typing(self.columns, inner).visit(node.body)
        wanted = instantiate(parameter.result, bindings)
        if wanted is None and isinstance(parameter.result, Variable) and body.type is not None:
            bindings[parameter.result.name] = body.type
        elif wanted is not None and body.type != wanted:
            if body.type is not None and not (is_numeric(body.type) and is_numeric(wanted)):
                raise SqlError(
                    f"Lambda {expression_text(node)} must return {text(wanted)} but returns {text(body.type)}"
                )
            body = coerced(body, wanted)
        return Typed("lambda", body.type, (body,), node.parameters)

    def cast(self, node: tree.Cast) -> Typed:
        value = self.visit(node.value)
        if value.type is None:
            return Typed("const", node.type)
        if value.type == node.type:
            return value
        return Typed("apply", node.type, (value,), casts.caster(value.type, node.type))

    def arithmetic(self, node: tree.Arithmetic) -> Typed:
        left, right = self.visit(node.left), self.visit(node.right)
        if node.op == "+" and left.type == right.type == STRING:
            return Typed("arithmetic", STRING, (left, right), "concat")
        if left.type is None or right.type is None:
            raise SqlError(
                f"Error processing expression: {expression_text(node)}. Arithmetic on types {text(left.type)} and "
                f"{text(right.type)} are not supported."
            )
        if not is_numeric(left.type) or not is_numeric(right.type):
            raise SqlError(
                f"Error processing expression: {expression_text(node)}. Unsupported arithmetic types. "
                f"{base(left.type)} {base(right.type)}"
            )
        result = arithmetic(node.op, left.type, right.type)
        if isinstance(result, DecimalType):
            return Typed("arithmetic", result, (_as_decimal(left), _as_decimal(right)), node.op)
        return Typed("arithmetic", result, (coerced(left, result), coerced(right, result)), node.op)

    def sign(self, node: tree.Sign) -> Typed:
        value = self.visit(node.value)
        if not is_numeric(value.type):
            raise SqlError(f"Error processing expression: {expression_text(node)}. {text(value.type)} has no sign.")
        return value if node.op == "+" else Typed("negate", value.type, (value,))

    def compare(self, node: tree.Compare) -> Typed:
        return self.comparison(node.op, node.left, node.right, expression_text(node))

    def comparison(self, op: str, one: Expression, two: Expression, shown: str) -> Typed:
        left, right = _moment(self.visit(one), self.visit(two))
        if left.type is None or right.type is None:
            kinds = ["NULL" if each.type is None else base(each.type) for each in (left, right)]
            raise SqlError(
                f"Comparison with NULL not supported: {kinds[0]} {op} {kinds[1]}\n"
                "Use 'IS NULL' or 'IS NOT NULL' instead."
            )
        if not comparable(op, left.type, right.type):
            raise SqlError(
                f"Cannot compare {expression_text(one)} ({text(left.type)}) to {expression_text(two)} "
                f"({text(right.type)}) with {OPERATORS[op]}."
            )
        left, right = _same_kind(left, right)
        return Typed("distinct" if op in DISTINCT else "compare", BOOLEAN, (left, right), op)

    def logical(self, node: tree.Logical) -> Typed:
        return Typed(node.op.lower(), BOOLEAN, (self.boolean(node.left), self.boolean(node.right)))

    def boolean(self, node: Expression) -> Typed:
        value = self.visit(node)
        if value.type not in (BOOLEAN, None):
            raise SqlError(f"{expression_text(node)} ({text(value.type)}) is not a BOOLEAN")
        return value

    def negation(self, node: tree.Not) -> Typed:
        return Typed("not", BOOLEAN, (self.boolean(node.value),))

    def between(self, node: tree.Between) -> Typed:
        shown = expression_text(node)
        low = self.comparison(">=", node.value, node.low, shown)
        return Typed("and", BOOLEAN, (low, self.comparison("<=", node.value, node.high, shown)))

    def membership(self, node: tree.In) -> Typed:
        try:
            values, _ = self.coerced_list([node.value, *node.options])
        except SqlError as error:
            raise SqlError(f"Invalid Predicate: {error}") from None
        return Typed("in", BOOLEAN, tuple(values))

    def like(self, node: tree.Like) -> Typed:
        value, pattern = self.visit(node.value), self.visit(node.pattern)
        if value.type not in (STRING, None) or pattern.type not in (STRING, None):
            raise SqlError(f"LIKE condition must be between strings. Got {text(value.type)} and {text(pattern.type)}")
        return Typed("like", BOOLEAN, (value, pattern), node.escape)

    def is_null(self, node: tree.IsNull) -> Typed:
        return Typed("is null", BOOLEAN, (self.visit(node.value),), node.negated)

    def case(self, node: tree.Case) -> Typed:
        conditions: list[Typed] = []
        for each in node.whens:
            if node.operand is None:
                found = self.visit(each.condition)
                if found.type != BOOLEAN:
                    raise SqlError(
                        "WHEN operand type should be boolean.\n"
                        f"Type for '{expression_text(each.condition)}' is {text(found.type)}"
                    )
            else:
                found = self.comparison("=", node.operand, each.condition, "")
            conditions.append(found)
        results = [self.visit(each.result) for each in node.whens]
        default = Typed("const", None) if node.default is None else self.visit(node.default)
        result = _case_type(node, results, default)
        values = [coerced(each, result) for each in results]
        pairs = [each for pair in zip(conditions, values, strict=True) for each in pair]
        return Typed("case", result, (*pairs, coerced(default, result)))

    def array(self, node: tree.MakeArray) -> Typed:
        issue = "(see https://github.com/confluentinc/ksql/issues/4239)."
        if not node.items:
            raise SqlError(f"Array constructor cannot be empty. Please supply at least one element {issue}")
        values, item = self.coerced_list(node.items)
        if item is None:
            raise SqlError(
                f"Cannot construct an array with all NULL elements {issue} As a workaround, you may cast a NULL value "
                "to the desired type."
            )
        return Typed("array", ArrayType(item), tuple(values))

    def map(self, node: tree.MakeMap) -> Typed:
        issue = "(see https://github.com/confluentinc/ksql/issues/4239)."
        if not node.pairs:
            raise SqlError(f"Map constructor cannot be empty. Please supply at least one key value pair {issue}")
        keys, key = self.coerced_list([each for each, _ in node.pairs])
        values, value = self.coerced_list([each for _, each in node.pairs])
        if key is None or value is None:
            raise SqlError(
                f"Cannot construct a map with all NULL {'keys' if key is None else 'values'} {issue} As a workaround, "
                f"you may cast a NULL {'key' if key is None else 'value'} to the desired type."
            )
        return Typed(
            "map", MapType(key, value), tuple(each for pair in zip(keys, values, strict=True) for each in pair)
        )

    def struct(self, node: tree.MakeStruct) -> Typed:
        values = [(name, self.visit(each)) for name, each in node.fields]
        for name, each in values:
            if each.type is None:
                raise SqlError(f"The field {name} of a struct has no type. Cast the NULL to the desired type.")
        fields = tuple(Field(name, each.type) for name, each in values if each.type is not None)
        return Typed("struct", StructType(fields), tuple(each for _, each in values))

    def coerced_list(self, nodes: Sequence[Expression]) -> tuple[list[Typed], Type | None]:
        return coerced_list(nodes, [self.visit(each) for each in nodes])


def _case_type(node: tree.Case, results: list[Typed], default: Typed) -> Type:
    """Return the type of a CASE, which all its branches must have: nothing is converted."""
    found: Type | None = None
    for when, each in zip(node.whens, results, strict=True):
        if found is not None and each.type not in (None, found):
            branch = f"WHEN {expression_text(when.condition)} THEN {expression_text(when.result)}"
            raise SqlError(
                "Invalid Case expression. Type for all 'THEN' clauses should be the same.\n"
                f"THEN expression '{branch}' has type: {text(each.type)}.\n"
                f"Previous THEN expression(s) type: {text(found)}."
            )
        found = found or each.type
    if found is None and default.type is None:
        raise SqlError("Invalid Case expression. All case branches have NULL type")
    if found is not None and default.type not in (None, found):
        raise SqlError(
            "Invalid Case expression. Type for the default clause should be the same as for 'THEN' clauses.\n"
            f"THEN type: {text(found)}.\nDEFAULT type: {text(default.type)}."
        )
    made = found or default.type
    assert made is not None
    return made


def _time_literal(read: Callable[[str], int], value: str) -> int:
    try:
        return read(value)
    except ValueError as error:
        raise SqlError(str(error)) from None


def argument_of(node: Expression, value: Typed | None) -> Argument:
    if isinstance(node, tree.Lambda):
        return LambdaArgument(len(node.parameters))
    return UnitArgument() if value is None else value.type


def comparable(op: str, left: Type, right: Type) -> bool:
    if is_numeric(left) and is_numeric(right):
        return True
    if left == right == BOOLEAN or isinstance(left, ArrayType | MapType | StructType):
        return op in EQUALITY and base(left) == base(right)
    times = [each for each in (left, right) if each in TIMES]
    if times:
        return left == right or STRING in (left, right) or set(times) == {DATE, TIMESTAMP}
    return left == right


def _moment(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Read a literal text beside ROWTIME or a bound of a window as a time."""

    def is_moment(value: Typed) -> bool:
        return value.op == "column" and value.type == BIGINT and str(value.data).endswith(MOMENTS)

    def read(value: Typed) -> Typed:
        if value.op != "const" or value.type != STRING:
            return value
        return Typed("const", BIGINT, data=_time_literal(casts.text_to_timestamp, value.data))

    if is_moment(left):
        return left, read(right)
    return (read(left), right) if is_moment(right) else (left, right)


def _as_decimal(value: Typed) -> Typed:
    if isinstance(value.type, DecimalType):
        return value
    kind = DecimalType(10, 0) if value.type == INTEGER else DecimalType(19, 0)
    return coerced(value, kind)


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def _same_kind(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Make two values comparable in Python."""
    assert left.type is not None and right.type is not None
    kinds = (base(left.type), base(right.type))
    if "DECIMAL" in kinds and "DOUBLE" in kinds:
        one, two = (
            Typed("apply", each.type, (each,), _exact) if each.type == DOUBLE else each for each in (left, right)
        )
        return one, two
    if STRING in (left.type, right.type) and left.type != right.type:
        target = right.type if left.type == STRING else left.type
        try:
            return coerced(left, target), coerced(right, target)
        except ValueError as error:
            raise SqlError(str(error)) from None
    if set(kinds) == {"DATE", "TIMESTAMP"}:
        return coerced(left, TIMESTAMP), coerced(right, TIMESTAMP)
    return left, right


VISITORS: dict[type, Callable[[_Typing, Any], Typed]] = {
    tree.Literal: _Typing.literal,
    tree.Column: _Typing.column,
    tree.LambdaVariable: _Typing.variable,
    tree.Deref: _Typing.deref,
    tree.Subscript: _Typing.subscript,
    tree.Call: _Typing.call,
    tree.Cast: _Typing.cast,
    tree.Arithmetic: _Typing.arithmetic,
    tree.Sign: _Typing.sign,
    tree.Compare: _Typing.compare,
    tree.Logical: _Typing.logical,
    tree.Not: _Typing.negation,
    tree.Between: _Typing.between,
    tree.In: _Typing.membership,
    tree.Like: _Typing.like,
    tree.IsNull: _Typing.is_null,
    tree.Case: _Typing.case,
    tree.MakeArray: _Typing.array,
    tree.MakeMap: _Typing.map,
    tree.MakeStruct: _Typing.struct,
}
