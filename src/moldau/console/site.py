"""The pages as one application of NiceGUI: each row of the table of pages becomes a route."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request
from nicegui import Client, ui
from nicegui import app as niceapp
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from moldau.console import frame
from moldau.console.guard import ACCOUNT, TOKEN
from moldau.console.page_context import Console, Desk
from moldau.console.pages import PAGES

RECONNECT_S = 10.0
NOWHERE = frame.Page("", "Not found", None, lambda desk: None)
FAVICON = Path(__file__).parent / "favicon.svg"
DARK = "moldau_dark"  # the cookie that remembers the switch

log = logging.getLogger(__name__)


def application(console: Console) -> ASGIApp:
    """Return the application behind the guard."""
    for page in PAGES:
        _route(console, page)
    around = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    options = {"title": "Moldau", "favicon": FAVICON, "dark": None, "reconnect_timeout": RECONNECT_S}
    ui.run_with(around, **options, show_welcome_message=False)
    niceapp.on_exception(lambda error: log.error("a page failed", exc_info=error))
    niceapp.add_exception_handler(404, _missing(console))
    return around


def _route(console: Console, page: frame.Page) -> None:
    @ui.page(page.path, title=f"{page.title} · Moldau")
    def show(request: Request) -> None:
        desk = _desk(console, request)
        with frame.around(desk, page, PAGES):
            page.show(desk)


def _desk(console: Console, request: Request) -> Desk:
    return Desk(
        console,
        dict(request.path_params),
        dict(request.query_params),
        request.scope.get(ACCOUNT),
        request.scope.get(TOKEN),
        {"1": True, "0": False}.get(request.cookies.get(DARK, "")),
    )


def _missing(console: Console) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return a handler for unknown addresses, whose page has the navigation too."""

    async def answer(request: Request, error: Exception) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            return PlainTextResponse("There is nothing at this address.\n", 404)
        client = Client(ui.page("", title="Not found · Moldau"), request=request)
        with client, frame.around(_desk(console, request), NOWHERE, PAGES):
            frame.heading("Page not found")
            with frame.panel():
                frame.empty("There is nothing at this address.", "Choose a page from the navigation.", "search_off")
        return client.build_response(request, 404)

    return answer
