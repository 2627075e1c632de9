"""What the HTTP services share: a table of routes, limits, basic auth, HTTPS, error bodies, and the start of a server.

A service gives rows of `Route`, maps its own refusals to `HttpError`, and calls `run`. Settings are those of scope
`http`.
"""

from moldau.http.errors import HttpError, error_body, json_response
from moldau.http.routing import Handler, Route, Routes
from moldau.http.serve import Listen, ServeError, Server, parse_listen, run
from moldau.http.service import Service, read_body, read_json
from moldau.http.threaded import Threaded

__all__ = [
    "Handler",
    "HttpError",
    "Listen",
    "Route",
    "Routes",
    "ServeError",
    "Server",
    "Service",
    "Threaded",
    "error_body",
    "json_response",
    "parse_listen",
    "read_body",
    "read_json",
    "run",
]
