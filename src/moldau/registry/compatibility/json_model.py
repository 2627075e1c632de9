"""JSON Schema documents as nodes of one kind each, which is how Confluent compares them.

The older drafts (4, 6, 7) and the newer (2019-09, 2020-12) are read by different rules, since Confluent reads them with
different libraries. In the older, a $ref stands alone and keywords decide on a kind when the type does not. In the
newer each keyword is a schema, and those of one kind are merged. What fits no single kind is a combination: allOf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from referencing.exceptions import Unresolvable

from moldau.serdes.schemas import Parsed, SchemaError
from moldau.serdes.schemas.json_schema import DRAFTS, draft_of, id_of, is_modern, resources, within
from moldau.serdes.schemas.json_text import dumps
from moldau.serdes.schemas.parsed import Limits

Number = int | Decimal | float
UNLIMITED = Limits(1 << 62, 1 << 62, 1 << 62)
CRITERIA = ("allOf", "anyOf", "oneOf")
BOUNDS = {
    "array": ("maxItems", "minItems", "maxContains", "minContains"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "object": ("maxProperties", "minProperties"),
    "string": ("maxLength", "minLength"),
}
# Keywords that make a schema of no type one of that kind.
SNIFFED = {
    "array": {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"},
    "object": {"properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties"}
    | {"additionalProperties", "propertyNames"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "string": {"minLength", "maxLength", "pattern", "format"},
}
# Keywords of the newer drafts -> the kind they belong to.
MODERN: dict[str, str] = dict.fromkeys(
    ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "unevaluatedItems"), "array"
)
MODERN |= dict.fromkeys(
    (*SNIFFED["object"] - {"dependencies"}, "dependentRequired", "dependentSchemas", "unevaluatedProperties"), "object"
)
MODERN |= dict.fromkeys(SNIFFED["number"], "number") | dict.fromkeys(SNIFFED["string"] - {"format"}, "string")
NAMING = ("properties", "patternProperties")  # keywords that say nothing where they name nothing
LAST = (*NAMING, "unevaluatedItems", "unevaluatedProperties")
MERGED = ("array", "number", "object", "string")


@dataclass(slots=True, eq=False)
class Node:
    """One schema. Which fields mean something depends on the kind: empty, true, false, string, number, boolean, null,
    array, object, combined, const, enum, not, conditional or reference."""

    kind: str
    about: dict[str, Any] = field(default_factory=dict)  # id, title, description, default
    bounds: dict[str, Number] = field(default_factory=dict)
    pattern: str | None = None
    integer: bool = False
    unique: bool = False
    values: list[str] = field(default_factory=list)  # of const and enum, as JSON
    criterion: str = ""
    generated: bool = False  # a combination that nobody wrote
    parts: list[Node] = field(default_factory=list)
    inner: Node | None = None  # what must not match, or what is referred to
    ref: str = ""
    properties: dict[str, Node] = field(default_factory=dict)
    patterns: dict[str, Node] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    dependent_required: dict[str, set[str]] = field(default_factory=dict)
    dependent_schemas: dict[str, Node] = field(default_factory=dict)
    items: Node | None = None  # the schema of every item
    tuple_items: list[Node] = field(default_factory=list)
    additional: bool = True  # more properties or items than are named may come
    additional_schema: Node | None = None
    unevaluated: Node | None = None
    connect_type: Any = None

    @property
    def is_empty(self) -> bool:
        return self.kind in ("empty", "true")


def model(parsed: Parsed) -> Node:
    """Return the root of a parsed JSON Schema."""
    loader = Loader(parsed)
    root = loader.load(loader.root, loader.resolver)
    loader.resolve()
    return root


class Loader:
    """Reads one document; what is referred to is read once, when all else has been."""

    def __init__(self, parsed: Parsed) -> None:
        document: Any = parsed.raw
        self.modern = is_modern(document)
        self.draft = DRAFTS[draft_of(document)][0]
        found = resources(document, parsed.resolved, UNLIMITED).resolver(id_of(document)).lookup(id_of(document))
        self.root, self.resolver = found.contents, found.resolver
        self.known: dict[int, Node] = {}
        self.waiting: list[tuple[Node, Any]] = []

    def resolve(self) -> None:
        while self.waiting:
            node, resolver = self.waiting.pop()
            try:
                found = resolver.lookup(node.ref)
            except Unresolvable:
                raise SchemaError(f"$ref {node.ref!r} leads nowhere") from None
            node.inner = self.load(found.contents, found.resolver)

    def load(self, schema: Any, resolver: Any) -> Node:
        if not isinstance(schema, dict):
            return Node("false" if schema is False else "true")
        if id(schema) not in self.known:
            inside = within(resolver, schema, self.draft)
            read = self.read_modern if self.modern else self.read_older
            self.known[id(schema)] = described(read(schema, inside), schema, self.draft, self.modern)
        return self.known[id(schema)]

    def read_older(self, schema: dict[str, Any], resolver: Any) -> Node:
        if isinstance(schema.get("$ref"), str):
            return self.reference(schema["$ref"], resolver)
        parts = (self.part(keyword, schema, resolver) for keyword in ("enum", *CRITERIA, "not", "const", "if"))
        found = [part for part in parts if part is not None]
        rest = set(schema)
        kinds = schema.get("type")
        if isinstance(kinds, str):
            found.append(self.typed(kinds, schema, resolver))
        elif isinstance(kinds, list):
            found.append(combined("anyOf", [self.typed(kind, schema, resolver) for kind in kinds]))
        for kind in [kinds] if isinstance(kinds, str) else kinds or ():
            rest -= SNIFFED["number" if kind == "integer" else kind] if kind not in ("null", "boolean") else set()
        found += [self.typed(kind, schema, resolver) for kind, keywords in SNIFFED.items() if rest & keywords]
        return found[0] if len(found) == 1 else combined("allOf", found) if found else Node("empty")

    def part(self, keyword: str, schema: dict[str, Any], resolver: Any) -> Node | None:
        """Read a keyword that belongs to no type."""
        value = schema.get(keyword)
        match keyword:
            case "enum" if isinstance(value, list):
                return Node("enum", values=list(dict.fromkeys(map(dumps, value))))
            case "allOf" | "anyOf" | "oneOf" if isinstance(value, list):
                parts = [self.load(part, resolver) for part in value]
                return combined(keyword, [one for part in parts for one in flat(part)] if self.modern else parts)
            case "not" if keyword in schema:
                return Node("not", inner=self.load(value, resolver))
            case "const" if keyword in schema:
                return Node("const", values=[dumps(value)])
            case "if" if keyword in schema:
                return Node("conditional")
            case "$ref" | "$dynamicRef" | "$recursiveRef" if isinstance(value, str):
                return self.reference(value, resolver)
            case "type" if isinstance(value, str):
                return bare(value)
            case "type" if isinstance(value, list):
                return combined("anyOf", [bare(kind) for kind in value], generated=True)
        return None

    def read_modern(self, schema: dict[str, Any], resolver: Any) -> Node:
        """Read each keyword as a schema, and join them in their order, those that name properties last."""
        found: list[Node | None] = []
        done: set[str] = set()
        for keyword in sorted(schema, key=lambda keyword: keyword in LAST):
            kind = MODERN.get(keyword, "")
            if kind and kind not in done and (schema[keyword] or keyword not in NAMING):
                done.add(kind)
                found.append(self.typed(kind, schema, resolver))
            elif not kind:
                found.append(self.part(keyword, schema, resolver))
        whole: Node | None = None
        for part in found:
            whole = joined(whole, part) if whole and part else whole or part
        if whole is None:
            return Node("empty")
        return whole.parts[0] if whole.generated and whole.criterion == "allOf" and len(whole.parts) == 1 else whole

    def reference(self, ref: str, resolver: Any) -> Node:
        node = Node("reference", ref=ref)
        self.waiting.append((node, resolver))
        return node

    def typed(self, kind: str, schema: dict[str, Any], resolver: Any) -> Node:
        node = bare(kind)
        for keyword in BOUNDS.get(node.kind, ()):
            if is_number(schema.get(keyword)):
                node.bounds[keyword] = schema[keyword]
        fill: dict[str, Callable[[Node, dict[str, Any], Any], None]] = {
            "object": self.fill_object,
            "array": self.fill_array,
        }
        fill.get(node.kind, fill_string)(node, schema, resolver)
        return node

    def fill_object(self, node: Node, schema: dict[str, Any], resolver: Any) -> None:
        node.properties = self.load_each(schema.get("properties"), resolver)
        node.patterns = self.load_each(schema.get("patternProperties"), resolver)
        node.required = set(schema.get("required") or ()) if isinstance(schema.get("required"), list) else set()
        self.fill_additional(node, schema.get("additionalProperties", True), resolver)
        if self.modern:
            needs = schema.get("dependentRequired") or {}
            node.dependent_required = {key: set(value) for key, value in needs.items() if value}
            node.dependent_schemas = self.load_each(schema.get("dependentSchemas"), resolver)
            if "unevaluatedProperties" in schema:
                node.unevaluated = self.load(schema["unevaluatedProperties"], resolver)
            return
        dependencies = schema.get("dependencies") or {}
        node.dependent_required = {key: set(value) for key, value in dependencies.items() if isinstance(value, list)}
        others = {key: value for key, value in dependencies.items() if not isinstance(value, list)}
        node.dependent_schemas = self.load_each(others, resolver)

    def fill_array(self, node: Node, schema: dict[str, Any], resolver: Any) -> None:
        node.unique = schema.get("uniqueItems") is True
        every, first, rest = self.places(schema)
        node.items = self.load(every[0], resolver) if every else None
        node.tuple_items = [self.load(item, resolver) for item in first]
        self.fill_additional(node, rest, resolver)
        node.additional = node.additional or node.items is not None
        if self.modern:
            if "contains" in schema:
                node.bounds.setdefault("minContains", 1)
            else:
                node.bounds = {key: bound for key, bound in node.bounds.items() if not key.endswith("Contains")}
            if "unevaluatedItems" in schema:
                node.unevaluated = self.load(schema["unevaluatedItems"], resolver)

    def places(self, schema: dict[str, Any]) -> tuple[list[Any], list[Any], Any]:
        """Return the schema of every item (or none), of the first items, and of those after these."""
        items, first, rest = (
            schema.get("items", True),
            schema.get("prefixItems", []),
            schema.get("additionalItems", True),
        )
        if isinstance(items, list):
            return [], items, rest
        if not self.modern:
            return [items] if "items" in schema else [], [], rest
        return ([items], [], True) if isinstance(items, dict) and not first else ([], first, items)

    def fill_additional(self, node: Node, value: Any, resolver: Any) -> None:
        node.additional = value is not False
        if isinstance(value, dict):
            node.additional_schema = self.load(value, resolver)

    def load_each(self, schemas: Any, resolver: Any) -> dict[str, Node]:
        if not isinstance(schemas, dict):
            return {}
        return {key: self.load(schema, resolver) for key, schema in schemas.items()}


def fill_string(node: Node, schema: dict[str, Any], resolver: Any) -> None:
    if node.kind == "string" and isinstance(schema.get("pattern"), str):
        node.pattern = schema["pattern"]


def bare(kind: str) -> Node:
    return Node("number", integer=True) if kind == "integer" else Node(kind)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def described(node: Node, schema: dict[str, Any], draft: Any, modern: bool) -> Node:
    """Add what stands beside the keywords; in the older drafts a reference keeps no default."""
    keys = ("$id", "id") if draft is DRAFTS["draft-04"][0] else ("$id",)
    node.about = {
        key.lstrip("$"): schema[key] for key in (*keys, "title", "description") if isinstance(schema.get(key), str)
    }
    if "default" in schema and (node.kind != "reference" or modern):
        node.about["default"] = dumps(schema["default"])
    node.connect_type = schema.get("connect.type")
    return node


def combined(criterion: str, parts: Iterable[Node], *, generated: bool = False) -> Node:
    """Combine parts: combinations among them come first, the order of the rest is kept."""
    ordered = sorted(parts, key=lambda part: part.kind != "combined")
    return Node("combined", criterion=criterion, parts=ordered, generated=generated)


def flat(node: Node) -> list[Node]:
    return node.parts if node.generated and node.criterion == "allOf" else [node]


def joined(first: Node, second: Node) -> Node:
    """Join two schemas that both hold; those of the same kind are merged."""
    if first.kind == second.kind and first.kind in MERGED:
        return merged(first, second)
    for one, other in ((first, second), (second, first)):
        if one.generated and one.criterion == "anyOf" and any(part.kind == other.kind for part in one.parts):
            return combined("anyOf", gathered([*one.parts, other]), generated=True)
    return combined("allOf", gathered([*flat(first), *flat(second)]), generated=True)


def gathered(nodes: Iterable[Node]) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        same = next((n for n, one in enumerate(found) if one.kind == node.kind and one.kind in MERGED), None)
        if same is None:
            found.append(node)
        else:
            found[same] = merged(found[same], node)
    return found


def merged(first: Node, second: Node) -> Node:
    return Node(
        first.kind,
        about=first.about | second.about,
        bounds=first.bounds | second.bounds,
        pattern=second.pattern or first.pattern,
        integer=first.integer or second.integer,
        unique=first.unique or second.unique,
        properties=first.properties | second.properties,
        patterns=first.patterns | second.patterns,
        required=first.required | second.required,
        dependent_required=first.dependent_required | second.dependent_required,
        dependent_schemas=first.dependent_schemas | second.dependent_schemas,
        items=second.items or first.items,
        tuple_items=first.tuple_items + second.tuple_items,
        additional=first.additional and second.additional,
        additional_schema=second.additional_schema or first.additional_schema,
        unevaluated=second.unevaluated or first.unevaluated,
    )
