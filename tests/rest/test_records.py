"""Records of version 3: streams of documents, and batches."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.rest.running import Running, reports, running, unique


def text(data: str) -> dict[str, Any]:
    return {"type": "STRING", "data": data}


def test_a_stream_of_many_documents_is_reported_in_order_and_read_back(rest: Running) -> None:
    topic, count = rest.topic(), 10_000
    found = rest.stream(topic, *({"value": text(str(number))} for number in range(count)))
    assert [row["offset"] for row in found] == list(range(count))
    instance = rest.instance()
    rest.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    rows = rest.read(instance, count)
    assert [row["offset"] for row in rows] == list(range(count))


def test_reports_come_while_the_stream_goes_on(rest: Running) -> None:
    """A client that waits for each report before it sends on, on one connection."""
    topic = rest.topic()
    host, port = rest.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as wire:
        head = f"POST {rest.cluster}/topics/{topic}/records HTTP/1.1\r\nHost: {host}\r\n"
        wire.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        seen = b""
        for number in range(3):
            body = json.dumps({"value": text(str(number))}).encode()
            half = len(body) // 2
            for part in (body[:half], body[half:]):
                wire.sendall(b"%x\r\n%s\r\n" % (len(part), part))
            while seen.count(b'"offset"') <= number:
                part = wire.recv(65536)
                assert part
                seen += part
        wire.sendall(b"0\r\n\r\n")
        while not seen.endswith(b"0\r\n\r\n"):
            seen += wire.recv(65536)
    assert b"HTTP/1.1 200 OK" in seen


def test_each_part_of_a_record_arrives(rest: Running) -> None:
    topic = rest.topic(3)
    record = {
        "partition_id": 2,
        "headers": [{"name": "h", "value": "aGk="}, {"name": "n", "value": None}],
        "key": {"type": "BINARY", "data": "AAE="},
        "value": {"type": "JSON", "data": {"é": [1, None]}},
        "timestamp": "2021-02-05T19:14:42Z",
    }
    [found] = rest.stream(topic, record)
    assert found["error_code"] == 200
    assert (found["topic_name"], found["partition_id"], found["offset"]) == (topic, 2, 0)
    assert found["timestamp"] == "2021-02-05T19:14:42.000Z"
    assert found["key"] == {"type": "BINARY", "size": 2}
    assert found["value"] == {"type": "JSON", "size": len('{"é":[1,null]}'.encode())}
    instance = rest.instance()
    rest.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 2}]})
    [row] = rest.read(instance, 1)
    assert (row["key"], row["value"]) == ("AAE=", "eyLDqSI6WzEsbnVsbF19")


def test_a_record_may_be_empty(rest: Running) -> None:
    topic = rest.topic()
    nothing, null = rest.stream(topic, {}, {"key": text("k"), "value": {"type": "JSON", "data": None}})
    assert (nothing["error_code"], null["error_code"]) == (200, 200)
    assert "value" not in nothing
    assert null["value"]["size"] == 0


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"value": {"type": "BINARY", "data": "1"}}, 400),
        ({"value": {"type": "BINARY", "data": 1}}, 400),
        ({"value": {"type": "STRING", "data": 1}}, 400),
        ({"value": {"type": "XML", "data": "1"}}, 400),
        ({"value": "text"}, 400),
        ({"headers": [{"name": "h", "value": "!"}]}, 400),
        ({"headers": [{"value": "aGk="}]}, 400),
        ({"timestamp": "yesterday"}, 400),
        ({"partition_id": -1}, 40402),
        ({"partition_id": 77}, 40402),
        ({"partition": 0}, 400),
        ([1], 400),
    ],
    ids=str,
)
def test_a_wrong_record_fails_alone(rest: Running, record: Any, code: int) -> None:
    topic = rest.topic()
    first, wrong, last = rest.stream(topic, {"value": text("a")}, record, {"value": text("b")})
    assert (first["error_code"], wrong["error_code"], last["error_code"]) == (200, code, 200)
    assert wrong["message"]
    assert last["offset"] == 1


@pytest.mark.parametrize("junk", [b"oops", b'{"value": ', b'{"value": "', b"}", b"[" * 600, b'"x"', b"1"], ids=str)
def test_what_is_no_json_ends_the_stream(rest: Running, junk: bytes) -> None:
    topic = rest.topic()
    first, wrong = rest.stream(topic, {"value": text("a")}, junk)
    assert (first["error_code"], wrong["error_code"]) == (200, 400)


def test_a_document_that_is_no_json_inside_fails_alone(rest: Running) -> None:
    topic = rest.topic()
    codes = [row["error_code"] for row in rest.stream(topic, b"{x}", b'{"value": nan}', b'{"a": "\\ud800"}', {})]
    assert codes == [400, 400, 400, 200]


def test_an_unknown_topic_is_told_in_the_report(rest: Running) -> None:
    [found] = rest.stream(unique(), {"value": text("a")})
    assert found["error_code"] == 40401
    [found] = rest.stream("not%20a%20name", {"value": text("a")})
    assert found["error_code"] in (40002, 40401)


def test_an_empty_stream_is_refused(rest: Running) -> None:
    assert rest.ask("POST", f"@/topics/{rest.topic()}/records", b"") == (422, 42206)
    assert rest.ask("POST", f"@/topics/{rest.topic()}/records", b" \n ") == (422, 42206)


def test_a_stream_of_another_type_is_refused(rest: Running) -> None:
    assert rest.ask("POST", f"@/topics/{rest.topic()}/records", b"{}", type="text/plain") == (415, 415)


def test_a_record_too_large_for_the_topic_fails(rest: Running) -> None:
    topic = rest.topic(max_message_bytes=1000)
    [large] = rest.stream(topic, {"value": text("x" * 5000)})
    [small] = rest.stream(topic, {"value": text("a")})
    assert (large["error_code"], small["error_code"]) == (413, 200)


def test_a_client_that_goes_away_leaves_its_records(rest: Running) -> None:
    topic = rest.topic()

    def half() -> Iterator[bytes]:
        yield json.dumps({"value": text("a")}).encode() * 100
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError), httpx.Client() as client:
        client.post(
            f"{rest.url}{rest.cluster}/topics/{topic}/records",
            content=half(),
            headers={"content-type": "application/json"},
        )
    instance = rest.instance()
    rest.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert len(rest.read(instance, 100)) == 100


def test_a_batch_reports_successes_and_failures(rest: Running) -> None:
    topic = rest.topic()
    entries = [{"id": "1", "value": text("a")}, {"id": "2", "value": {"type": "BINARY", "data": "1"}}]
    answer = rest.raw("POST", f"@/topics/{topic}/records:batch", {"entries": entries})
    assert answer.status_code == 207
    body = answer.json()
    assert [(row["id"], row["offset"]) for row in body["successes"]] == [("1", 0)]
    assert [(row["id"], row["error_code"]) for row in body["failures"]] == [("2", 400)]


def test_wrong_batches_are_refused(rest: Running) -> None:
    where = f"@/topics/{rest.topic()}/records:batch"
    assert rest.ask("POST", where, {"entries": []}) == (422, 42208)
    assert rest.ask("POST", where, {"entries": [{"id": str(n)} for n in range(11)]}) == (422, 42208)
    assert rest.ask("POST", where, {"entries": [{"id": "1"}, {"id": "1"}]}) == (422, 42208)
    assert rest.ask("POST", where, {"entries": [{}]}) == (422, 422)
    assert rest.ask("POST", where, {"entries": [{"id": 1}]}) == (400, 400)
    assert rest.ask("POST", where, b"") == (422, 42206)


def test_a_stream_ends_at_its_limits(rest: Running, rest_broker: Any) -> None:
    limits = ("api.v3.produce.request.size.limit.max.bytes=200", "streaming.connection.max.duration.ms=300")
    with running(rest_broker.bootstrap_servers, *limits) as short:
        topic = short.topic()
        first, large = short.stream(topic, {"value": text("a")}, {"value": text("x" * 500)}, {"value": text("b")})
        assert (first["error_code"], large["error_code"]) == (200, 400)

        def slow() -> Iterator[bytes]:
            for _ in range(20):
                yield json.dumps({"value": text("a")}).encode()
                time.sleep(0.1)

        where = f"{short.url}{short.cluster}/topics/{topic}/records"
        try:
            answer = httpx.post(where, content=slow(), headers={"content-type": "application/json"})
        except httpx.WriteError:
            return  # it was closed while the client still wrote
        assert reports(answer.text)[-1]["error_code"] == 408
