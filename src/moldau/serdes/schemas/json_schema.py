"""JSON Schema, drafts 4, 6, 7, 2019-09 and 2020-12: which draft a document follows, and where its $refs lead.

A referenced schema is found under its reference's name, also relative to the document's own id. Nothing is ever
fetched from elsewhere; the metaschemas of the drafts are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

import jsonschema_specifications
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing import jsonschema as drafts
from referencing.exceptions import Unresolvable

from . import json_text
from .json_plain import is_plain
from .parsed import Limits, SchemaError

DRAFTS = {
    "draft-04": (drafts.DRAFT4, Draft4Validator),
    "draft-06": (drafts.DRAFT6, Draft6Validator),
    "draft-07": (drafts.DRAFT7, Draft7Validator),
    "draft/2019-09": (drafts.DRAFT201909, Draft201909Validator),
    "draft/2020-12": (drafts.DRAFT202012, Draft202012Validator),
}
BY_URI = {f"{scheme}://json-schema.org/{name}/schema": name for name in DRAFTS for scheme in ("http", "https")}
BY_URI |= {f"{scheme}://json-schema.org/schema": "draft-04" for scheme in ("http", "https")}
# Keywords with a schema, a list of schemas, and schemas by name.
HOLDS_ONE = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
HOLDS_MANY = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))
HOLDS_NAMED = frozenset(("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"))
DEFINITIONS = ("definitions", "$defs")


def draft_of(document: Any) -> str:
    """Return the draft that a document names, or draft 7."""
    named = document.get("$schema") if isinstance(document, dict) else None
    return BY_URI.get(named.removesuffix("#"), "draft-07") if isinstance(named, str) else "draft-07"


def is_modern(document: Any) -> bool:
    return draft_of(document) in ("draft/2019-09", "draft/2020-12")


def read(text: str, limits: Limits) -> Any:
    document = json_text.loads(text, limits)
    if not isinstance(document, dict | bool):
        raise SchemaError(f"a JSON Schema is an object or a boolean, not {json_text.dumps(document)[:50]}")
    return document


def id_of(document: Any) -> str:
    found = document.get("id" if draft_of(document) == "draft-04" else "$id") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def resources(document: Any, resolved: Mapping[str, str], limits: Limits) -> Registry[Any]:
    """Return all documents that a $ref in this one can lead to: itself, its references and the metaschemas."""
    base = id_of(document)
    found: dict[str, Resource[Any]] = {}
    for name, text in resolved.items():
        other = resource(read(text, limits))
        found |= {name: other, urljoin(base, name): other}
    return jsonschema_specifications.REGISTRY.with_resources([*found.items(), (base, resource(document))])


def resource(document: Any) -> Resource[Any]:
    """Make a document for look-ups; what stands under `definitions` is also found under `$defs`."""
    return DRAFTS[draft_of(document)][0].create_resource(with_defs(document))


def with_defs(document: Any) -> Any:
    older = document.get("definitions") if isinstance(document, dict) else None
    newer = document.get("$defs", {}) if isinstance(document, dict) else None
    if isinstance(older, dict) and older and isinstance(newer, dict):
        return document | {"$defs": older | newer}
    return document


def check(document: Any, resolved: Mapping[str, str], limits: Limits) -> None:
    """Check what a first registration needs: the document fulfils its metaschema, and every $ref leads somewhere."""
    check_metaschema(document)
    try:
        for _ in reachable(document, resolved, limits):
            pass
    except Unresolvable as unresolvable:
        raise SchemaError(f"$ref {unresolvable.ref!r} leads nowhere") from None


def check_metaschema(document: Any) -> None:
    """Check one schema after the other, each without those inside of it. The library's way down is recursive, takes
    many calls a level, and is slow; so it gets only those that are not plainly right."""
    draft = draft_of(document)
    kind = DRAFTS[draft][1]
    validator = kind(kind.META_SCHEMA)
    waiting: list[tuple[str, Any]] = [("#", document)]
    while waiting:
        path, schema = waiting.pop()
        inside: list[tuple[str, Any]] = []
        alone = hollow(schema, path, inside)
        error = None if is_plain(alone, draft) else best_match(validator.iter_errors(alone))
        if error is not None:
            raise SchemaError(f"at {'/'.join((path, *map(str, error.absolute_path)))}: {error.message[:300]}")
        waiting += reversed(inside)


def hollow(schema: Any, path: str, inside: list[tuple[str, Any]]) -> Any:
    """Empty every schema in a schema; those go to `inside`, with their paths."""
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    for keyword, value in schema.items():
        where = f"{path}/{keyword}"
        if keyword in HOLDS_ONE and isinstance(value, dict):
            inside.append((where, value))
            made[keyword] = {}
        elif keyword in HOLDS_NAMED and isinstance(value, dict):
            inside += ((f"{where}/{name}", inner) for name, inner in value.items() if isinstance(inner, dict))
            made[keyword] = {name: {} if isinstance(inner, dict) else inner for name, inner in value.items()}
        elif keyword in HOLDS_MANY and isinstance(value, list):
            inside += (
                (f"{where}/{position}", inner) for position, inner in enumerate(value) if isinstance(inner, dict)
            )
            made[keyword] = [{} if isinstance(inner, dict) else inner for inner in value]
    return made


def reachable(document: Any, resolved: Mapping[str, str], limits: Limits) -> Iterator[Any]:
    """Walk over every subschema in use, through all $refs, and not over definitions that nothing leads to."""
    root = resources(document, resolved, limits).resolver(id_of(document)).lookup(id_of(document))
    draft = DRAFTS[draft_of(document)][0]
    waiting, seen = [(root.contents, root.resolver)], set[int]()
    while waiting:
        schema, resolver = waiting.pop()
        if id(schema) in seen or not isinstance(schema, dict):
            continue
        seen.add(id(schema))
        yield schema
        inside: list[tuple[str, Any]] = []
        hollow({key: value for key, value in schema.items() if key not in DEFINITIONS}, "", inside)
        waiting += ((inner, within(resolver, inner, draft)) for _, inner in inside)
        if isinstance(schema.get("$ref"), str):
            found = resolver.lookup(schema["$ref"])
            waiting.append((found.contents, found.resolver))


def within(resolver: Any, schema: Any, draft: Any) -> Any:
    """Return a resolver for what stands inside of a schema, which may have an id of its own."""
    has_id = isinstance(schema, dict) and ("$id" in schema or "id" in schema)
    return resolver.in_subresource(draft.create_resource(schema)) if has_id else resolver
