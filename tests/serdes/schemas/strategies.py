"""Schemas of all types, drawn by hypothesis: every one is valid."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from moldau.serdes.schemas import proto_text
from moldau.serdes.schemas.proto import Constant, Enum, Field, File, Literal, Message, Oneof, Option, Range, Reserved

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
NAMES = ["A", "B", "C", "D", "E"]
FIELDS = ["a", "b", "c", "d"]
EXTRAS = st.dictionaries(
    st.sampled_from(["x", "y", "confluent:tags"]), st.sampled_from([1, "é", [True], {"b": 1, "a": 2}])
)


@st.composite
def avro_types(draw: st.DrawFn, names: list[str], depth: int) -> Any:
    kinds = ["primitive"] if depth == 0 else ["primitive", "named", "array", "map", "union", "record", "enum", "fixed"]
    kind = draw(st.sampled_from(kinds))
    if kind == "named" and names:
        return draw(st.sampled_from(names))
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": draw(avro_types(names, depth - 1))}
    if kind == "union":
        return draw(avro_unions(names, depth))
    free = [name for name in NAMES if name not in names]
    if kind in ("record", "enum", "fixed") and free:
        return draw(avro_named(kind, free[0], names, depth))
    return draw(st.sampled_from([*PRIMITIVES, {"type": "int", "logicalType": "date"}]))


@st.composite
def avro_unions(draw: st.DrawFn, names: list[str], depth: int) -> list[Any]:
    found: dict[str, Any] = {}
    for _ in range(draw(st.integers(1, 3))):
        branch = draw(avro_types(names, depth - 1))
        if not isinstance(branch, list):
            key = branch if isinstance(branch, str) else branch.get("name", branch["type"])
            found.setdefault(key, branch)
    used = list(found.values())
    return used or ["null"]


@st.composite
def avro_named(draw: st.DrawFn, kind: str, name: str, names: list[str], depth: int) -> dict[str, Any]:
    names.append(name)
    made: dict[str, Any] = {"name": name, "type": kind, **draw(EXTRAS)}
    if kind == "enum":
        made["symbols"] = draw(st.lists(st.sampled_from("PQRS"), min_size=1, unique=True))
    elif kind == "fixed":
        made["size"] = draw(st.integers(0, 4))
    else:
        chosen = draw(st.lists(st.sampled_from(FIELDS), max_size=3, unique=True))
        made["fields"] = [draw(avro_fields(field, names, depth)) for field in chosen]
    return made


@st.composite
def avro_fields(draw: st.DrawFn, name: str, names: list[str], depth: int) -> dict[str, Any]:
    made = {"name": name, "type": draw(avro_types(names, depth - 1)), **draw(EXTRAS)}
    if draw(st.booleans()) and made["type"] in ("int", "double"):
        made["default"] = 1
    return made


def without_dangling(schema: Any, names: set[str]) -> Any:
    """Names of types that a union has dropped are replaced, so that every name is defined."""
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES or schema in names else "null"
    if isinstance(schema, list):
        kept: dict[str, Any] = {}
        for branch in (without_dangling(one, names) for one in schema):
            kept.setdefault(branch if isinstance(branch, str) else branch.get("name", branch["type"]), branch)
        return list(kept.values())
    made = dict(schema)
    for key in ("items", "values"):
        if key in made:
            made[key] = without_dangling(made[key], names)
    if "fields" in made:
        made["fields"] = [{**field, "type": without_dangling(field["type"], names)} for field in made["fields"]]
    return made


def defined(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return set().union(*map(defined, schema))
    if not isinstance(schema, dict):
        return set()
    found = {schema["name"]} if "name" in schema else set()
    for key in ("items", "values"):
        found |= defined(schema.get(key))
    return found.union(*(defined(field["type"]) for field in schema.get("fields", ())))


@st.composite
def avro(draw: st.DrawFn) -> Any:
    schema = draw(avro_types([], 4))
    return without_dangling(schema, defined(schema))


@st.composite
def json_schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    if depth == 0:
        return draw(st.sampled_from([True, False, {}, {"$ref": "#/definitions/q"}]))
    inner = json_schemas(depth - 1)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["string", "integer", "number", "null", "array", "object", ["object", "null"]]),
        "title": st.sampled_from(["t", "ü"]),
        "default": st.sampled_from([1, None, "x"]),
        "minLength": st.integers(0, 3),
        "pattern": st.just("^a"),
        "maximum": st.sampled_from([1, 2.5]),
        "multipleOf": st.sampled_from([2, 0.1]),
        "properties": st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
        "patternProperties": st.dictionaries(st.just("^b"), inner, max_size=1),
        "required": st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2, unique=True),
        "additionalProperties": inner,
        "items": inner,
        "maxItems": st.integers(0, 3),
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "enum": st.lists(st.sampled_from([1, "a", True]), min_size=1, unique=True),
        "const": st.sampled_from([1, "a", None]),
        "if": inner,
    }
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True))
    return {keyword: draw(keywords[keyword]) for keyword in chosen}


@st.composite
def json_documents(draw: st.DrawFn) -> str:
    document = draw(json_schemas())
    definitions = {"definitions": {"q": draw(json_schemas(1))}}
    if draw(st.booleans()):
        definitions["$schema"] = "https://json-schema.org/draft/2020-12/schema"  # pyright: ignore
    return json.dumps({**document, **definitions} if isinstance(document, dict) else definitions)


OPTIONS = st.lists(
    st.builds(
        Option,
        st.just("confluent.field_meta"),
        st.sampled_from([{"tags": Literal("a'\n", is_string=True)}, {"doc": Literal("ü", is_string=True), "tags": []}]),
        st.just(True),
    ),
    max_size=1,
)


@st.composite
def proto_fields(draw: st.DrawFn, number: int, types: list[str], in_oneof: bool) -> Field:
    kind = draw(
        st.sampled_from(["string", "int32", "double", "bool", *types, *([] if in_oneof else ["map<string, int32>"])])
    )
    label = None if in_oneof or kind.startswith("map") else draw(st.sampled_from([None, "optional", "repeated"]))
    return Field(f"f{number}", kind, number, label, list(draw(OPTIONS)))


@st.composite
def proto_messages(draw: st.DrawFn, name: str, types: list[str], depth: int) -> Message:
    numbers = draw(st.lists(st.integers(1, 40), max_size=5, unique=True))
    cut = draw(st.integers(0, len(numbers)))
    made = Message(name, [draw(proto_fields(number, types, False)) for number in numbers[:cut]])
    if numbers[cut:]:
        made.oneofs = [Oneof("choice", [draw(proto_fields(number, types, True)) for number in numbers[cut:]])]
    if draw(st.booleans()):
        made.reserved = [Reserved([Range(60, 70), "gone"]), Reserved([Range(50, 50, True)])]
    if depth and draw(st.booleans()):
        made.types = [draw(proto_messages("Inner", [*types, "Inner"], depth - 1))]
    return made


@st.composite
def protobuf(draw: st.DrawFn) -> str:
    enum = Enum("Kind", [Constant("ZERO", 0), Constant("ONE", 1)])
    names = draw(st.lists(st.sampled_from(["M", "N", "O"]), min_size=1, unique=True))
    messages = [draw(proto_messages(name, [*names, "Kind"], 2)) for name in names]
    package = draw(st.sampled_from(["", "p", "p.q"]))
    return proto_text.canonical(File("proto3", package, [("", "confluent/meta.proto")], types=[*messages, enum]))
