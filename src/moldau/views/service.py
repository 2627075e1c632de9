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
Asked = Mapping[str, str]  # the parameters of a request


def found_of_key(view: View, key: Any, asked: Asked) -> Iterator[dict[str, Any]]:
    """Return what a view has of a key: one entry, or one for each window, session or version."""
    first, last, reverse = time_of(asked, "start", 0), time_of(asked, "end", LAST_TIME), flag(asked, "reverse")
    match view:
        case WindowView():
            size = view.spec.part("window_size_ms")
            for start, found in view.fetch_range(key, first, last, reverse):
                yield entry(Windowed(key, start, min(start + size, LAST_TIME)), found)
        case SessionView():
            for place, found in view.find_sessions(key, first, last, reverse):
                yield entry(place, found)
        case VersionedView() if "as_of" in asked:
            found = view.as_of(key, time_of(asked, "as_of", 0))
            yield from () if found is None else (entry(key, found),)
        case VersionedView() if "start" in asked or "end" in asked:
            for found in view.get_range(key, first, last, reverse):
                yield entry(key, found)
        case KeyValueView() | VersionedView():
            found = view.get(key)
            yield from () if found is None else (entry(key, found),)


def found_of_all(view: View, asked: Asked) -> Iterator[dict[str, Any]]:
    """Return what a view has between two keys, or after a prefix."""
    first, last, reverse = time_of(asked, "start", 0), time_of(asked, "end", LAST_TIME), flag(asked, "reverse")
    low, high = (key_of_text(view.spec.key, asked[name]) if name in asked else None for name in ("from", "to"))
    match view:
        case KeyValueView() if "prefix" in asked:
            found = view.prefix_scan(key_of_text(view.spec.key, asked["prefix"]))
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
            Endpoint("GET", ONE, lambda call: self.told(call.path["store"]), produces=ANY),
            Endpoint("GET", f"{ONE}/entries", lambda call: self.of_all(call.path["store"], call.query), produces=ANY),
            Endpoint("GET", f"{ONE}/entries/{{key}}", lambda call: self.of_key(call.path, call.query), produces=ANY),
            Endpoint("POST", "/sql", self.sql, takes="Query", accepts=ANY, produces=ANY),
        ]
        return routes(rows, Host(open_call, in_thread))

    def stores(self, call: Call) -> Any:
        return [self.told(name) for name in sorted(self.served.changelogs)]

    def told(self, name: str) -> dict[str, Any]:
        view = self.served.store(name)
        return {
            "store": name,
            "kind": view.spec.kind,
            "topic": view.topic,
            "position": {str(number): offset for number, offset in view.position.items()},
            "lag": sum(view.lags.values()),
            "entries": view.approximate_count(),
        }

    def of_key(self, path: Mapping[str, str], asked: Asked) -> Any:
        view = self.view(path["store"], asked)
        key = key_of_text(view.spec.key, path["key"])
        if flag(asked, "wait") and isinstance(view, KeyValueView):
            view.wait_for(key, wait_s(asked))
        found = list(islice(found_of_key(view, key, asked), limit_of(asked)))
        if not found:
            raise HttpError(404, f"{view.name} has nothing of {path['key']}.")
        return found[0] if isinstance(view, KeyValueView) else found

    def of_all(self, name: str, asked: Asked) -> Any:
        return list(islice(found_of_all(self.view(name, asked), asked), limit_of(asked)))

    def sql(self, call: Call) -> Any:
        query = call.body.get("sql") if isinstance(call.body, dict) else None
        if not isinstance(query, str):
            raise HttpError(422, 'The body must be {"sql": "SELECT ..."}.')
        return plain(self.served.sql(query).slice(0, MOST_ENTRIES).to_pylist())

    def view(self, name: str, asked: Asked) -> View:
        if name not in self.served.changelogs:
            raise HttpError(404, f"{self.served.application} has no store {name}.")
        wanted = asked.get("at_least")
        at_least = None if wanted is None else "latest" if wanted == "latest" else position_of_text(wanted)
        view = self.served.store(name, at_least=at_least, timeout=wait_s(asked))
        return view.at(position_of_text(asked["at"])) if "at" in asked else view


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


def flag(asked: Asked, name: str) -> bool:
    return asked.get(name, "false").lower() in ("true", "1", "yes", "")


def whole(asked: Asked, name: str, default: int) -> int:
    text = asked.get(name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 19:
        raise HttpError(422, f"{name} must be a whole number, not {text!r}.")
    return int(text)


def time_of(asked: Asked, name: str, default: int) -> int:
    return min(whole(asked, name, default), LAST_TIME)


def limit_of(asked: Asked) -> int:
    return min(whole(asked, "limit", DEFAULT_ENTRIES), MOST_ENTRIES)


def wait_s(asked: Asked) -> float:
    return min(whole(asked, "timeout_ms", 5_000), MOST_WAIT_MS) / 1000


def serve(served: Served, server: str) -> Threaded:
    """Start the service in a thread of its own, until `close`. `url` is where it is."""
    return Threaded(Endpoints(served).routes(), server)
