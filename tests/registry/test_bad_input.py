"""Whatever is sent, the answer is a code and a sentence, and the service goes on."""

from __future__ import annotations

import json
import socket
from urllib.parse import quote

import httpx
import pytest

from moldau.testing import Broker
from tests.registry.running import Running, body, record, running, unique

A = record("x:int")
V1 = "application/vnd.schemaregistry.v1+json"


@pytest.fixture(autouse=True)
def goes_on(registry: Running) -> object:
    yield
    assert registry.get("/") == {}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe", 400),
        (b"null", 422),
        (b"[]", 422),
        (b'"text"', 422),
        (b"[" * 100_000, 400),
        (b'{"schema":' * 1000 + b"1" + b"}" * 1000, 400),
        (b'{"schema":5}', 422),
        (b'{"schema":"\\"int\\"","schemaType":["AVRO"]}', 422),
        (b'{"schema":"\\"int\\"","references":{}}', 422),
        (b'{"schema":"\\"int\\"","references":[{"name":"a"}]}', 422),
        (b'{"schema":"\\"int\\"","id":true}', 422),
        (b'{"schema":"\\"int\\"","version":99999999999}', 422),
        (b'{"schema":"\\"int\\"","metadata":[]}', 422),
        (b'{"schema":"\\"int\\"","metadata":{"properties":[]}}', 422),
    ],
)
def test_a_body_that_makes_no_sense_is_told(registry: Running, subject: str, content: bytes, code: int) -> None:
    for path in (
        f"/subjects/{subject}/versions",
        f"/subjects/{subject}",
        f"/compatibility/subjects/{subject}/versions",
    ):
        assert registry.ask("POST", path, content=content, headers={"Content-Type": V1}) == (code, code)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"schema": ""},
        {"schema": "no json"},
        {"schema": '{"type":"unknown"}'},
        {"schema": '"int"', "schemaType": "XML"},
        {"schema": '"\\ud800"'},
        {"schema": '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000},
        {"schema": "[" * 50_000},
        {"schema": '{"type":' * 600 + '"object"' + "}" * 600, "schemaType": "JSON"},
        {"schema": json.dumps(A), "references": [{"name": "a", "subject": "nowhere", "version": 1}]},
    ],
)
def test_a_schema_that_cannot_be_is_42201(registry: Running, subject: str, given: dict[str, object]) -> None:
    assert registry.post(f"/subjects/{subject}/versions", given) == (422, 42201)
    assert registry.get(f"/subjects/{subject}/versions") == (404, 40401)


