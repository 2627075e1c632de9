"""Sources that keep a connection: syslog, sockets, server-sent events, WebSockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from websockets.sync.server import serve

from moldau.connect.connector import SourceContext
from moldau.connect.connectors.live import Closed, Feed
from moldau.connect.connectors.streaming import StreamingHttpSource, WebSocketSource, server_sent
from moldau.connect.connectors.syslog import SocketSource, SyslogSource, framed, parsed_message
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError, RetriableError
from moldau.connect.shapes import plain
from moldau.testing import eventually

PATIENCE_S = 120
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def opened(connector: Any, stored: Any = None, **config: Any) -> Any:
    given = {key.replace("_", "."): str(value) for key, value in config.items()}
    [task] = connector().task_configs(given, 5)
    return connector().open(SourceContext(task, lambda _: stored, threading.Event().wait))


def poll(task: Any, count: int) -> list[Record]:
    found: list[Record] = []

    def enough() -> bool:
        with suppress(RetriableError):
            found.extend(task.poll())
        return len(found) >= count

    eventually(enough, PATIENCE_S, f"{count} records")
    return found


def values(records: list[Record]) -> list[Any]:
    return [plain(one.value_schema, one.value) for one in records]


# Syslog and sockets.


def test_messages_of_both_kinds_are_read() -> None:
    text = '<165>1 2003-10-11T22:14:15.003Z host app 12 ID47 [ex@1 a="1" b="x\\]\\"y"][other] An event'
    found = {name: one for name, one in plain(None, parsed_message(text, "1.2.3.4", NOW)).items() if one is not None}
    assert found == {
        "type": "RFC5424",
        "message": "An event",
        "host": "host",
        "version": 1,
        "level": 5,
        "facility": 20,
        "severity": 5,
        "appName": "app",
        "processId": "12",
        "messageId": "ID47",
        "structuredData": {"ex@1": {"a": "1", "b": 'x]"y'}, "other": {}},
        "timestamp": 1065910455003,
        "remoteAddress": "1.2.3.4",
    }
    old = parsed_message("<34>Oct 11 22:14:15 mymachine su[7]: 'su root' failed", "p", NOW)
    assert (old["type"], old["tag"], old["processId"], old["host"]) == ("RFC3164", "su", "7", "mymachine")
    assert old["timestamp"] == int(datetime(2025, 10, 11, 22, 14, 15, tzinfo=UTC).timestamp() * 1000)
    assert old["message"] == "'su root' failed" and old["facility"] == 4


@pytest.mark.parametrize(
    "text", ["", "hello", "<999>1 - - - - - -", "<1>1 yesterday h a p m - x", "<34>Feb 30 22:14:15 h t: m", "<1"]
)
def test_what_is_not_syslog_is_kept_as_it_is(text: str) -> None:
    found = parsed_message(text, "p", NOW)
    assert (found["type"], found["rawMessage"]) == ("UNKNOWN", text)


def test_messages_are_split() -> None:
    assert framed(b"a\r\nb\nc") == ([b"a", b"b"], b"c")
    assert framed(b"5 <1>ab7 <2>x") == ([b"<1>ab"], b"7 <2>x")
    assert framed(b"7 <2>x", is_end=True) == ([b"<2>x"], b"")
    assert framed(b"x" * 70_000) == ([b"x" * 70_000], b"")


@pytest.mark.parametrize("listener", ["TCP", "UDP"])
def test_a_server_takes_messages(listener: str) -> None:
    task = opened(SyslogSource, syslog_port=0, syslog_host="127.0.0.1", syslog_listener=listener, topic="t")
    kind = socket.SOCK_DGRAM if listener == "UDP" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as line:
        line.connect(("127.0.0.1", task.port))
        for n in range(3):
            line.sendall(f"<34>Oct 11 22:14:15 h t: m{n}\n".encode())
        found = poll(task, 3)
    assert sorted(one.value["message"] for one in found) == ["m0", "m1", "m2"]
    assert (found[0].topic, found[0].key) == ("t", "127.0.0.1")
    task.close()


def test_lines_of_a_socket_are_texts() -> None:
    task = opened(SocketSource, socket_port=0, socket_host="127.0.0.1", topic="t")
    with socket.create_connection(("127.0.0.1", task.port)) as line:
        line.sendall("eins\nzwei ä\ndrei".encode())
    assert values(poll(task, 3)) == ["eins", "zwei ä", "drei"]
    with pytest.raises(ConnectError, match="cannot be listened at"):
        opened(SocketSource, socket_port=task.port, socket_host="127.0.0.1", socket_listener="UDP", topic="t").close()
        opened(SocketSource, socket_port=task.port, socket_host="256.0.0.1", topic="t")
    task.close()
    with pytest.raises(ConfigError, match="TCPSSL needs"):
        opened(SocketSource, socket_port=0, socket_listener="TCPSSL", topic="t")


def test_a_full_buffer_makes_the_sender_wait_and_ends_with_the_task() -> None:
    ended = threading.Event()

    def read(feed: Feed) -> None:
        try:
            for n in range(100):
                feed.put(n)
        except Closed:
            ended.set()
            raise

    feed = Feed(3, read)
    assert feed.take(2) == [0, 1]
    feed.close()
    assert ended.is_set()


def test_what_breaks_a_feed_is_raised_after_what_came_before() -> None:
    def read(feed: Feed) -> None:
        feed.put(1)
        raise ValueError("broken")

    feed = Feed(3, read)
    assert feed.take(5) == [1]
    with pytest.raises(ConnectError, match="broken"):
        for _ in range(1000):
            feed.take(5)


# Streams over HTTP.


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """A server of event streams: its URL, the headers of its requests, and what it sends."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    asked: list[Any] = []
    told: dict[str, Any] = {"kind": "text/event-stream", "status": 200, "body": lambda last: b""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(dict(self.headers))
            self.send_response(told["status"])
            self.send_header("Content-Type", told["kind"])
            self.end_headers()
            self.wfile.write(told["body"](self.headers.get("Last-Event-ID")))

        def log_message(self, format: str, *args: Any) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", asked, told
    server.shutdown()
    server.server_close()
    thread.join()


def numbered(last: str | None) -> bytes:
    """Three events after the last one that was heard."""
    start = int(last or 0) + 1
    return b"".join(f': comment\nid: {n}\ndata: {{"n":\ndata: {n}}}\n\n'.encode() for n in range(start, start + 3))


def test_server_sent_events_go_on_after_the_last_id(events: Any) -> None:
    url, asked, told = events
    told["body"] = numbered
    task = opened(StreamingHttpSource, url=url, topic_name_pattern="t", retry_backoff_ms=1, auth_token="s3")
    found = poll(task, 7)
    assert [one["n"] for one in values(found)][:7] == [1, 2, 3, 4, 5, 6, 7]
    assert found[6].source_offset == {"offset": "7"}
    task.close()
    assert asked[0]["Authorization"] == "Bearer s3" and "Last-Event-ID" not in asked[0]
    assert asked[1]["Last-Event-ID"] == "3"
    later = opened(StreamingHttpSource, {"offset": "40"}, url=url, topic_name_pattern="t")
    assert values(poll(later, 1))[0] == {"n": 41}
    later.close()


def test_lines_of_json_have_offsets_of_their_own(events: Any) -> None:
    url, _, told = events
    told |= {"kind": "application/x-ndjson", "body": lambda last: b'{"id": 5, "k": "a"}\n\nplain\n'}
    given = {"http_offset_json_pointer": "/id", "key_json_pointer": "/k", "retry_backoff_ms": 60_000}
    task = opened(StreamingHttpSource, url=url, topic_name_pattern="t", **given)
    found = poll(task, 2)
    assert values(found) == [{"id": 5, "k": "a"}, "plain"] and found[0].key == "a"
    assert [one.source_offset for one in found] == [{"offset": "5"}] * 2
    task.close()


def test_answers_that_no_other_try_would_change_fail_the_task(events: Any) -> None:
    url, _, told = events
    told["status"] = 503
    task = opened(StreamingHttpSource, url=url, topic_name_pattern="t", retry_backoff_ms=1)
    with pytest.raises(RetriableError, match="503"):
        for _ in range(1000):
            task.poll()
    told["status"] = 404
    with pytest.raises(ConnectError, match="404"):
        for _ in range(1000):
            try:
                task.poll()
            except RetriableError:
                continue
    task.close()


def test_events_are_read_as_the_standard_says() -> None:
    lines = iter(["data:a", "data: b", "event: x", "id", "", "data", "", "id:7", "retry: 1", "", "data: c", ""])
    assert list(server_sent(lines)) == [("a\nb", ""), ("", ""), ("c", "7")]


@pytest.fixture
def web_socket() -> Iterator[Callable[[Any], str]]:
    servers: list[Any] = []

    def start(handler: Any) -> str:
        server = serve(handler, "127.0.0.1", 0)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        servers.append((server, thread))
        return f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"

    yield start
    for server, thread in servers:
        server.shutdown()
        thread.join()


def test_a_web_socket_that_breaks_goes_on_where_it_was(web_socket: Any) -> None:
    def handler(line: Any) -> None:
        after = int(json.loads(line.recv())["after"] or 0)
        for n in range(after + 1, after + 4):
            line.send(json.dumps({"id": n}))

    given = {"websocket_subscribe": '{"after": "${offset}"}', "http_offset_json_pointer": "/id", "retry_backoff_ms": 1}
    url = web_socket(handler)
    task = opened(WebSocketSource, url=url, topic_name_pattern="t", **given)
    assert [one["id"] for one in values(poll(task, 7))][:7] == [1, 2, 3, 4, 5, 6, 7]
    task.close()
    with pytest.raises(ConfigError):
        opened(WebSocketSource, url="http://x", topic_name_pattern="t")
