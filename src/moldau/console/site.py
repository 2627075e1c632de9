"""The pages as one application of NiceGUI: each row of the table of pages becomes a route."""

from __future__ import annotations

import logging
from pathlib import Path

from fastapi import FastAPI, Request
from nicegui import app as niceapp
from nicegui import ui
from starlette.types import ASGIApp

from moldau.console import frame
from moldau.console.desk import Console, Desk
from moldau.console.guard import ACCOUNT, TOKEN
from moldau.console.pages import PAGES

RECONNECT_S = 10.0
FAVICON = Path(__file__).parent / "favicon.svg"
DARK = "moldau_dark"  # the cookie that remembers the switch

log = logging.getLogger(__name__)


def application(console: Console) -> ASGIApp:
    """Everything behind the guard."""
    for page in PAGES:
        _route(console, page)
    around = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    ui.run_with(
        around,
        title="Moldau",
        favicon=FAVICON,
        dark=None,
        reconnect_timeout=RECONNECT_S,
        show_welcome_message=False,
    )
    niceapp.on_exception(lambda error: log.error("a page failed", exc_info=error))
    return around


def _route(console: Console, page: frame.Page) -> None:
    @ui.page(page.path, title=f"{page.title} · Moldau")
    def show(request: Request) -> None:
        desk = Desk(
            console,
            dict(request.path_params),
            dict(request.query_params),
            request.scope.get(ACCOUNT),
            request.scope.get(TOKEN),
            {"1": True, "0": False}.get(request.cookies.get(DARK, "")),
        )
        with frame.around(desk, page, PAGES):
            page.show(desk)
