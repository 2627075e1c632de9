"""Routes, limits, basic auth, HTTPS and error bodies, over real connections."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response

from moldau.http import HttpError, Listen, Route, Routes, Server, Service, json_response, parse_listen
from moldau.http.serve import bind
from moldau.http.service import read_body, read_json
from moldau.settings import HTTP, ServiceSettings, SettingError
from tests.certificates import Certificates

JSON = "application/json"
GATE = threading.Event()


async def named(request: Request) -> Response:
    return json_response(dict(request.path_params), JSON)


async def echo(request: Request) -> Response:
    try:
        return json_response(read_json(await read_body(request)), JSON)
    except ValueError as error:
        raise HttpError(40001, str(error)) from None


async def fail(request: Request) -> Response:
    raise RuntimeError("a secret of the inside")


async def slow(request: Request) -> Response:
    while not GATE.is_set():
        await asyncio.sleep(0.005)
    return json_response("late", JSON)


ROWS = (
    Route("GET", "/things/{thing}", named),
    Route("GET", "/things/{thing}/parts/{part}", named),
    Route("GET", "/things/all", echo),
    Route("POST", "/echo", echo),
    Route("GET", "/fail", fail),
    Route("GET", "/slow", slow),
)


def serving(*given: str) -> contextlib.AbstractContextManager[str]:
    return serving_routes(Routes(ROWS), *given)


@contextlib.contextmanager
def serving_routes(routes: Routes, *given: str) -> Iterator[str]:
    settings = ServiceSettings([HTTP], given)
    bound, listen = bind(parse_listen("127.0.0.1:0", settings))
    bound.listen()  # whoever asks before the thread runs waits for it
    server = Server(Service(routes, settings, JSON), listen, settings)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    try:
        yield listen.url
    finally:
        GATE.set()
        server.should_exit = True
        thread.join()
        GATE.clear()
        bound.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving("size.limit.filter.max.request.body.size=1000") as started:
        yield started


def refusal(answer: httpx.Response) -> tuple[int, int]:
    body = answer.json()
    assert set(body) == {"error_code", "message"}
    return answer.status_code, body["error_code"]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/things/a%2Fb", {"thing": "a/b"}),
        ("/things/%2e%2e", {"thing": ".."}),
        ("/things/%C3%A4%20%F0%9F%90%9D/", {"thing": "ä 🐝"}),
        ("/things/%7B%7D", {"thing": "{}"}),
        ("/things/all/parts/%00", {"thing": "all", "part": "\0"}),
    ],
)
def test_a_segment_is_a_name_whatever_is_in_it(url: str, path: str, names: dict[str, str]) -> None:
    with httpx.Client() as client:
        assert client.get(httpx.URL(url + path)).json() == names


def test_a_literal_wins_over_a_name(url: str) -> None:
    assert refusal(httpx.get(f"{url}/things/all")) == (400, 40001)  # the body is empty, and that is no JSON


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "/nothing", 404), ("GET", "/things", 404), ("PUT", "/echo", 405), ("GET", "/things/%FF", 400)],
)
def test_what_is_not_there_is_refused(url: str, method: str, path: str, code: int) -> None:
    assert refusal(httpx.request(method, url + path)) == (code, code)


@pytest.mark.parametrize("path", ["/things/a", "/nowhere", "/fail"])
def test_no_answer_is_taken_for_a_page(url: str, path: str) -> None:
    assert httpx.get(url + path).headers.get_list("x-content-type-options") == ["nosniff"]


def test_a_fault_shows_nothing_of_the_inside(url: str) -> None:
    answer = httpx.get(f"{url}/fail")
    assert refusal(answer) == (500, 500)
    assert "secret" not in answer.text and "Traceback" not in answer.text


@pytest.mark.parametrize("content", [b"x" * 1001, iter([b"x" * 600] * 2)])
def test_a_body_has_a_limit_whether_its_length_is_told_or_not(url: str, content: Any) -> None:
    assert refusal(httpx.post(f"{url}/echo", content=content)) == (413, 413)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"a":' * 100, b"[" * 501 + b"]" * 499, b"", b"NaN,"])
def test_bad_json_is_told_in_a_sentence(url: str, content: bytes) -> None:
    assert refusal(httpx.post(f"{url}/echo", content=content)) == (400, 40001)


def test_a_request_has_a_time_limit_and_there_is_a_most_of_them() -> None:
    with serving("request.timeout.ms=3000", "max.requests.in.flight=1") as url:
        answers: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: answers.append(httpx.get(f"{url}/slow")))
        thread.start()
        while httpx.get(f"{url}/things/x").status_code != 429:
            assert thread.is_alive()
        thread.join()
        assert refusal(answers[0]) == (503, 503)
        assert httpx.get(f"{url}/things/x").status_code == 200


def test_basic_auth_lets_in_whom_the_file_names(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("# who\nanna: plain,admin\nbert: MD5:900150983cd24fb0d6963f7d28e17f72,guest\n")
    given = ("authentication.method=BASIC", f"authentication.users.file={users}")
    with serving(*given) as url:
        get = lambda *auth: httpx.get(f"{url}/things/x", auth=auth or None)  # noqa: E731
        assert refusal(get()) == (401, 401)
        assert get().headers["www-authenticate"] == 'Basic realm="moldau"'
        assert get("anna", "plain").status_code == get("bert", "abc").status_code == 200
        assert get("anna", "wrong").status_code == get("nobody", "plain").status_code == 401
        assert httpx.get(f"{url}/things/x", headers={"Authorization": "Basic !"}).status_code == 401
    with serving(*given, "authentication.roles=admin") as url:
        assert httpx.get(f"{url}/things/x", auth=("anna", "plain")).status_code == 200
        assert httpx.get(f"{url}/things/x", auth=("bert", "abc")).status_code == 401


def test_https_with_a_certificate_of_the_client(tmp_path: Path) -> None:
    known = Certificates.within(tmp_path)
    with serving(*known.settings) as url:
        assert url.startswith("https://")
        assert httpx.get(f"{url}/things/x", verify=known.trusting(known.client)).status_code == 200
        for own in (None, known.stranger):
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{url}/things/x", verify=known.trusting(own))


@pytest.mark.parametrize("text", ["8081", "host", "ftp://host:1", "host:99999", "https://host:1"])
def test_a_listener_that_cannot_be_is_told(text: str) -> None:
    with pytest.raises(SettingError):
        parse_listen(text, ServiceSettings([HTTP]))


def test_a_listener_may_be_a_url() -> None:
    settings = ServiceSettings([HTTP])
    assert parse_listen("http://[::1]:80", settings) == Listen("::1", 80)
    assert parse_listen(":8081", settings).url == "http://0.0.0.0:8081"


def test_an_unknown_setting_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingError, match=r"request\.timeout\.ms"):
        ServiceSettings([HTTP], ["request.timeout=5"])
    assert ServiceSettings([HTTP], ["x.sasl.username=u"], prefixes=("x.",)).under("x.") == {"sasl.username": "u"}
