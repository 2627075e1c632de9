"""A service in a thread of a process that does other things too."""

from __future__ import annotations

import asyncio
import threading

from moldau.http.routing import Routes
from moldau.http.serve import BACKLOG, Server, bind, parse_listen
from moldau.http.service import Service
from moldau.settings import HTTP, ServiceSettings

JSON = "application/json"


class Threaded:
    """Serves until `close`. `url` is where it is: of port 0 any port is taken."""

    def __init__(self, routes: Routes, listen: str, media_type: str = JSON) -> None:
        settings = ServiceSettings([HTTP])
        bound, place = bind(parse_listen(listen, settings))
        bound.listen(BACKLOG)  # whoever asks before the thread runs waits for it
        self.url = place.url
        self._server = Server(Service(routes, settings, media_type), place, settings)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve(sockets=[bound])), name=f"HTTP at {self.url}", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()
