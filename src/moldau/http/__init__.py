"""What the HTTP services share: endpoints as rows, media types, documents, OpenAPI, limits, callers, HTTPS, error
bodies, forwarding to a leader, and the start of a server.

A service gives rows of `Endpoint` and a `Host`, maps its own refusals to `HttpError`, and calls `run`.
Settings are those of scope `http`.
"""

from moldau.http.callers import ADMIN, EDITOR, VIEWER, Caller
from moldau.http.documents import Documents
from moldau.http.endpoints import LEADER, READ, THREAD, Answer, Call, Endpoint, Host, path_number, routes
from moldau.http.errors import HttpError, error_body, json_response
from moldau.http.media import Types
from moldau.http.openapi import OpenApi
from moldau.http.routing import Handler, Route, Routes
from moldau.http.serve import Listen, ServeError, Server, parse_listen, run
from moldau.http.service import Service, read_body, read_json
from moldau.http.threaded import Threaded

__all__ = [
    "ADMIN",
    "EDITOR",
    "LEADER",
    "READ",
    "THREAD",
    "VIEWER",
    "Answer",
    "Call",
    "Caller",
    "Documents",
    "Endpoint",
    "Handler",
    "Host",
    "HttpError",
    "Listen",
    "OpenApi",
    "Route",
    "Routes",
    "ServeError",
    "Server",
    "Service",
    "Threaded",
    "Types",
    "error_body",
    "json_response",
    "parse_listen",
    "path_number",
    "read_body",
    "read_json",
    "routes",
    "run",
]
