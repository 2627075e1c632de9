"""An HTTP service of Moldau in a process of its own, and a cluster, as tests have them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from moldau.testing import Broker, broker
from moldau.testing.plugin import OF_A_RUN

START_S = 180.0
STOP_S = 15.0
COUNT = itertools.count()


class Service:
    """`moldau registry` or `moldau rest` that serves at `url`, and a client of it. `client` is what httpx takes."""

    def __init__(self, name: str, *arguments: str, settings: tuple[str, ...] = (), **client: Any) -> None:
        command = [sys.executable, "-m", "moldau", name, *arguments, "--stop-with-stdin"]
        for setting in settings:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = self._first_line().removeprefix("ready ").strip()
        assert self.url.startswith("http"), f"moldau {name} did not start"
        self.http = httpx.Client(base_url=self.url, **{"timeout": 60.0, **client})

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        try:
            return self.process.stdout.readline().decode()
        finally:
            timer.cancel()

    def stop(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.http.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.http.close()


@contextmanager
def cluster(settings: Mapping[str, Any]) -> Iterator[Broker]:
    """A broker; CONFORMANCE_BOOTSTRAP names another, Apache Kafka say."""
    elsewhere = os.environ.get("CONFORMANCE_BOOTSTRAP")
    if elsewhere:
        there = Broker()
        there._address = elsewhere
        yield there
    else:
        with broker({**OF_A_RUN, **settings}) as started:
            yield started


def unique(name: str = "x") -> str:
    """A name that no other test of this process has."""
    return f"{name}-{next(COUNT)}"
