"""What programs may ask the console: the endpoints of flows, beside the pages and behind the same guard."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from moldau.console.guard import ACCOUNT
from moldau.console.page_context import Console, Desk
from moldau.flows.service import CODE_HTTP, PREFIX, Endpoints
from moldau.http import Service
from moldau.settings import ServiceSettings

JSON = "application/json"


def beside(pages: ASGIApp, console: Console, settings: ServiceSettings) -> ASGIApp:
    """Return an application that answers paths of the API, and leaves all others to the pages."""

    def may_act(request: Request) -> bool:
        return Desk(console, account=request.scope.get(ACCOUNT)).may_act

    endpoints = Endpoints(console.client, console.connection.kafka_settings, may_act, settings[CODE_HTTP])
    service = Service(endpoints.routes(), settings, JSON)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and scope["path"].startswith(f"{PREFIX}/")
        await (service if is_api else pages)(scope, receive, send)

    return application
