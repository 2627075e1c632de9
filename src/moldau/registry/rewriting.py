"""Paths under another name: `/contexts/.ctx/subjects/orders` is `/subjects/:.ctx:orders`; an alias is its subject."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.types import Scope

from moldau.http import HttpError
from moldau.registry import names
from moldau.registry.store import Store

QUALIFIED = (":.", names.WILDCARD)


def rewrite(store: Store, scope: Scope) -> None:
    """Change path and query of a request to what they stand for."""
    if not store.aliased and not any(sign in scope["raw_path"] for sign in (b"contexts", b"%")):
        return
    segments = [
        unquote(part, errors="surrogateescape") for part in scope["raw_path"].decode("latin-1").split("/") if part
    ]
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, errors="surrogateescape")
    before = segments, query
    if segments[:1] == ["contexts"] and len(segments) > 2:
        segments, query = _in_context(segments[1], segments[2:], query)
    segments, query = _without_aliases(store, segments, query)
    if (segments, query) != before:
        path = "/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in segments)
        scope["raw_path"] = path.encode("latin-1")
        scope["query_string"] = urlencode(query, errors="surrogateescape").encode("latin-1")


Query = list[tuple[str, str]]


def _in_context(context: str, segments: list[str], query: Query) -> tuple[list[str], Query]:
    try:
        prefix = names.delimited(context)
    except ValueError as error:
        raise HttpError(400, str(error)) from None
    if segments[0] in ("config", "mode"):
        segments = [segments[0], _prefixed(prefix, segments[1] if len(segments) > 1 else ""), *segments[2:]]
        segments = [part for part in segments if part]
    elif "subjects" in segments[:-1]:
        at = segments.index("subjects") + 1
        segments = [*segments[:at], _prefixed(prefix, segments[at]), *segments[at + 1 :]]
    elif segments in (["subjects"], ["schemas"]):
        query = _changed(query, "subjectPrefix", prefix)
    elif segments[:2] == ["schemas", "ids"]:
        query = _changed(query, "subject", prefix)
    return segments, query


def _prefixed(prefix: str, name: str) -> str:
    return name if name.startswith(QUALIFIED) else prefix + name


def _changed(query: Query, name: str, prefix: str) -> Query:
    given = dict(query).get(name, "")
    return [*(pair for pair in query if pair[0] != name), (name, _prefixed(prefix, given))]


def _without_aliases(store: Store, segments: list[str], query: Query) -> tuple[list[str], Query]:
    if "subjects" in segments[:-1]:
        at = segments.index("subjects") + 1
        segments = [*segments[:at], aliased(store, segments[at]), *segments[at + 1 :]]
    elif segments[:2] == ["schemas", "ids"]:
        query = [(name, aliased(store, value) if name == "subject" else value) for name, value in query]
    return segments, query


def aliased(store: Store, subject: str) -> str:
    """Return the subject that a name is an alias of, or the name."""
    alias = store.configs.get(names.normal(subject), {}).get("alias")
    return names.within(subject, alias) if alias else subject
