"""Signatures of functions: read from a line of text, matched with the types of arguments, chosen among overloads.

`substring(STRING text, INTEGER start, INTEGER length) -> STRING` is a signature; `T...` is a parameter that may occur
any number of times; a single capital letter (or U1 ..) is any type, the same in all places; `DECIMAL` is one of any
size; `ANY` is any type, another in each place; `LAMBDA<T, BOOLEAN>` takes a T and returns a BOOLEAN.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import SqlError
from ..tree import ArrayType, DecimalType, Field, MapType, Primitive, StructType, Type
from ..types import PRIMITIVES, fits, text


@dataclass(frozen=True, slots=True)
class Variable:
    """A type that the arguments decide."""

    name: str


@dataclass(frozen=True, slots=True)
class LambdaOf:
    """A function as a parameter."""

    inputs: tuple[Parameter, ...]
    result: Parameter


@dataclass(frozen=True, slots=True)
class LambdaArgument:
    """A function as an argument, of which only the number of its parameters is known."""

    inputs: int


@dataclass(frozen=True, slots=True)
class UnitArgument:
    """A unit of time as a parameter and as an argument."""


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A decimal of any precision and scale."""


@dataclass(frozen=True, slots=True)
class AnyType:
    """A value of any type."""


@dataclass(frozen=True, slots=True)
class ArrayOf:
    item: Parameter


@dataclass(frozen=True, slots=True)
class MapOf:
    key: Parameter
    value: Parameter


Parameter: TypeAlias = (
    "Primitive | DecimalType | StructType | Variable | LambdaOf | UnitArgument | AnyDecimal | AnyType | ArrayOf | MapOf"
)
Argument: TypeAlias = "Type | LambdaArgument | UnitArgument | None"
Bindings = dict[str, Type]

