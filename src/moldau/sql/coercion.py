"""Implicit conversions: of one value to a type, and of several to the type that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from moldau.java.numbers import double_text, plain_text, trim

from . import casts, tree
from .errors import SqlError
from .printer import expression_text
from .tree import BIGINT, DOUBLE, INTEGER, STRING, ArrayType, DecimalType, Expression, Field, MapType, StructType, Type
from .types import base, is_numeric, text, wider

HINT = "\nHint: You might need to add explicit type casts."


@dataclass(frozen=True, slots=True)
class Typed:
    """An operation, the type of its value, its arguments, and what else it needs."""

    op: str
    type: Type | None
    args: tuple[Typed, ...] = ()
    data: Any = None


def coerced(value: Typed, target: Type | None) -> Typed:
    """Convert a value implicitly."""
    if target is None or value.type == target:
        return value
    if value.type is None:
        return Typed("const", target)
    convert = casts.caster(value.type, target)
    if value.op == "const":
        try:
            return Typed("const", target, data=None if value.data is None else convert(value.data))
        except (ValueError, ArithmeticError):
            pass  # it fails again for each row: null and an entry in the processing log
    return Typed("apply", target, (value,), convert)


def decimal_type(value: Decimal) -> DecimalType:
    """Return the type of a decimal literal: as many digits as it has, one of them before the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    return DecimalType(max(len(digits) + max(0, exponent), scale + 1 if abs(value) < 1 else scale), scale)


def coerced_list(nodes: Sequence[Expression], values: list[Typed]) -> tuple[list[Typed], Type | None]:
    """Convert values to the type that they have in common. Literals take the type of the others."""
    common: Type | None = None
    lax = True
    for node, value in zip(nodes, values, strict=True):
        if value.type is None:
            continue
        loose = _is_literal(node)
        if common is None:
            common, lax = value.type, loose
        else:
            common, lax = _combine(common, lax, value.type, loose, nodes, node)
    if common is None:
        return values, None
    return [_fitted(node, value, common) for node, value in zip(nodes, values, strict=True)], common


def _is_literal(node: Expression) -> bool:
    """Say whether a value consists of literals alone, which take the type of others."""
    match node:
        case tree.Literal():
            return True
        case tree.MakeArray(items):
            return all(map(_is_literal, items))
        case tree.MakeMap(pairs):
            return all(_is_literal(key) and _is_literal(value) for key, value in pairs)
        case tree.MakeStruct(fields):
            return all(_is_literal(value) for _, value in fields)
        case _:
            return False


def _combine(
    common: Type, lax: bool, found: Type, loose: bool, nodes: Sequence[Expression], node: Expression
) -> tuple[Type, bool]:
    try:
        return _merged(common, lax, found, loose, node, nodes), lax and loose
    except _Mismatch:
        raise SqlError(
            f"operator does not exist: {text(common)} = {text(found)} ({expression_text(node)}){HINT}"
        ) from None


class _Mismatch(Exception):
    """Two types have none in common."""


def _merged(one: Type, lax: bool, two: Type, loose: bool, node: Expression, nodes: Sequence[Expression]) -> Type:
    if one == two:
        return one
    if is_numeric(one) and is_numeric(two):
        return wider(one, two)
    if two == STRING and loose and not isinstance(one, ArrayType | MapType | StructType):
        return _with_text(one, node)
    if one == STRING and lax and not isinstance(two, ArrayType | MapType | StructType):
        found = two
        for each in nodes:
            if isinstance(each, tree.Literal) and each.kind == "STRING":
                found = _with_text(found, each)
        return found
    if one == STRING and loose and not isinstance(two, ArrayType | MapType | StructType):
        return STRING
    match one, two:
        case ArrayType(first), ArrayType(second):
            return ArrayType(_merged(first, lax, second, loose, node, ()))
        case MapType(), MapType():
            key = _merged(one.key, lax, two.key, loose, node, ())
            return MapType(key, _merged(one.value, lax, two.value, loose, node, ()))
        case StructType(), StructType():  # the fields of the later one come first
            known = {each.name: each.type for each in one.fields}
            fields = [
                Field(f.name, _merged(known.pop(f.name), lax, f.type, loose, node, ()) if f.name in known else f.type)
                for f in two.fields
            ]
            return StructType((*fields, *(Field(name, type) for name, type in known.items())))
        case _:
            raise _Mismatch


def _with_text(type: Type, node: Expression) -> Type:
    """Return the type that holds values of a type and a literal text, which is a number beside numbers."""
    if not is_numeric(type) or not isinstance(node, tree.Literal):
        return type
    value = _number(str(node.value))
    if value is None:
        raise SqlError(f'invalid input syntax for type {base(type)}: "{node.value}".')
    if trim(str(node.value)).lstrip("+-").isdigit():
        exact = INTEGER if -(1 << 31) <= value < 1 << 31 else BIGINT
        return wider(type, exact)
    return wider(type, decimal_type(value))


def _number(value: str) -> Decimal | None:
    try:
        found = Decimal(trim(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _fitted(node: Expression, value: Typed, target: Type) -> Typed:
    """Convert a value of a list; a literal text is read as the type, and refused if it is none."""
    if value.type == target:
        return value
    if isinstance(node, tree.Literal) and node.kind != "NULL":
        return Typed("const", target, data=_read_literal(node, value, target))
    _check_texts(node, target)
    try:
        return coerced(value, target)
    except ValueError as error:
        raise SqlError(str(error)) from None


def _read_literal(node: tree.Literal, value: Typed, target: Type) -> Any:
    if target == STRING:
        shown = {bool: lambda v: "true" if v else "false", Decimal: plain_text, float: double_text}
        return shown.get(type(node.value), str)(node.value)
    if node.kind != "STRING":
        return coerced(value, target).data
    try:
        if is_numeric(target):
            number = _number(node.value)
            if number is None or (target in (INTEGER, BIGINT) and number != number.to_integral_value()):
                raise ValueError
            return casts.fit(number, target) if isinstance(target, DecimalType) else _exactly(number, target)
        return casts.caster(STRING, target)(node.value)
    except ValueError:
        raise SqlError(f'invalid input syntax for type {base(target)}: "{node.value}".') from None


def _exactly(number: Decimal, target: Type) -> int | float:
    return float(number) if target == DOUBLE else int(number)


def _check_texts(node: Expression, target: Type) -> None:
    """Refuse a literal text inside a constructor that is no value of the type."""
    match node, target:
        case tree.MakeArray(items), ArrayType(item):
            for each in items:
                _check_texts(each, item)
        case tree.MakeMap(pairs), MapType(key, value):
            for one, two in pairs:
                _check_texts(one, key)
                _check_texts(two, value)
        case tree.MakeStruct(fields), StructType(kinds):
            known = {each.name: each.type for each in kinds}
            for name, each in fields:
                _check_texts(each, known[name])
        case tree.Literal(kind="STRING"), _ if target != STRING:
            _read_literal(node, Typed("const", STRING, data=node.value), target)
        case _:
            pass
