"""`/metrics` for Prometheus and `/status` as JSON, on an address of this machine."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from moldau.spark.runner.status import Metrics, QueryStatus, to_json

REQUEST_S = 10.0


class StatusPage:
    """Serves statuses in a thread of its own until it is closed. Port 0 takes a free one."""

    def __init__(self, statuses: Mapping[str, QueryStatus], port: int, host: str = "127.0.0.1") -> None:
        self._statuses = statuses
        self._registry = CollectorRegistry()
        self._registry.register(Metrics(statuses))
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, name="status", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> tuple[int, str, bytes]:
        match path.partition("?")[0]:
            case "/metrics":
                return 200, CONTENT_TYPE_LATEST, generate_latest(self._registry)
            case "/status" | "/":
                return 200, "application/json", to_json(self._statuses.values()).encode()
            case _:
                return 404, "text/plain", b"There are /metrics and /status.\n"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        page = self

        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_S

            def do_GET(self) -> None:
                status, kind, body = page.answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None: ...

        return Handler
