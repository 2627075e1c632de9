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
from jsonschema.exceptions import SchemaError as MetaschemaError
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing import jsonschema as drafts
from referencing.exceptions import Unresolvable

from . import json_text
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
DEFINITIONS = ("definitions", "$defs")


def draft_of(document: Any) -> str:
    """The draft that a document names, or draft 7."""
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
    """All documents that a $ref in this one can lead to: itself, its references and the metaschemas."""
    base = id_of(document)
    found: dict[str, Resource[Any]] = {}
    for name, text in resolved.items():
        other = resource(read(text, limits))
        found |= {name: other, urljoin(base, name): other}
    return jsonschema_specifications.REGISTRY.with_resources([*found.items(), (base, resource(document))])


def resource(document: Any) -> Resource[Any]:
    """A document for look-ups; what stands under `definitions` is also found under `$defs`."""
    return DRAFTS[draft_of(document)][0].create_resource(with_defs(document))


def with_defs(document: Any) -> Any:
    older = document.get("definitions") if isinstance(document, dict) else None
    newer = document.get("$defs", {}) if isinstance(document, dict) else None
    if isinstance(older, dict) and older and isinstance(newer, dict):
        return document | {"$defs": older | newer}
    return document


def check(document: Any, resolved: Mapping[str, str], limits: Limits) -> None:
    """What a first registration asks for: the document fulfils its metaschema, and every $ref leads somewhere."""
    validator = DRAFTS[draft_of(document)][1]
    error = best_match(validator(validator.META_SCHEMA).iter_errors(document))
    if error is not None:
        where = "/".join(map(str, error.absolute_path))
        raise SchemaError(f"at #/{where}: {error.message[:300]}")
    try:
        for _ in reachable(document, resolved, limits):
            pass
    except Unresolvable as unresolvable:
        raise SchemaError(f"$ref {unresolvable.ref!r} leads nowhere") from None
    except MetaschemaError as broken:
        raise SchemaError(str(broken.message)) from None


def reachable(document: Any, resolved: Mapping[str, str], limits: Limits) -> Iterator[Any]:
    """Every subschema in use, through all $refs; definitions that nothing leads to are not."""
    resolver = resources(document, resolved, limits).resolver(id_of(document))
    root = resolver.lookup(id_of(document))
    waiting, seen = [(root.contents, root.resolver, DRAFTS[draft_of(document)][0])], set()
    while waiting:
        schema, resolver, draft = waiting.pop()
        if id(schema) in seen or not isinstance(schema, dict):
            continue
        seen.add(id(schema))
        yield schema
        used = {key: value for key, value in schema.items() if key not in DEFINITIONS}
        for inner in draft.subresources_of(used):
            waiting.append((inner, resolver.in_subresource(draft.create_resource(inner)), draft))
        if isinstance(schema.get("$ref"), str):
            found = resolver.lookup(schema["$ref"])
            waiting.append((found.contents, found.resolver, draft))
