"""Avro schemas as a graph of nodes, parsed with the rules of Java's parser, which is what registries run.

A name may be used before it is defined; it is looked up in the enclosing namespace first and then without one.
Properties that Avro does not know are kept in their order: logical types and tags are such properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import json_text
from .avro_defaults import check_defaults
from .parsed import Limits, SchemaError

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
RESERVED = frozenset(("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"))
FIELD_RESERVED = frozenset(("default", "doc", "name", "order", "type", "aliases"))
ORDERS = ("ascending", "descending", "ignore")
ASCII_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
MISSING: Any = object()


@dataclass(slots=True, eq=False)
class Primitive:
    kind: str
    props: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Array:
    items: Schema
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = "array"


@dataclass(slots=True, eq=False)
class Map:
    values: Schema
    props: dict[str, Any] = field(default_factory=dict)
    kind: str = "map"


@dataclass(slots=True, eq=False)
class Union:
    branches: list[Schema]
    kind: str = "union"


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Schema
    doc: str | None = None
    default: Any = MISSING
    order: str = "ascending"
    aliases: list[str] = field(default_factory=list)
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(slots=True, eq=False)
class Named:
    """A record (or error), an enum or a fixed: `kind` says which, and which of the last fields mean something."""

    kind: str
    name: str
    namespace: str  # "" for none
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)  # full names
    props: dict[str, Any] = field(default_factory=dict)
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: str | None = None
    size: int = 0

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def is_record(self) -> bool:
        return self.kind in ("record", "error")


@dataclass(slots=True, eq=False)
class Use:
    """A name where a schema is expected, until the parser has seen all definitions."""

    name: str
    namespace: str
    kind: str = "name"


Schema = Primitive | Array | Map | Union | Named | Use


@dataclass(slots=True)
class Parser:
    """Reads schemas one after the other into one space of names."""

    limits: Limits
    new: bool
    names: dict[str, Named] = field(default_factory=dict)
    made: list[Array | Map | Union | Named] = field(default_factory=list)

    def read(self, text: str) -> Schema:
        self.made = []
        root = self.schema(json_text.loads(text, self.limits, comments=True), "")
        for node in self.made:
            self.link(node)
        root = self.resolved(root)
        if self.new:
            check_defaults(self.made)
        return root

    def schema(self, value: Any, namespace: str) -> Schema:
        match value:
            case str():
                return Primitive(value) if value in PRIMITIVES else Use(value, namespace)
            case list():
                return self.keep(Union([self.schema(branch, namespace) for branch in value]))
            case dict():
                return self.complex(value, namespace)
        raise SchemaError(f"{json_text.dumps(value)} is not an Avro schema: expected a name, an object or an array")

    def complex(self, value: dict[str, Any], namespace: str) -> Schema:
        kind = value.get("type")
        if not isinstance(kind, str):
            raise SchemaError(f"no type in {excerpt(value)}")
        if kind in PRIMITIVES:
            return Primitive(kind, properties(value, RESERVED))
        match kind:
            case "array":
                return self.keep(Array(self.child(value, "items", namespace), properties(value, RESERVED)))
            case "map":
                return self.keep(Map(self.child(value, "values", namespace), properties(value, RESERVED)))
            case "record" | "error" | "enum" | "fixed":
                return self.named(value, kind, namespace)
        return Use(kind, namespace)

    def child(self, value: dict[str, Any], key: str, namespace: str) -> Schema:
        if key not in value:
            raise SchemaError(f"{value['type']} has no {key} in {excerpt(value)}")
        return self.schema(value[key], namespace)

    def named(self, value: dict[str, Any], kind: str, enclosing: str) -> Named:
        name, namespace = self.name_of(value, enclosing)
        node = Named(kind, name, namespace, doc=text_of(value, "doc"))
        node.aliases = [qualified(alias, namespace) for alias in aliases_of(value)]
        if node.full_name in PRIMITIVES:
            raise SchemaError(f"{node.full_name} is the name of a primitive type and cannot be defined")
        if node.full_name in self.names:
            raise SchemaError(f"{node.full_name} is defined twice")
        self.names[node.full_name] = node
        node.props = properties(value, RESERVED | {"default"} if kind == "enum" else RESERVED)
        {"enum": self.fill_enum, "fixed": fill_fixed}.get(kind, self.fill_record)(node, value)
        return self.keep(node)

    def name_of(self, value: dict[str, Any], enclosing: str) -> tuple[str, str]:
        given = value.get("name")
        if not isinstance(given, str):
            raise SchemaError(f"no name in {excerpt(value)}")
        namespace, dot, name = given.rpartition(".")
        if not dot:
            namespace = value["namespace"] if isinstance(value.get("namespace"), str) else enclosing
        self.check_name(name, "type")
        if self.new and namespace:
            for part in namespace.split("."):
                self.check_name(part, f"namespace {namespace!r},")
        return name, namespace

    def check_name(self, name: str, what: str) -> None:
        """Check a name. New schemas have names in ASCII; those that a registry already has may use any letters."""
        plain = ASCII_NAME.fullmatch(name)
        if not plain and (self.new or not name.replace("_", "a").isalnum() or name[0].isnumeric()):
            raise SchemaError(f"{what} name {name!r} is not valid: letters, digits and _ are, and no digit first")

    def fill_enum(self, node: Named, value: dict[str, Any]) -> None:
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise SchemaError(f"enum {node.full_name} has no symbols")
        for symbol in symbols:
            if not isinstance(symbol, str):
                raise SchemaError(f"enum {node.full_name} has a symbol that is not a string: {json_text.dumps(symbol)}")
            self.check_name(symbol, f"enum {node.full_name}: symbol")
        if len(set(symbols)) < len(symbols):
            raise SchemaError(f"enum {node.full_name} has a symbol twice")
        node.symbols, node.default = symbols, text_of(value, "default")
        if node.default is not None and node.default not in symbols:
            raise SchemaError(f"enum {node.full_name} has a default that is none of its symbols: {node.default}")

    def fill_record(self, node: Named, value: dict[str, Any]) -> None:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"record {node.full_name} has no fields")
        seen: set[str] = set()
        for entry in fields:
            made = self.field(node, entry)
            if made.name in seen:
                raise SchemaError(f"record {node.full_name} has the field {made.name} twice")
            seen.add(made.name)
            node.fields.append(made)

    def field(self, record: Named, value: Any) -> Field:
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str):
            raise SchemaError(f"record {record.full_name} has a field without a name: {excerpt(value)}")
        self.check_name(name, f"record {record.full_name}: field")
        if "type" not in value:
            raise SchemaError(f"field {name} of {record.full_name} has no type")
        order = value["order"].lower() if isinstance(value.get("order"), str) else "ascending"
        if order not in ORDERS:
            raise SchemaError(f"field {name} of {record.full_name} has the order {order!r}: use {', '.join(ORDERS)}")
        made = Field(name, self.schema(value["type"], record.namespace), text_of(value, "doc"), order=order)
        made.aliases, made.props = aliases_of(value), properties(value, FIELD_RESERVED)
        if "default" in value:
            made.default = default_of(made, value["default"], record)
        return made

    def keep(self, node: Any) -> Any:
        self.made.append(node)
        return node

    def link(self, node: Array | Map | Union | Named) -> None:
        match node:
            case Array():
                node.items = self.resolved(node.items)
            case Map():
                node.values = self.resolved(node.values)
            case Named():
                for entry in node.fields:
                    entry.type = self.resolved(entry.type)
            case Union():
                node.branches = [self.resolved(branch) for branch in node.branches]
                check_union(node)

    def resolved(self, node: Schema) -> Schema:
        if not isinstance(node, Use):
            return node
        found = self.names.get(qualified(node.name, node.namespace)) or self.names.get(node.name)
        if found is None:
            raise SchemaError(f"{qualified(node.name, node.namespace)} is used but not defined")
        return found


def parse_avro(text: str, resolved: Mapping[str, str], limits: Limits, *, new: bool) -> tuple[Schema, frozenset[str]]:
    """Return the schema, and the full names of all that its references define."""
    parser = Parser(limits, new)
    for name, reference in resolved.items():
        try:
            parser.read(reference)
        except SchemaError as error:
            raise SchemaError(f"reference {name}: {error}") from None
    foreign = frozenset(parser.names)
    return parser.read(text), foreign


def check_union(node: Union) -> None:
    seen: set[str] = set()
    for branch in node.branches:
        if isinstance(branch, Union):
            raise SchemaError("a union stands directly in a union")
        if name_of(branch) in seen:
            raise SchemaError(f"a union has {name_of(branch)} twice")
        seen.add(name_of(branch))


def fill_fixed(node: Named, value: dict[str, Any]) -> None:
    size = value.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
        raise SchemaError(f"fixed {node.full_name} has no valid size")
    node.size = size


def default_of(made: Field, value: Any, record: Named) -> Any:
    """Return a default. That of a float or double may be text, which is how NaN and the infinities are written."""
    if isinstance(value, str) and isinstance(made.type, Primitive) and made.type.kind in ("float", "double"):
        try:
            return float(value)
        except ValueError:
            problem = f"field {made.name} of {record.full_name} has the default {value!r}, which is not a number"
            raise SchemaError(problem) from None
    return value


def qualified(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def properties(value: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in reserved}


def text_of(value: dict[str, Any], key: str) -> str | None:
    found = value.get(key)
    return found if isinstance(found, str) else None


def aliases_of(value: dict[str, Any]) -> list[str]:
    aliases = value.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaError(f"aliases are not an array of strings in {excerpt(value)}")
    return list(dict.fromkeys(aliases))


def excerpt(value: Any) -> str:
    text = json_text.dumps(value)
    return text if len(text) <= 200 else text[:200] + "..."


def walk(roots: Iterable[Schema]) -> Iterator[Schema]:
    """Return every node that can be reached, each once."""
    seen: set[int] = set()
    waiting: list[Schema] = list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(reversed(children(node)))


def name_of(node: Schema) -> str:
    """Return what a branch of a union is called: the full name of a named type, the kind of any other."""
    return node.full_name if isinstance(node, Named) else node.kind


def children(node: Schema) -> Sequence[Schema]:
    match node:
        case Array():
            return (node.items,)
        case Map():
            return (node.values,)
        case Union():
            return node.branches
        case Named():
            return [entry.type for entry in node.fields]
    return ()
