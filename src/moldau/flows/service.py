"""Flows over HTTP, on the port of the console: rows of endpoints, made from the table of verbs.

Whoever may use the console may look; who may change something there may use the verbs. Code is accepted only with
`flows.code.http=true`, since whoever sends it runs it on the workers.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request

from moldau.client import Client, ClientError
from moldau.flows import catalog, code, deploying
from moldau.flows.definition import NAME, Definition, FlowError, Foreign
from moldau.flows.diff import diff_of
from moldau.flows.overview import Overview, overviews, workers
from moldau.flows.verbs import VERBS, act
from moldau.http import Answer, Call, Endpoint, Host, HttpError, Routes, read_body, routes
from moldau.http.media import ANY
from moldau.plan.topology_change import Survival
from moldau.topicstore import StoreError

PREFIX = "/api"
FLOWS = f"{PREFIX}/flows"
ONE = f"{FLOWS}/{{name}}"
WORKERS = f"{PREFIX}/workers"
CODE_HTTP = "flows.code.http"
READ_ONLY = "You may only look here."
NO_CODE = (
    f"Code is not accepted here: deploy it with `moldau streams deploy`, or start the console with {CODE_HTTP}=true."
)


class Endpoints:
    """Answers about the flows of a cluster. `may_act` decides who may change something."""

    def __init__(
        self, client: Client, settings: Mapping[str, Any], may_act: Callable[[Request], bool], takes_code: bool
    ) -> None:
        self._client, self._settings, self._may_act, self._takes_code = client, settings, may_act, takes_code

    def rows(self) -> list[Endpoint]:
        return [
            Endpoint("GET", FLOWS, self.flows, "All flows and their states.", produces=ANY),
            Endpoint("GET", ONE, lambda call: self.flow(call.path["name"]), "One, with its versions.", produces=ANY),
            Endpoint("GET", f"{ONE}/diff", self.diff, "What the last upgrade has changed.", produces=ANY),
            *(
                Endpoint("POST", f"{ONE}/{verb}", partial(self.verb, verb), row.doc, status=202, produces=ANY)
                for verb, row in VERBS.items()
            ),
            Endpoint(
                "PUT",
                f"{ONE}/code",
                self.deploy,
                "Deploys a zip.",
                status=202,
                takes="Zip",
                accepts=ANY,
                produces=ANY,
                unbounded=True,  # loading has a limit of its own
            ),
            Endpoint("GET", WORKERS, lambda call: self.workers(), "All workers, lanes and figures.", produces=ANY),
            Endpoint("GET", f"{WORKERS}/{{name}}", self.worker, "One worker.", produces=ANY),
        ]

    def routes(self) -> Routes:
        return routes(self.rows(), Host(self._open, in_thread))

    async def _open(self, endpoint: Endpoint, request: Request, media_type: str, accepted: str) -> Call:
        call = Call(request, media_type, accepted)
        if endpoint.method != "GET" and not self._may_act(request):
            raise HttpError(403, READ_ONLY)
        if endpoint.takes:
            if not self._takes_code:
                raise HttpError(403, NO_CODE)
            call.body = await read_body(request)
        return call

    def flows(self, call: Call) -> Any:
        return [asdict(one) for one in overviews(catalog.read(self._client), self._client)]

    def flow(self, name: str) -> Any:
        known = catalog.read(self._client)
        one = next((one for one in overviews(known, self._client) if one.name == name), None)
        if one is None:
            raise HttpError(404, f"There is no flow {name}.")
        return shown(one, known[name])

    def diff(self, call: Call) -> Any:
        one = catalog.read(self._client).get(call.path["name"])
        if not isinstance(one, Definition):
            raise HttpError(404, f"There is no flow {call.path['name']}.")
        return {
            "previous": one.previous and one.previous[0],
            "version": one.version,
            "diff": diff_of(self._client, one),
        }

    def verb(self, verb: str, call: Call) -> Any:
        name = call.path["name"]
        if name not in catalog.read(self._client):
            raise HttpError(404, f"There is no flow {name}.")
        made = act(self._settings, self._client, name, verb)
        return {"name": made.name, "wanted": made.wanted, "revision": made.revision, "version": made.version}

    def workers(self) -> Any:
        return [asdict(one) for one in workers(self._client)]

    def worker(self, call: Call) -> Any:
        found = next((one for one in self.workers() if one["name"] == call.path["name"]), None)
        if found is None:
            raise HttpError(404, f"There is no worker {call.path['name']}.")
        return found

    def deploy(self, call: Call) -> Any:
        """Load the zip in a child process, as a worker does, and deploy what it makes."""
        name, file = call.path["name"], call.query.get("file", "app.py")
        if not NAME.fullmatch(name):
            raise HttpError(422, "That is no name of a flow.")
        made, kept = deploy(self._settings, self._client, name, file, call.body)
        return Answer(202, {"name": name, "version": made.version, "stores": None if kept is None else asdict(kept)})


def shown(one: Overview, definition: Definition | Foreign) -> dict[str, Any]:
    """Return a flow with what only its definition has."""
    if not isinstance(definition, Definition):
        return asdict(one)
    more = {"settings": dict(definition.settings), "topics": definition.topics, "revision": definition.revision}
    return asdict(one) | more


def deploy(
    settings: Mapping[str, Any], client: Client, name: str, file: str, data: bytes
) -> tuple[Definition, Survival | None]:
    from moldau.flows.streams_kind import loaded

    if len(data) > code.MOST_BYTES:
        raise FlowError(f"The code has {len(data):,} bytes as a zip; {code.MOST_BYTES:,} are allowed.")
    with tempfile.TemporaryDirectory(prefix="moldau-flow-") as scratch:
        folder = Path(scratch, "code")
        code.unpack(data, folder)
        path = (folder / file).resolve()
        if folder.resolve() not in path.parents or not path.is_file():
            raise FlowError(f"The zip has no file {file[:100]!r}: name the one that makes the builder with ?file=.")
        made = loaded(path, {**{key: str(text) for key, text in settings.items()}, "application.id": name})
    one = deploying.made_of(made, file, data)
    with catalog.opened(settings) as opened:
        new, kept = deploying.defined(one, {}, client, opened.flows.get(name))
        deploying.refuse_loss(name, kept)
        return deploying.deploy(opened, client, new, data), kept


async def in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return await asyncio.to_thread(function, *arguments)
    except FlowError as error:
        raise HttpError(409, str(error)) from None
    except (StoreError, ClientError) as error:
        raise HttpError(503, str(error), headers={"Retry-After": "1"}) from None
