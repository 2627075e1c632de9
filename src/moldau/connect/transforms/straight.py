"""Whole chains of transforms as one function, for records whose schemas are known.

Step by step, each transform makes a struct and a record that only the next one sees. Most of them do the same to every
record of a schema, so each can say by a rule what its outcome is made of: expressions of Python over what came in. The
rules of a chain, one after the other, give one function that makes only the last struct and the last record.

The function serves what it is sure of: values of the types of their schemas, and no null that a transform would have
to replace or refuse. For all else, and for whatever raises, it returns None, and the record goes step by step, where
errors have their places and words. Nothing of a config or a record becomes a part of the code but as a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from moldau.connect import data
from moldau.connect.data import Header, Instant, Int32, Record, Schema, Struct, Type
from moldau.connect.errors import ArgumentError, ConfigError, ConnectError
from moldau.connect.transforms.kinds import Side, Transform

MARK = "__straight__"
MOST_FIELDS = 500
MOST_SHAPES = 64  # that are remembered for a chain
SEEN_BEFORE = 20  # records of a shape, before a function is made for them
# What transforms raise, by themselves and by what they are made of.
FAILURES = (
    ConnectError,
    ConfigError,
    ArgumentError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of Python, or a constant."""

    code: str
    constant: Any = None
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A key or a value: the expression of it, or those of its fields, of which only optional ones may be null."""

    schema: Schema
    whole: Expression | None = None
    fields: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        if self.whole is None and len(self.fields) != len(self.schema.fields):
            raise ValueError(f"A rule knows {len(self.fields)} of {len(self.schema.fields)} fields.")


@dataclass(frozen=True, slots=True)
class Shape:
    """A record on its way through a chain. A part is None as long as it is as it came."""

    key: Part | None = None
    value: Part | None = None
    topic: str = "record.topic"
    headers: str = "record.headers"
    added: tuple[Header, ...] = ()
    changed: frozenset[str] = frozenset()

    def put(self, side: Side, part: Part) -> Shape:
        return self.but(**{side.name.lower(): part})

    def but(self, **changes: Any) -> Shape:
        return replace(self, **changes, changed=self.changed | changes.keys())

    def with_header(self, writer: Writer, name: str, schema: Schema, value: Expression) -> Shape:
        """Add a header to those that are there."""
        before = f"{self.headers} + {writer.bind(self.added)}" if self.added else self.headers
        header = f"Header({writer.bind(name)}, {writer.bind(schema)}, {value.code})"
        return self.but(headers=f"{before} + ({header},)", added=())


class Writer:
    """The function that is being written."""

    def __init__(self, key: Schema | None, value: Schema | None) -> None:
        self._schemas = {"key": key, "value": value}
        self._taken: dict[str, Part | None] = {}
        self.names: dict[str, Any] = {each.__name__: each for each in (Struct, Record, Header, Instant, Int32)}
        self.names["replace"] = msgspec.structs.replace
        self.lines: list[str] = []

    def bind(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def constant(self, value: Any) -> Expression:
        return Expression(self.bind(value), value, True)

    def unless(self, condition: str) -> None:
        """Leave to the steps what does not meet a condition."""
        self.lines.append(f"if not ({condition}): return None")

    def computed(self, code: str) -> Expression:
        """Return an expression that is evaluated once, here."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {code}")
        return Expression(name)

    def part(self, shape: Shape, side: Side) -> Part | None:
        """Return a part, which is let in if it is as it came; None if it cannot be."""
        name = side.name.lower()
        found: Part | None = getattr(shape, name)
        if found is None:
            if name not in self._taken:
                self._taken[name] = self._take(self._schemas[name], f"record.{name}")
            found = self._taken[name]
        return found

    def struct(self, shape: Shape, side: Side) -> Part | None:
        """Return a part whose fields are known; None if it is not a struct."""
        found = self.part(shape, side)
        return None if found is None or found.whole is not None else found

    def whole(self, part: Part) -> Expression:
        """Return a part in one piece."""
        if part.whole is not None:
            return part.whole
        return Expression(f"Struct({self.bind(part.schema)}, ({''.join(f'{each.code}, ' for each in part.fields)}))")

    def call(self, function: Callable[[Any], Any], given: Expression, may_be_null: bool) -> Expression:
        """Return what a function makes of a value; null stays null."""
        if given.is_constant:
            return given if given.constant is None else self.constant(function(given.constant))
        name = self.bind(function)
        code = f"{name}({given.code})"
        return self.computed(f"None if {given.code} is None else {code}" if may_be_null else code)

    def _take(self, schema: Schema | None, found: str) -> Part | None:
        """Let a key or a value in; None if it has no schema, or too many fields."""
        if schema is None or len(schema.fields) > MOST_FIELDS:
            return None
        taken = self.computed(found).code
        if schema.type is not Type.STRUCT:
            self.unless(f"{taken} is not None")
            self._check(schema, taken)
            return Part(schema, Expression(taken))
        known = self.bind(schema)
        self.unless(f"{taken}.__class__ is Struct and ({taken}.schema is {known} or {taken}.schema == {known})")
        names = [f"{taken}_{each.index}" for each in schema.fields]
        if names:
            self.lines.append(f"{', '.join(names)}, = {taken}.values")
        for place, name in zip(schema.fields, names, strict=True):
            self._check(place.schema, name)
        return Part(schema, None, tuple(map(Expression, names)))

    def _check(self, schema: Schema, name: str) -> None:
        """Let in what is of the type, and nulls that stay what they are."""
        if schema.name in data.LOGICAL:
            fits = f"{name}.__class__ is {self.bind(data.LOGICAL[schema.name][0])}"
        elif schema.type in data.BITS:
            most = 1 << data.BITS[schema.type] - 1
            fits = f"{name}.__class__ is int and {-most} <= {name} < {most}"
        elif schema.type.primitive:
            fits = f"{name}.__class__ is {self.bind(data.CLASSES[schema.type][0])}"
        else:
            fits = (
                f"{name} is not None and {self.bind(data.validate)}({self.bind(schema)}, {name}) is None"  # or raises
            )
        self.unless(f"({fits}) or {name} is None" if schema.optional and schema.default is None else fits)


