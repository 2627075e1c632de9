"""A Protobuf file as its source says it: names as written, options in order, comments gone.

Messages and enums keep their order, which the message indexes of the wire format count on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

INTEGERS = ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64")
SCALARS = frozenset((*INTEGERS, "double", "float", "bool", "string", "bytes"))
MAX_NUMBER = 536_870_911


@dataclass(frozen=True, slots=True)
class Literal:
    """A string, or a word: number, boolean or constant of an enum. Bytes that are no UTF-8 are lone surrogates."""

    text: str
    is_string: bool = False


Aggregate = dict[str, "Value"]
Value = Literal | Aggregate | list["Value"]


@dataclass(slots=True)
class Option:
    """`(a.b).c.d = value` has the name a.b, which is an extension, and the path c, d."""

    name: str
    value: Value
    is_extension: bool = False
    path: tuple[str, ...] = ()

    def nested_value(self) -> Value:
        """Return the value with the path as messages around it."""
        value: Value = self.value
        for part in reversed(self.path):
            around: Aggregate = {f"[{part[1:-1]}]" if part.startswith("(") else part: value}
            value = around
        return value


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from first to last; both are the same for one number that was given alone."""

    first: int
    last: int
    alone: bool = False


@dataclass(slots=True)
class Field:
    name: str
    type: str  # as written: a scalar, a name, or map<key, value>
    number: int
    label: str | None = None
    options: list[Option] = field(default_factory=list)
    default: str | None = None
    json_name: str | None = None
    group: Message | None = None  # the body, where the type is a group

    @property
    def map_types(self) -> tuple[str, str] | None:
        if not self.type.startswith("map<"):
            return None
        key, _, value = self.type[4:-1].partition(", ")
        return key, value


@dataclass(slots=True)
class Oneof:
    name: str
    fields: list[Field] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Reserved:
    values: list[Range | str]
    quoted: bool = True  # names are strings, or identifiers since editions


@dataclass(slots=True)
class Extensions:
    ranges: list[Range]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Constant:
    name: str
    number: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Enum:
    name: str
    constants: list[Constant] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[Oneof] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        return any(option.name == "map_entry" and option.value == Literal("true") for option in self.options)

    def every_field(self) -> Iterator[Field]:
        yield from self.fields
        for oneof in self.oneofs:
            yield from oneof.fields


@dataclass(slots=True)
class Method:
    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    name: str
    methods: list[Method] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class File:
    syntax: str | None = None  # proto2, proto3, or the edition
    package: str = ""
    imports: list[tuple[str, str]] = field(default_factory=list)  # ("" or public, weak, option; path)
    options: list[Option] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)

    @property
    def is_edition(self) -> bool:
        return self.syntax is not None and not self.syntax.startswith("proto")

    @property
    def name(self) -> str | None:
        """The full name of the first message, or of the first enum where there is no message."""
        first = sorted(self.types, key=lambda node: isinstance(node, Enum))[:1]
        return f"{self.package}.{first[0].name}".lstrip(".") if first else None
