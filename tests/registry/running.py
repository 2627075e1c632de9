"""A registry in a process of its own, as a test has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.services import Service, unique

__all__ = ["BROKER", "Running", "body", "record", "running", "unique"]

BROKER = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}


class Running:
    """A registry process and a client of it."""

    def __init__(self, bootstrap_servers: str, *settings: str, listen: str = "127.0.0.1:0", **client: Any) -> None:
        where = ("--bootstrap-servers", bootstrap_servers, "--listen", listen)
        self.service = Service("registry", *where, settings=settings, **client)
        self.url, self.http = self.service.url, self.service.http

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
        self.service.stop()

    def kill(self) -> None:
        self.service.kill()


@contextmanager
def running(bootstrap_servers: str, *settings: str, **client: Any) -> Iterator[Running]:
    started = Running(bootstrap_servers, *settings, **client)
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