Rule = Callable[[Shape, Writer], Shape | None]


def ruled(transform: Transform, rule: Rule) -> Transform:
    """Mark a transform with its rule."""
    setattr(transform, MARK, rule)
    return transform


def rule_of(transform: Transform) -> Rule | None:
    return getattr(transform, MARK, None)


def compiled(rules: Sequence[Rule], key: Schema | None, value: Schema | None) -> Callable[[Record], Record | None]:
    """Write the function for records with these schemas; one that serves nothing if a rule does not hold."""
    writer = Writer(key, value)
    shape: Shape | None = Shape()
    for rule in rules:
        shape = rule(shape, writer)
        if shape is None:
            return nothing
    parts = list[str]()
    for side in ("key", "value"):
        part: Part | None = getattr(shape, side)
        if side in shape.changed and part is not None:
            parts.append(f"{side}_schema={writer.bind(part.schema)}")
            parts.append(f"{side}={writer.whole(part).code}")
    if "topic" in shape.changed:
        parts.append(f"topic={shape.topic}")
    if "headers" in shape.changed:
        parts.append(f"headers={shape.headers} + {writer.bind(shape.added)}")
    lines = [*writer.lines, f"return replace(record, {', '.join(parts)})"]
    text = "def run(record):\n" + "".join(f"    {line}\n" for line in lines)
    exec(compile(text, "<a chain of transforms>", "exec"), writer.names)  # names, positions and numbers of ours alone
    return writer.names["run"]


def nothing(_record: Record) -> None:
    """Serve nothing."""


Schemas = tuple[Schema | None, Schema | None]  # of a key and a value
Run = Callable[[Record], Record | None]


class Straight:
    """A chain that has a rule for each of its transforms."""

    def __init__(self, rules: Sequence[Rule], seen_before: int = SEEN_BEFORE) -> None:
        self._rules, self._seen_before = rules, seen_before
        self._known: dict[Schemas, Run] = {}
        self._seen: dict[Schemas, int] = {}  # records, where there is no function yet
        self._last: Schemas = None, None
        self._run: Run | None = None  # for the schemas of the last record

    def __call__(self, record: Record) -> Record | None:
        """Return what the chain makes of a record, or None if it has to go step by step."""
        key, value = self._last
        if record.value_schema is not value or record.key_schema is not key:
            self._last = record.key_schema, record.value_schema
            self._run = self._known.get(self._last)
        run = self._run or self._learn(self._last)
        try:
            return run(record)
        except FAILURES:  # the steps will say what is wrong, if anything is
            return None

    def _learn(self, schemas: Schemas) -> Run:
        count = self._seen.pop(schemas, 0) + 1
        if count <= self._seen_before:
            put(self._seen, schemas, count)
            return nothing
        try:
            self._run = compiled(self._rules, *schemas)
        except FAILURES:  # a rule met what its transform refuses
            self._run = nothing
        put(self._known, schemas, self._run)
        return self._run


def put(known: dict[Schemas, Any], schemas: Schemas, value: Any) -> None:
    """Remember something of so many schemas."""
    if len(known) >= MOST_SHAPES:
        known.clear()
    known[schemas] = value