_TOKEN = re.compile(r"\s*(->|\.\.\.|[A-Za-z_][A-Za-z_0-9]*|\d+|[<>(),`])")
_VARIABLE = re.compile(r"[A-Z][0-9]?")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters and the result of a function. `variadic` is the place of the parameter that may repeat."""

    name: str  # as it is written in messages
    parameters: tuple[Parameter, ...]
    names: tuple[str, ...]
    result: Parameter
    variadic: int | None = None

    @property
    def generic(self) -> int:
        """Count the parameters with a type that the arguments decide."""
        return sum(_is_generic(each) for each in self.parameters)

    def stretched(self, count: int) -> tuple[Parameter, ...] | None:
        """Return a parameter for each of `count` arguments; None if there are too many or too few."""
        if self.variadic is None:
            return self.parameters if count == len(self.parameters) else None
        repeats = count - len(self.parameters) + 1
        if repeats < 0:
            return None
        at = self.variadic
        return (*self.parameters[:at], *(self.parameters[at : at + 1] * repeats), *self.parameters[at + 1 :])

    def bind(self, arguments: Sequence[Argument], casting: bool) -> Bindings | None:
        """Match arguments with the parameters; None if they do not fit."""
        parameters = self.stretched(len(arguments))
        if parameters is None:
            return None
        bindings: Bindings = {}
        pairs = zip(parameters, arguments, strict=True)
        return bindings if all(_match(each, given, bindings, casting) for each, given in pairs) else None

    def __str__(self) -> str:
        shown = []
        for number, (each, name) in enumerate(zip(self.parameters, self.names, strict=True)):
            dots = "..." if number == self.variadic else ""
            shown.append(f"{parameter_text(each)}{dots} {name}".strip())
        return f"{self.name}({', '.join(shown)})"


def _is_generic(parameter: Parameter) -> bool:
    match parameter:
        case Variable() | AnyType():
            return True
        case ArrayOf(item):
            return _is_generic(item)
        case MapOf(key, value):
            return _is_generic(key) or _is_generic(value)
        case LambdaOf(inputs, result):
            return any(map(_is_generic, (*inputs, result)))
        case _:
            return False


def parameter_text(parameter: Parameter) -> str:
    match parameter:
        case Variable(name):
            return name
        case AnyDecimal():
            return "DECIMAL"
        case AnyType():
            return "ANY"
        case UnitArgument():
            return "INTERVALUNIT"
        case ArrayOf(item):
            return f"ARRAY<{parameter_text(item)}>"
        case MapOf(key, value):
            return f"MAP<{parameter_text(key)}, {parameter_text(value)}>"
        case LambdaOf(inputs, result):
            return f"LAMBDA ({', '.join(map(parameter_text, inputs))}) => {parameter_text(result)}"
        case _:
            return text(parameter)


def argument_text(argument: Argument) -> str:
    match argument:
        case LambdaArgument():
            return "LAMBDA"
        case UnitArgument():
            return "INTERVALUNIT"
        case _:
            return text(argument)


def _match(parameter: Parameter, argument: Argument, bindings: Bindings, casting: bool) -> bool:
    if argument is None:
        return not isinstance(parameter, LambdaOf | UnitArgument)
    match parameter, argument:
        case LambdaOf(inputs, _), LambdaArgument(count):
            return len(inputs) == count
        case UnitArgument(), UnitArgument():
            return True
        case (_, LambdaArgument() | UnitArgument()) | (LambdaOf() | UnitArgument(), _):
            return False
        case AnyType(), _:
            return True
        case Variable(name), _:
            return bindings.setdefault(name, argument) == argument
        case AnyDecimal(), _:
            exact = isinstance(argument, DecimalType)
            return exact or (casting and argument in (PRIMITIVES["INTEGER"], PRIMITIVES["BIGINT"]))
        case ArrayOf(item), ArrayType(given):
            return _match(item, given, bindings, False)
        case MapOf(key, value), MapType(one, two):
            return _match(key, one, bindings, False) and _match(value, two, bindings, False)
        case ((ArrayOf() | MapOf()), _):
            return False
        case _:
            return parameter == argument or (casting and fits(argument, parameter))


def instantiate(parameter: Parameter, bindings: Bindings) -> Type | None:
    """Return the type of a parameter or result; None if nothing decides it."""
    match parameter:
        case Variable(name):
            return bindings.get(name)
        case ArrayOf(item):
            inner = instantiate(item, bindings)
            return None if inner is None else ArrayType(inner)
        case MapOf(key, value):
            one, two = instantiate(key, bindings), instantiate(value, bindings)
            return None if one is None or two is None else MapType(one, two)
        case Primitive() | DecimalType() | StructType():
            return parameter
        case _:
            return None


def choose(
    name: str, overloads: Sequence[Any], arguments: Sequence[Argument], casts: bool = True
) -> tuple[Any, Bindings]:
    """Choose among functions with a `signature`: exact ones first, then those that need casts, if there may be any;
    fewer variadic, then fewer generic parameters."""
    for casting in (False, True) if casts else (False,):
        found = [(each, bound) for each in overloads if (bound := each.signature.bind(arguments, casting)) is not None]
        if found:
            order = [_rank(each.signature) for each, _ in found]
            best = [pair for pair, rank in zip(found, order, strict=True) if rank == min(order)]
            if len(best) > 1:
                raise SqlError(
                    f"Function '{name}' cannot be resolved due to ambiguous method parameters "
                    f"({', '.join(map(argument_text, arguments))}).\nUse CAST() to explicitly cast your parameters to "
                    "one of the supported function calls.\nValid function calls are:\n"
                    + "\n".join(str(each.signature) for each in overloads)
                    + _MORE
                )
            return best[0]
    raise SqlError(
        f"Function '{name}' does not accept parameters ({', '.join(map(argument_text, arguments))}).\n"
        "Valid alternatives are:\n" + "\n".join(str(each.signature) for each in overloads) + _MORE
    )


_MORE = "\nFor detailed information on a function run: DESCRIBE FUNCTION <Function-Name>;"


def _rank(signature: Signature) -> tuple[bool, int, int]:
    """Order signatures that all take the arguments. Which casts they need does not count."""
    return signature.variadic is not None, -len(signature.parameters), signature.generic


class _Reader:
    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens = _TOKEN.findall(line)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        assert token and (wanted is None or token == wanted), f"{self.line}: {wanted or 'more'} expected at {self.at}"
        self.at += 1
        return token

    def list_of(self, end: str) -> list[Parameter]:
        found = [self.parameter()]
        while self.peek() == ",":
            self.take()
            found.append(self.parameter())
        self.take(end)
        return found

    def parameter(self) -> Parameter:
        word = self.take()
        if word == "ARRAY":
            self.take("<")
            return ArrayOf(self.list_of(">")[0])
        if word == "MAP":
            self.take("<")
            key, value = self.list_of(">")
            return MapOf(key, value)
        if word == "LAMBDA":
            self.take("<")
            *inputs, result = self.list_of(">")
            return LambdaOf(tuple(inputs), result)
        if word == "STRUCT":
            return self.struct()
        known: dict[str, Parameter] = {"DECIMAL": AnyDecimal(), "ANY": AnyType(), "UNIT": UnitArgument(), **PRIMITIVES}
        if word == "DECIMAL" and self.peek() == "(":
            self.take()
            precision = int(self.take())
            self.take(",")
            scale = int(self.take())
            self.take(")")
            return DecimalType(precision, scale)
        if word in known:
            return known[word]
        assert _VARIABLE.fullmatch(word), f"{self.line}: {word} is not a type"
        return Variable(word)

    def struct(self) -> StructType:
        self.take("<")
        fields = []
        while self.peek() != ">":
            name = self.take()
            type = instantiate(self.parameter(), {})
            assert type is not None
            fields.append(Field(name, type))
            if self.peek() == ",":
                self.take()
        self.take(">")
        return StructType(tuple(fields))


def read(line: str) -> Signature:
    """Read a signature from its text."""
    reader = _Reader(line)
    name = reader.take()
    reader.take("(")
    parameters: list[Parameter] = []
    names: list[str] = []
    variadic = None
    while reader.peek() != ")":
        parameters.append(reader.parameter())
        if reader.peek() == "...":
            reader.take()
            variadic = len(parameters) - 1
        names.append(reader.take() if reader.peek() not in (",", ")") else "")
        if reader.peek() == ",":
            reader.take()
    reader.take(")")
    reader.take("->")
    return Signature(name, tuple(parameters), tuple(names), reader.parameter(), variadic)
