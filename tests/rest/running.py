"""A proxy in a process of its own, as a test has it. Each answer is held against the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from tests.services import Service, unique

__all__ = ["BROKER", "V2", "Refused", "Running", "reports", "running", "unique", "v2"]

BROKER = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 1,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
V2 = "application/vnd.kafka.v2+json"


def v2(format: str) -> str:
    return f"application/vnd.kafka.{format}.v2+json"


class Refused(tuple):
    """Status and code of a refusal."""

    __slots__ = ()

    def __new__(cls, status: int, code: int) -> Refused:
        return super().__new__(cls, (status, code))


class Running:
    """A proxy process and a client of it."""

    def __init__(self, bootstrap_servers: str, *settings: str, registry: str | None = None, **client: Any) -> None:
        where = ["--bootstrap-servers", bootstrap_servers, "--listen", "127.0.0.1:0"]
        where += ["--schema-registry-url", registry] if registry else []
        self.service = Service("rest", *where, settings=settings, **client)
        self.url, self.http = self.service.url, self.service.http
        self.document = self.http.get("/openapi.json").json()
        self.instances: list[str] = []  # consumers that were made, also those that are gone by now
        self._cluster = ""

    @property
    def cluster(self) -> str:
        """The path of the cluster."""
        if not self._cluster:
            self._cluster = f"/v3/clusters/{self.ask('GET', '/v3/clusters')['data'][0]['cluster_id']}"
        return self._cluster

    def ask(self, method: str, path: str, body: Any = None, *, type: str | None = None, **more: Any) -> Any:
        """The answer's JSON; a refusal as (status, code). A path that begins with @ is within the cluster."""
        answer = self.raw(method, path, body, type=type, **more)
        if answer.status_code == 204 or not answer.content:
            return None
        content = answer.json()
        if answer.is_success:
            return content
        assert set(content) == {"error_code", "message"}, content
        return Refused(answer.status_code, content["error_code"])

    def raw(self, method: str, path: str, body: Any = None, *, type: str | None = None, **more: Any) -> httpx.Response:
        path = path.replace("@", self.cluster, 1) if path.startswith("@") else path.removeprefix(self.url)
        headers = dict(more.pop("headers", {}))
        if body is not None:
            headers["content-type"] = type or ("application/json" if path.startswith("/v3") else V2)
            more["content"] = body if isinstance(body, bytes) else json.dumps(body)
        answer = self.http.request(method, path, headers=headers, **more)
        assert "Traceback" not in answer.text
        assert '.py"' not in answer.text
        self._hold(method, path.partition("?")[0], answer)
        if method == "POST" and re.fullmatch(r"/consumers/[^/]+", path) and answer.is_success:
            self.instances.append(answer.json()["base_uri"].removeprefix(self.url))
        return answer

    def delete_instances(self, first: int) -> None:
        """Delete the consumers from this number on that a test has left: each of them fetches until its time is up."""
        for instance in self.instances[first:]:
            self.http.delete(instance)
        del self.instances[first:]

    def _hold(self, method: str, path: str, answer: httpx.Response) -> None:
        """The document must know the path, the status, the media type and the shape of the answer."""
        found = self._template(path)
        if found is None or method.lower() not in self.document["paths"][found]:
            assert answer.status_code in (404, 405), (method, path, answer.status_code)
            return
        responses = self.document["paths"][found][method.lower()]["responses"]
        status = str(answer.status_code)
        row = responses.get(status) or responses.get(f"{status[0]}XX")
        assert row is not None, f"{method} {found} does not speak of {status}"
        if "content" in row and "records" not in path.rpartition("/")[2]:
            content = row["content"][answer.headers["content-type"].partition(";")[0]]
            Draft202012Validator({**self.document, **content["schema"]}).validate(answer.json())
        elif "content" not in row:
            assert not answer.content

    def _template(self, path: str) -> str | None:
        matching = [
            found
            for found in self.document["paths"]
            if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(found)), path.rstrip("/") or "/")
        ]
        return min(matching, key=lambda found: found.count("{"), default=None)

    def topic(self, partitions: int = 1, **configs: Any) -> str:
        """A topic that no other test has."""
        name = unique("t")
        rows = [{"name": key.replace("_", "."), "value": str(value)} for key, value in configs.items()]
        made = self.ask("POST", "@/topics", {"topic_name": name, "partitions_count": partitions, "configs": rows})
        assert made["topic_name"] == name
        return name

    def stream(self, topic: str, *records: Any) -> list[dict[str, Any]]:
        """Records of version 3, and the report on each."""
        body = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in records)
        answer = self.raw("POST", f"@/topics/{topic}/records", body)
        assert answer.status_code == 200, answer.text
        return reports(answer.text)

    def instance(self, group: str | None = None, **options: Any) -> str:
        """The address of a new consumer instance."""
        body = {"auto.offset.reset": "earliest", **options}
        made = self.ask("POST", f"/consumers/{group or unique('g')}", body)
        return made["base_uri"].removeprefix(self.url)

    def read(self, instance: str, least: int, **more: Any) -> list[dict[str, Any]]:
        """At least so many records, in as many reads as it takes, within reason."""
        found: list[dict[str, Any]] = []
        for _ in range(60):
            part = self.ask("GET", f"{instance}/records?timeout=300", **more)
            assert isinstance(part, list), part
            found += part
            if len(found) >= least:
                break
        return found

    def stop(self) -> None:
        self.service.stop()


def reports(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.split("\r\n") if line]


@contextmanager
def running(bootstrap_servers: str, *settings: str, registry: str | None = None, **client: Any) -> Iterator[Running]:
    started = Running(bootstrap_servers, *settings, registry=registry, **client)
    try:
        yield started
    finally:
        started.stop()
