"""The HTTP connectors, against a server of the test that speaks HTTP for real."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.connectors.http_sink import HttpSink
from moldau.connect.connectors.http_source import HttpSource, pointed
from moldau.connect.connectors.web import codes, headers_of
from moldau.connect.data import STRING, Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import Shape, plain
from moldau.testing import Broker, eventually
from moldau.testing.connectors import connect
from tests.services import unique

Answer = tuple[int, Any]


class Place:
    """A server: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, dict[str, str]]] = []
        self.answer: Callable[[str, str, str], Answer] = lambda method, path, body: (200, {})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        place = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                place.requests.append((self.command, self.path, body, dict(self.headers)))
                status, document = place.answer(self.command, self.path, body)
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: Any) -> None:
                """Be quiet."""

        return Handler


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Place()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


class Sending:
    """A task of the sink, and what it refused."""

    def __init__(self, place: Place, path: str = "/x", **config: Any) -> None:
        self.refused: list[tuple[Any, str]] = []
        given = {"http.api.url": place.url + path, "retry.backoff.ms": "0", "max.retries": "2"}
        given |= {key.replace("_", "."): str(value) for key, value in config.items()}
        [task] = HttpSink().task_configs(given, 1)

        def report(record: Record, error: Exception) -> None:
            self.refused.append((record.offset, str(error)))

        self.task = HttpSink().open(SinkContext(task, report, lambda _: False))

    def put(self, *values: Any) -> None:
        self.task.put([record(value, n) for n, value in enumerate(values)])


def record(value: Any, offset: int) -> Record:
    schema, made = Shape().take(value)
    return Record("t", 3, STRING, f"k/{offset}", schema, made, 0, offset=offset)


def test_each_record_is_a_request_with_a_key_of_its_own(place: Place) -> None:
    one = Sending(place, "/${topic}/${key}", headers="X-A: 1|X-B:2", auth_type="BASIC", connection_user="u")
    one.put({"n": 1}, None, {"n": 2})
    assert [request[:3] for request in place.requests] == [
        ("POST", "/t/k%2F0", '{"n":1}'),
        ("POST", "/t/k%2F2", '{"n":2}'),
    ]
    headers = place.requests[1][3]
    assert headers["Idempotency-Key"] == "t-3-2" and headers["X-B"] == "2"
    assert headers["Authorization"].startswith("Basic ")
    deleting = Sending(place, "/${key}", behavior_on_null_values="delete", auth_type="BEARER", auth_token="s3")
    deleting.put(None)
    assert place.requests[-1][:3] == ("DELETE", "/k%2F0", "")
    assert place.requests[-1][3]["Authorization"] == "Bearer s3"
    for task in (one, deleting):
        task.task.close()


@pytest.mark.parametrize(
    ("config", "bodies"),
    [
        ({"batch_json_as_array": "true"}, ['[{"n":0},{"n":1}]', '[{"n":2}]']),
        ({"batch_prefix": "<", "batch_suffix": ">", "batch_separator": ";"}, ['<{"n":0};{"n":1}>', '<{"n":2}>']),
        ({"request_body_format": "string"}, ["Struct{n=0},Struct{n=1}", "Struct{n=2}"]),
    ],
)
def test_records_are_sent_in_batches(place: Place, config: dict[str, Any], bodies: list[str]) -> None:
    one = Sending(place, batch_max_size=2, **config)
    one.put({"n": 0}, {"n": 1}, {"n": 2})
    assert [request[2] for request in place.requests] == bodies
    one.task.close()


def test_a_record_that_the_server_refuses_is_found_in_its_batch(place: Place) -> None:
    place.answer = lambda method, path, body: (422 if '"n":1' in body else 200, {"why": "no"})
    one = Sending(place, batch_max_size=3, batch_json_as_array="true")
    one.put(*({"n": n} for n in range(5)))
    assert [offset for offset, _ in one.refused] == [1] and "422" in one.refused[0][1]
    assert len(place.requests) == 5  # a batch that failed, its three records, and the next batch
    one.task.close()


def test_all_that_a_transform_made_of_one_record_is_sent(place: Place) -> None:
    trouble = [503]
    place.answer = lambda method, path, body: (trouble.pop() if trouble and '"n":3' in body else 200, {})
    one = Sending(place)
    rows = [record({"n": 0}, 0), *(record({"n": n}, 1) for n in (1, 2, 3)), record({"n": 4}, 2)]
    with pytest.raises(RetriableError):
        one.task.put(rows)
    place.requests.clear()
    one.task.put(rows)
    keys = [(request[2], request[3]["Idempotency-Key"]) for request in place.requests]
    assert keys == [
        ('{"n":1}', "t-3-1"),
        ('{"n":2}', "t-3-1-1"),
        ('{"n":3}', "t-3-1-2"),
        ('{"n":4}', "t-3-2"),
    ]
    one.task.close()


def test_a_server_that_is_in_trouble_is_asked_again_without_repeating_what_it_took(place: Place) -> None:
    trouble = [503, 503]
    place.answer = lambda method, path, body: (trouble.pop() if trouble and '"n":1' in body else 200, {})
    one = Sending(place)
    rows = [{"n": n} for n in range(3)]
    for _ in range(2):
        with pytest.raises(RetriableError):
            one.put(*rows)
    one.put(*rows)
    assert [request[2] for request in place.requests] == [f'{{"n":{n}}}' for n in (0, 1, 1, 1, 2)]
    place.answer = lambda method, path, body: (500, {})
    for expected in (RetriableError, RetriableError, ConnectError):
        with pytest.raises(expected) as caught:
            one.task.put([record({"n": 9}, 9)])
    assert "also after 2 retries" in str(caught.value)
    one.task.close()