def test_bodies_and_schemas_have_limits(registry: Running, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    assert registry.ask("POST", path, content=b" " * (10 * 1024 * 1024 + 1)) == (413, 413)
    huge = {"type": "enum", "name": "E", "symbols": [f"S{number}" for number in range(150_000)]}
    assert registry.post(path, body(huge)) == (422, 42201)


def test_a_schema_that_no_record_can_hold_is_42209(registry: Running, subject: str) -> None:
    schema = record("x:int") | {"doc": "ä" * 600_000}  # as many characters as may be parsed, twice as many bytes
    assert registry.post(f"/subjects/{subject}/versions", body(schema)) == (422, 42209)


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/vnd.kafka.v2+json", "nonsense"])
def test_a_body_of_another_kind_is_415(registry: Running, subject: str, kind: str) -> None:
    content = json.dumps(body(A)).encode()
    path = f"/subjects/{subject}/versions"
    assert registry.ask("POST", path, content=content, headers={"Content-Type": kind}) == (415, 415)


@pytest.mark.parametrize(
    "kind", [V1, "application/vnd.schemaregistry+json", "application/json; charset=utf-8", "application/octet-stream"]
)
def test_bodies_of_these_kinds_are_read(registry: Running, subject: str, kind: str) -> None:
    content = json.dumps(body(A)).encode()
    answer = registry.ask("POST", f"/subjects/{subject}/versions", content=content, headers={"Content-Type": kind})
    assert answer["version"] == 1


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", V1),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json, application/json; q=0.5", "application/vnd.schemaregistry+json"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("application/*", V1),
        ("*", V1),
        ("*/html", V1),
    ],
)
def test_an_answer_is_of_the_kind_that_is_wanted(registry: Running, accept: str, kind: str) -> None:
    answer = httpx.get(f"{registry.url}/subjects", headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


def test_an_answer_of_another_kind_is_406(registry: Running) -> None:
    assert registry.get("/subjects", headers={"Accept": "text/html"}) == (406, 406)
    assert registry.get("/subjects", headers={"Accept": "application/json;q=0"}) == (406, 406)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/subjects/a/b/c", 404),
        ("PUT", "/subjects", 405),
        ("PATCH", "/config", 405),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/schemas/ids/99999999999", 404),
        ("GET", "/subjects/%FF/versions", 400),
        ("GET", "/contexts/.c/nothing", 404),
    ],
)
def test_paths_that_lead_nowhere(registry: Running, method: str, path: str, code: int) -> None:
    assert registry.ask(method, path) == (code, code)


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "..",
        "../../etc/passwd",
        "a%2Fb",
        "a b?c#d",
        "ünï-日本-🐝",
        "a:b",
        "'; --",
        "versions",
        ".",
        "*x",
        "e\u0301",
    ],
)
def test_a_subject_may_have_any_name(registry: Running, name: str) -> None:
    path = f"/subjects/{quote(name, safe='')}"
    if name in (".", ".."):
        path = "/subjects/" + name.replace(".", "%2E")
    answer = registry.post(f"{path}/versions", body(A))
    assert answer["id"]
    assert registry.get(f"{path}/versions/1")["subject"] == name
    assert name in registry.get("/subjects")
    registry.put(f"/config/{path.removeprefix('/subjects/')}", {"compatibility": "NONE"})
    assert registry.get(f"/config/{path.removeprefix('/subjects/')}") == {"compatibilityLevel": "NONE"}
    assert registry.delete(path) == [1]
    assert registry.delete(f"{path}?permanent=true") == [1]


@pytest.mark.parametrize("name", ["%00", "a%0Ab", "__GLOBAL", "__EMPTY", ":.__GLOBAL:x"])
def test_a_name_that_cannot_be_is_42208(registry: Running, name: str) -> None:
    assert registry.post(f"/subjects/{name}/versions", body(A)) == (422, 42208)


def test_settings_make_the_registry_stricter(registry_broker: Broker) -> None:
    strict = ("schema.reject.empty.subject=true", "schema.providers.reference.versions.strict=true")
    own = f"kafkastore.topic={unique()}", f"schema.registry.group.id={unique()}"
    with running(registry_broker.bootstrap_servers, *strict, *own) as registry:
        for name in (":.c:", ":.:", "*"):
            assert registry.post(f"/subjects/{name}/versions", body(A)) == (422, 42208)
        registry.register("inner", A)
        registry.register("inner", record("x:int", "y:string", y=""))
        inner = {"name": "Order", "subject": "inner"}
        registry.register("middle", record("y:int", name="M"), references=[{**inner, "version": 2}])
        both = [{**inner, "version": 1}, {"name": "M", "subject": "middle", "version": 1}]
        given = body(record("z:int", name="R"), references=both)
        assert registry.post("/subjects/outer/versions", given) == (422, 42201)
        assert "two versions" in registry.http.post("/subjects/outer/versions", json=given).json()["message"]


def test_half_a_request_harms_nobody(registry: Running) -> None:
    host, port = registry.url.removeprefix("http://").split(":")
    for data in (b"POST /subjects/a/versions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", b"\0" * 100, b"GET"):
        with socket.create_connection((host, int(port))) as sock:
            sock.sendall(data)
