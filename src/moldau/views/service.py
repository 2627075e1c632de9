"""Views over HTTP: what `application.server` of an application answers.

| | |
|---|---|
| GET /stores | the stores, how far each was read and how far it is behind |
| GET /stores/{store} | one of them |
| GET /stores/{store}/entries/{key} | a key: its value, its windows or sessions, its version |
| GET /stores/{store}/entries | all, a range (`from`, `to`), a prefix |
| POST /sql | a query over any of the stores: `{"sql": "..."}` |

Parameters: `at_least=0:120,1:44` or `latest` and `timeout_ms`; `at=0:120` for the past; `start`, `end` for times;
`wait=true` waits for a key that is not there yet; `limit`, `reverse`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from starlette.requests import Request

from moldau.http import Call, Endpoint, Host, HttpError, Routes, Threaded, read_body, read_json, routes
from moldau.http.media import ANY
from moldau.operators.windowed import LAST_TIME, Windowed
from moldau.serdes.context import SerdeError

from .errors import Stale, ViewError
from .plain import entry, key_of_text, plain, position_of_text
from .served import Served
from .view import KeyValueView, SessionView, VersionedView, View, WindowView

ONE = "/stores/{store}"
MOST_ENTRIES = 10_000
DEFAULT_ENTRIES = 1_000
MOST_WAIT_MS = 25_000  # less than request.timeout.ms
Query = Mapping[str, str]  # the parameters of a request


def entries_of_key(view: View, key: Any, query: Query) -> Iterator[dict[str, Any]]:
    """Return what a view has of a key: one entry, or one for each window, session or version."""
    first, last, reverse = time_of(query, "start", 0), time_of(query, "end", LAST_TIME), flag(query, "reverse")
    match view:
        case WindowView():
            size = view.spec.part("window_size_ms")
            for start, found in view.fetch_range(key, first, last, reverse):
                yield entry(Windowed(key, start, min(start + size, LAST_TIME)), found)
        case SessionView():
            for place, found in view.find_sessions(key, first, last, reverse):
                yield entry(place, found)
        case VersionedView() if "as_of" in query:
            found = view.as_of(key, time_of(query, "as_of", 0))
            yield from () if found is None else (entry(key, found),)
        case VersionedView() if "start" in query or "end" in query:
            for found in view.get_range(key, first, last, reverse):
                yield entry(key, found)
        case KeyValueView() | VersionedView():
            found = view.get(key)
            yield from () if found is None else (entry(key, found),)


def entries_between(view: View, query: Query) -> Iterator[dict[str, Any]]:
    """Return what a view has between two keys, or after a prefix."""
    first, last, reverse = time_of(query, "start", 0), time_of(query, "end", LAST_TIME), flag(query, "reverse")
    low, high = (key_of_text(view.spec.key, query[name]) if name in query else None for name in ("from", "to"))
    match view:
        case KeyValueView() if "prefix" in query:
            found = view.prefix_scan(key_of_text(view.spec.key, query["prefix"]))
        case KeyValueView():
            found = view.range(low, high, reverse)
        case WindowView():
            found = view.fetch_keys(low, high, first, last, reverse)
        case SessionView():
            found = view.fetch_keys(low, high, reverse)
        case _:
            raise ViewError(f"{view.name} is versioned: ask for one key, or by SQL")
    return (entry(key, value) for key, value in found)


class Endpoints:
    """Answers from the views of one application. All of them may wait, so each has a thread."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def routes(self) -> Routes:
        rows = [
            Endpoint("GET", "/stores", self.stores, produces=ANY),
            Endpoint("GET", ONE, lambda call: self.describe(call.path["store"]), produces=ANY),
            Endpoint("GET", f"{ONE}/entries", lambda call: self.of_all(call.path["store"], call.query), produces=ANY),
            Endpoint("GET", f"{ONE}/entries/{{key}}", lambda call: self.of_key(call.path, call.query), produces=ANY),
            Endpoint("POST", "/sql", self.sql, takes="Query", accepts=ANY, produces=ANY),
        ]
        return routes(rows, Host(open_call, in_thread))

    def stores(self, call: Call) -> Any:
        return [self.describe(name) for name in sorted(self.served.changelogs)]

    def describe(self, name: str) -> dict[str, Any]:
        view = self.served.store(name)
        return {
            "store": name,
            "kind": view.spec.kind,
            "topic": view.topic,
            "position": {str(number): offset for number, offset in view.position.items()},
            "lag": sum(view.lags.values()),
            "entries": view.approximate_count(),
        }

    def of_key(self, path: Mapping[str, str], query: Query) -> Any:
        view = self.view(path["store"], query)
        key = key_of_text(view.spec.key, path["key"])
        if flag(query, "wait") and isinstance(view, KeyValueView):
            view.wait_for(key, wait_s(query))
        found = list(islice(entries_of_key(view, key, query), limit_of(query)))
        if not found:
            raise HttpError(404, f"{view.name} has nothing of {path['key']}.")
        return found[0] if isinstance(view, KeyValueView) else found

    def of_all(self, name: str, query: Query) -> Any:
        return list(islice(entries_between(self.view(name, query), query), limit_of(query)))

    def sql(self, call: Call) -> Any:
        text = call.body.get("sql") if isinstance(call.body, dict) else None
        if not isinstance(text, str):
            raise HttpError(422, 'The body must be {"sql": "SELECT ..."}.')
        return plain(self.served.sql(text).slice(0, MOST_ENTRIES).to_pylist())

    def view(self, name: str, query: Query) -> View:
        if name not in self.served.changelogs:
            raise HttpError(404, f"{self.served.application} has no store {name}.")
        wanted = query.get("at_least")
        at_least = None if wanted is None else "latest" if wanted == "latest" else position_of_text(wanted)
        view = self.served.store(name, at_least=at_least, timeout=wait_s(query))
        return view.at(position_of_text(query["at"])) if "at" in query else view


async def open_call(endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
    call = Call(request, media_type, accepted)
    if endpoint.takes:
        try:
            call.body = read_json(await read_body(request))
        except ValueError as error:
            raise HttpError(400, str(error)) from None
    return call


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return await asyncio.to_thread(function, *arguments)
    except Stale as error:
        raise HttpError(503, f"{error}.", headers={"Retry-After": "1"}) from None
    except (ViewError, SerdeError) as error:
        raise HttpError(422, f"{error}.") from None


def flag(query: Query, name: str) -> bool:
    return query.get(name, "false").lower() in ("true", "1", "yes", "")


def whole(query: Query, name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19:
        raise HttpError(422, f"{name} must be a whole number, not {text!r}.")
    return int(text)


def time_of(query: Query, name: str, default: int) -> int:
    return min(whole(query, name, default), LAST_TIME)


def limit_of(query: Query) -> int:
    return min(whole(query, "limit", DEFAULT_ENTRIES), MOST_ENTRIES)


def wait_s(query: Query) -> float:
    return min(whole(query, "timeout_ms", 5_000), MOST_WAIT_MS) / 1000


def serve(served: Served, server: str) -> Threaded:
    """Start the service in a thread of its own, until `close`. `url` is where it is."""
    return Threaded(Endpoints(served).routes(), server)