def asking(place: Place, offset: Any = None, path: str = "/?o=${offset}", **config: Any) -> Any:
    given = {"url": place.url + path, "topic.name.pattern": "t", "request.interval.ms": "1", "retry.backoff.ms": "0"}
    given |= {key.replace("_", "."): str(value) for key, value in config.items()}
    [task] = HttpSource().task_configs(given, 5)
    return HttpSource().open(SourceContext(task, lambda _: offset, lambda _: False))


def poll(task: Any, polls: int = 6) -> list[Record]:
    return [one for _ in range(polls) for one in task.poll()]


def asked(path: str) -> str:
    return parse_qs(urlsplit(path).query)["o"][0]


def values(records: list[Record]) -> list[Any]:
    return [plain(one.value_schema, one.value) for one in records]


def test_records_are_counted(place: Place) -> None:
    rows = [{"n": n} for n in range(5)]
    place.answer = lambda method, path, body: (200, rows[int(asked(path)) :][:2])
    records = poll(asking(place))
    assert values(records) == rows
    assert [one.source_offset for one in records] == [{"offset": str(n)} for n in range(1, 6)]
    rows.append({"n": 5})
    assert values(poll(asking(place, {"offset": "5"}))) == [{"n": 5}]


def test_the_last_record_says_what_comes_next(place: Place) -> None:
    rows = [{"id": f"a b{n}"} for n in range(4)]

    def answer(method: str, path: str, body: str) -> Answer:
        return 200, {"data": {"items": [one for one in rows if one["id"] > json.loads(body)["after"]][:3]}}

    place.answer = answer
    config = {"http_request_method": "POST", "http_request_body": '{"after": "${offset}"}', "key_json_pointer": "/id"}
    config |= {"http_offset_mode": "CHAINING", "http_offset_json_pointer": "/id", "http_initial_offset": ""}
    records = poll(asking(place, path="/", http_response_data_json_pointer="/data/items", **config))
    assert values(records) == rows
    assert records[-1].source_offset == {"offset": "a b3"} and records[-1].key == "a b3"


def test_a_cursor_leads_through_the_pages(place: Place) -> None:
    pages: dict[str, Any] = {"0": {"d": [1, 2], "next": "x/y"}, "x/y": {"d": [3], "next": None}}
    place.answer = lambda method, path, body: (200, pages[asked(path)])
    pointers = {"http_response_data_json_pointer": "/d", "http_next_page_json_pointer": "/next"}
    task = asking(place, http_offset_mode="CURSOR_PAGINATION", request_interval_ms=600_000, **pointers)
    records = poll(task)
    assert [one.value for one in records] == [1, 2, 3]
    assert [one.source_offset for one in records] == [{"offset": "0"}, {"offset": "x/y"}, {"offset": "x/y"}]


def test_what_is_wrong_with_an_answer_is_said(place: Place) -> None:
    place.answer = lambda method, path, body: (404, {})
    with pytest.raises(ConnectError, match="answered 404"):
        poll(asking(place))
    place.answer = lambda method, path, body: (500, {})
    with pytest.raises(RetriableError):
        poll(asking(place))
    place.answer = lambda method, path, body: (200, [{}])
    with pytest.raises(ConnectError, match="no offset"):
        poll(asking(place, http_offset_mode="CHAINING", http_offset_json_pointer="/id"))
    with pytest.raises(ConfigError, match=r"needs http\.offset\.json\.pointer"):
        asking(place, http_offset_mode="CHAINING")


def test_settings_are_read() -> None:
    assert codes("400, 500-599,900-") == [(400, 400), (500, 599), (900, 999)]
    assert headers_of("A: b:c|D:e") == {"A": "b:c", "D": "e"}
    document = {"a/b": [{"c~": 1}]}
    assert pointed(document, "/a~1b/0/c~0") == 1
    assert pointed(document, "") == document and pointed(document, "/a/0") is None
    for wrong in ({"headers": "none"}, {"retry.on.status.codes": "many"}, {"http.api.url": "ftp://x"}):
        with pytest.raises(ConfigError):
            HttpSink().task_configs({"http.api.url": "http://x", **wrong}, 1)


def test_answers_go_through_a_topic_into_requests(place: Place, kafka_shared: Broker) -> None:
    topic, taken = unique("http"), list[Any]()

    def answer(method: str, path: str, body: str) -> Answer:
        if method == "GET":
            return 200, [{"n": n} for n in range(int(asked(path)), 6)][:2]
        taken.append(json.loads(body)["n"])
        return 200, {}

    place.answer = answer
    with connect(kafka_shared.bootstrap_servers) as worker:
        given = {"url": f"{place.url}/?o=${{offset}}", "topic.name.pattern": topic, "request.interval.ms": "50"}
        worker.run("HttpSource", given)
        worker.run("HttpSink", {"topics": topic, "http.api.url": f"{place.url}/in"})
        eventually(lambda: taken == list(range(6)))
