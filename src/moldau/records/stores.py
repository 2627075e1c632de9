"""Queries of stores of streams applications: over HTTP, or from a changelog alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from moldau.admin.mistakes import Mistake

if TYPE_CHECKING:
    from moldau.operators.stores.spec import StoreSpec
    from moldau.serdes.context import Serde
    from moldau.serdes.registry import Registry
    from moldau.views.served import Served

LONG_MS = 2**53  # the retention of a store of which only the changelog is known: nothing goes
LARGEST = 64 << 20  # bytes of an answer
TIMEOUT_S = 60
OK, NOT_FOUND = 200, 404


class Kind(StrEnum):
    """The kind of a store of which only the changelog is known."""

    key_value = "key-value"
    window = "window"
    session = "session"
    versioned = "versioned"


def by_id(application: str, spec: StoreSpec, settings: Mapping[str, Any]) -> Served:
    """Return one store of an application of which only the id is known. `settings` are those of a client."""
    from moldau.views.served import Changelog, Served

    return Served(application, {spec.name: Changelog(spec, f"{application}-{spec.name}-changelog")}, settings)


def spec_of(name: str, kind: Kind, window_size_ms: int, key: Serde, value: Serde) -> StoreSpec:
    """Return the specification of a store from its description."""
    from moldau.operators.stores import key_value, session, versioned, window

    match kind:
        case Kind.key_value:
            return key_value.timestamped_key_value(name, key, value)
        case Kind.window:
            return window.window(name, window_size_ms, LONG_MS, key, value, stamped=True)
        case Kind.session:
            return session.session(name, LONG_MS, key, value)
        case Kind.versioned:
            return versioned.versioned(name, LONG_MS, key, value)


def serde_of(name: str, registry: Callable[[], Registry]) -> Serde:
    """Return the serde of a format; connect to the registry only if it is needed."""
    from moldau.serdes.formats import TYPED, serde

    try:
        return serde(name, registry() if name in TYPED else None)
    except ValueError as error:
        raise Mistake(f"{error}.") from None


def over_http(url: str, store: str, key: str, sql: str, asked: Mapping[str, str]) -> Any:
    """Ask the application at `url` for entries of a store, those of a key, or rows of a query."""
    import httpx

    path = "/sql" if sql else f"/stores/{quote(store, safe='')}/entries" + (f"/{quote(key, safe='')}" if key else "")
    given: dict[str, Any] = {"json": {"sql": sql}} if sql else {"params": asked}
    try:
        with (
            httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False) as client,
            client.stream("POST" if sql else "GET", path, **given) as answer,
        ):
            return _answer(url, answer.status_code, _body(url, answer), key)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Mistake(f"{url} does not answer: {error}.") from None


def _body(url: str, answer: Any) -> Any:
    found = bytearray()
    for piece in answer.iter_bytes():
        found += piece
        if len(found) > LARGEST:
            raise Mistake(f"{url} answers with more than {LARGEST >> 20} MB: ask for less.")
    try:
        return json.loads(found)
    except (ValueError, RecursionError):
        raise Mistake(f"What answers at {url} with status {answer.status_code} is no application.server.") from None


def _answer(url: str, status: int, body: Any, key: str) -> Any:
    if status == OK:
        return body
    if status == NOT_FOUND and key:
        return []
    message = body.get("message") if isinstance(body, dict) else None
    raise Mistake(str(message or f"{url} answers {status}."))


def of_views(served: Served, store: str, key: str, sql: str, asked: Mapping[str, str]) -> Any:
    """Ask views in this process for the same, and close them."""
    from moldau.http import HttpError
    from moldau.views import ViewError
    from moldau.views.plain import plain
    from moldau.views.service import Endpoints

    with served:
        try:
            if sql:
                return plain(served.sql(sql).to_pylist())
            ask = Endpoints(served)
            return ask.of_key({"store": store, "key": key}, asked) if key else ask.of_all(store, asked)
        except HttpError as error:
            if error.status == NOT_FOUND and store in served.changelogs:
                return []
            raise Mistake(str(error)) from None
        except ViewError as error:
            raise Mistake(f"{error}.") from None
