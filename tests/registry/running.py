"""A registry in a process of its own, as a test has it."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

BROKER = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 1,
}
COUNT = itertools.count()
START_S = 60.0


class Running:
    """A registry process and a client of it."""

    def __init__(self, bootstrap_servers: str, *settings: str, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "moldau", "registry", "--bootstrap-servers", bootstrap_servers]
        command += ["--listen", listen, "--stop-with-stdin"]
        for setting in settings:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = self._first_line().removeprefix("ready ").strip()
        assert self.url.startswith("http"), "the registry did not start"
        self.http = httpx.Client(base_url=self.url, timeout=30.0)

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        timer = threading.Timer(START_S, self.process.kill)
        timer.start()
        try:
            return self.process.stdout.readline().decode()
        finally:
            timer.cancel()

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The answer's JSON; a refusal as (status, code)."""
        given = more if body is None else {"json": body, **more}
        answer = self.http.request(method, path, **given)
        if answer.status_code == 204:
            return None
        content = answer.json()
        if answer.is_success:
            return content
        assert set(content) == {"error_code", "message"}, content
        assert "Traceback" not in content["message"]
        return answer.status_code, content["error_code"]

    def get(self, path: str, **more: Any) -> Any:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Any:
        return self.ask("POST", path, body, **more)

    def put(self, path: str, body: Any) -> Any:
        return self.ask("PUT", path, body)

    def delete(self, path: str) -> Any:
        return self.ask("DELETE", path)

    def register(self, subject: str, schema: Any, **more: Any) -> int:
        """The id of a schema after it was registered."""
        answer = self.post(f"/subjects/{subject}/versions", body(schema, **more))
        assert isinstance(answer, dict), answer
        return answer["id"]

    def stop(self) -> None:
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.http.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.http.close()


@contextmanager
def running(bootstrap_servers: str, *settings: str) -> Iterator[Running]:
    started = Running(bootstrap_servers, *settings)
    try:
        yield started
    finally:
        started.stop()


def body(schema: Any, **more: Any) -> dict[str, Any]:
    """A request that brings a schema."""
    return {"schema": schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False), **more}


def record(*fields: str, name: str = "Order", **defaults: Any) -> dict[str, Any]:
    """An Avro record of fields `name:type`; a default may follow by name."""
    rows = []
    for field in fields:
        field_name, _, kind = field.partition(":")
        rows.append({"name": field_name, "type": kind} | _default(defaults, field_name))
    return {"type": "record", "name": name, "fields": rows}


def _default(defaults: dict[str, Any], name: str) -> dict[str, Any]:
    return {"default": defaults[name]} if name in defaults else {}


def unique(name: str = "s") -> str:
    """A subject that no other test has."""
    return f"{name}-{next(COUNT)}"
