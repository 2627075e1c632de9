"""Values that a statement gives for a column: they are widened, and texts are read as times or bytes; nothing else."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from moldau.sql import casts
from moldau.sql.codegen import constant
from moldau.sql.tree import BYTES, DOUBLE, STRING, ArrayType, DecimalType, Expression, MapType, StructType, Type
from moldau.sql.types import RANK, TIMES, base
from moldau.sql.typing import type_of


class CannotCoerceError(ValueError):
    """A value of a type that its column does not take."""


def given_value(expression: Expression, target: Type) -> Any:
    """Compute an expression without columns as a value for a column; CannotCoerceError says what it is instead."""
    source = type_of(expression, {})
    value = constant(expression, source)
    try:
        return coerced(value, source, target)
    except (ValueError, ArithmeticError):
        assert source is not None
        raise CannotCoerceError(f"{base(source)}({casts.java_text(source)(value)})") from None


def coerced(value: Any, source: Type | None, target: Type) -> Any:
    """Coerce a value to a type; ValueError or ArithmeticError if that is not possible without loss."""
    if value is None or source == target:
        return value
    match source, target:
        case ArrayType(one), ArrayType(two):
            return [coerced(each, one, two) for each in value]
        case MapType(), MapType():
            return {
                coerced(key, source.key, target.key): coerced(each, source.value, target.value)
                for key, each in value.items()
            }
        case StructType(), StructType():
            known = {field.name: (each, field.type) for field, each in zip(source.fields, value, strict=True)}
            return tuple(coerced(*known.get(field.name, (None, None)), field.type) for field in target.fields)
        case _ if source == STRING and target in (*TIMES, BYTES):
            return casts.caster(STRING, target)(value)
        case _ if RANK.get(base(source), 9) <= RANK.get(base(target), -1):
            if isinstance(target, DecimalType):
                return casts.exact_decimal(Decimal(value), target)
            return float(value) if target == DOUBLE else value
        case _:
            raise ValueError("the types do not fit")
