"""Walks over values along their schema, for rules: each visits the fields and returns a copy with what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .context import SerdeError
from .rules import BYTES, STRING, Visit
from .schemas.avro import Array, Map, Named, Primitive, Union
from .schemas.avro import Schema as Node
from .schemas.tags import tags_in
from .schemas.tags_json import TAGS

MAX_DEPTH = 200
Field = tuple[str, Iterable[str]]  # path, tags
AVRO: dict[str, Callable[[Any], bool]] = {  # which values a primitive type takes
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int),
    "long": lambda value: isinstance(value, int),
    "float": lambda value: isinstance(value, int | float),
    "double": lambda value: isinstance(value, int | float),
    "string": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes | bytearray | memoryview),
}


def walk_avro(node: Node, value: Any, visit: Visit, field: Field | None = None, depth: int = 0) -> Any:
    """Visit the fields of a value as fastavro takes and gives it."""
    if depth > MAX_DEPTH:
        raise SerdeError(f"the value nests deeper than {MAX_DEPTH} levels")
    match node:
        case Union():
            branch = next((each for each in node.branches if takes(each, value)), None)
            return value if branch is None else walk_avro(branch, value, visit, field, depth + 1)
        case Array() if isinstance(value, list | tuple):
            return [walk_avro(node.items, each, visit, field, depth + 1) for each in value]
        case Map() if isinstance(value, dict):
            return {name: walk_avro(node.values, each, visit, field, depth + 1) for name, each in value.items()}
        case Named(kind="record" | "error") if isinstance(value, dict):
            changed = dict(value)
            for each in node.fields:
                if each.name in value:
                    inner = (f"{node.full_name}.{each.name}", tags_in(each.props))
                    changed[each.name] = walk_avro(each.type, value[each.name], visit, inner, depth + 1)
            return changed
        case Primitive() if field is not None:
            return visit(*field, node.kind, value)
    return value


def takes(node: Node, value: Any) -> bool:
    """Say whether a branch of a union may be that of a value."""
    match node:
        case Primitive():
            return AVRO[node.kind](value)
        case Array():
            return isinstance(value, list | tuple)
        case Map():
            return isinstance(value, dict)
        case Named(kind="enum"):
            return value in node.symbols
        case Named(kind="fixed"):
            return isinstance(value, bytes) and len(value) == node.size
        case Named():
            named = {each.name for each in node.fields}
            needed = {each.name for each in node.fields if not each.has_default}
            return isinstance(value, dict) and needed <= set(value) and set(value) - {"-type"} <= named
    return False


class JsonWalk:
    """A walk over a JSON value. `resolve(reference, base)` finds a schema and its base; `fits` says whether a value is
    valid under a part of the schema."""

    def __init__(
        self, resolve: Callable[[str, Any], tuple[Any, Any]], fits: Callable[[Any, Any, Any], bool], visit: Visit
    ) -> None:
        self._resolve, self._fits, self._visit = resolve, fits, visit

    def walk(
        self, schema: Any, base: Any, value: Any, path: str = "$", field: Field | None = None, depth: int = 0
    ) -> Any:
        """Visit the fields below a schema; `base` is that of the document it stands in."""
        if depth > MAX_DEPTH:
            raise SerdeError(f"the value, or its schema, nests deeper than {MAX_DEPTH} levels")
        if not isinstance(schema, dict) or value is None:
            return value
        if "$ref" in schema:
            found, inner = self._resolve(schema["$ref"], base)
            return self.walk(found, inner, value, path, field, depth + 1)
        for part in self._parts(schema, base, value):
            value = self.walk(part, base, value, path, field, depth + 1)
        if isinstance(value, dict):
            return self._object(schema, base, value, path, depth)
        if isinstance(value, list):
            items = schema.get("items")
            return [self.walk(items, base, each, path, field, depth + 1) for each in value]
        if field is None or not {"allOf", "anyOf", "oneOf"}.isdisjoint(schema):
            return value
        return self._visit(*field, kind_of(value), value)

    def _parts(self, schema: dict[str, Any], base: Any, value: Any) -> list[Any]:
        """Return the schemas of allOf, and those of oneOf and anyOf that the value fits."""
        parts = list(schema.get("allOf") or ())
        fitting = [part for part in schema.get("oneOf") or () if self._fits(part, base, value)][:1]
        return parts + fitting + [part for part in schema.get("anyOf") or () if self._fits(part, base, value)]

    def _object(self, schema: dict[str, Any], base: Any, value: dict[str, Any], path: str, depth: int) -> Any:
        changed = dict(value)
        for name, inner in (schema.get("properties") or {}).items():
            if name in value and isinstance(inner, dict):
                place = f"{path}.{name}"
                field = (place, [str(tag) for tag in inner.get(TAGS) or ()])
                changed[name] = self.walk(inner, base, value[name], place, field, depth + 1)
        return changed


def kind_of(value: Any) -> str:
    match value:
        case str():
            return STRING
        case bytes():
            return BYTES
        case bool():
            return "boolean"
    return "number"
