"""Bad input on the port of a real broker.

Each gets Kafka's own error or a closed connection with one log line; memory stays bounded, and others are served.
"""

from __future__ import annotations

import gzip
import os
import random
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from moldau.testing import Broker, broker, eventually
from moldau.wire import frames
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import CRC_START, HEADER, HEADER_SIZE, Record, build, seal

MEGABYTE = 1 << 20
API_VERSIONS = frames.request_frame(m.ApiVersionsRequest(), 0, 7, "test")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker({"socket.listen.backlog.size": 4096}) as started:
        yield started


@pytest.fixture(autouse=True)
def others_go_on(kafka: Broker) -> Iterator[None]:
    """A client that was there before the bad one is served after it, and so is a new one."""
    with connect(kafka) as other:
        ping(other)
        yield
        ping(other)
        with connect(kafka) as late:
            ping(late)


def connect(kafka: Broker) -> socket.socket:
    return socket.create_connection((kafka.host, kafka.port), 20)


def exactly(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "the broker hung up"
        data += piece
    return bytes(data)


def read_frame(sock: socket.socket) -> bytes:
    return exactly(sock, struct.unpack(">i", exactly(sock, 4))[0])


def ping(sock: socket.socket) -> None:
    sock.sendall(API_VERSIONS)
    assert read_frame(sock)[:6] == struct.pack(">ih", 7, 0)


def is_closed(sock: socket.socket) -> bool:
    """Whether the broker hangs up, whatever it says before."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


def resident_mb(kafka: Broker) -> float:
    with open(f"/proc/{kafka.pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def raw_request(key: int, version: int, body: bytes = b"") -> bytes:
    payload = struct.pack(">hhih", key, version, 1, 1) + b"x" + body
    return struct.pack(">i", len(payload)) + payload


NO_REQUESTS = {
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "HTTP": b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "random bytes": random.Random(1).randbytes(4096),
    "a length of two gigabytes": b"\x7f\xff\xff\xff" + bytes(100),
    "a negative length": b"\xff\xff\xff\xff",
    "a length of nothing": bytes(4),
    "a header cut short": struct.pack(">ihh", 4, 18, 0),
    "an unknown key": raw_request(999, 0),
    "a negative key": raw_request(-1, 0),
    "a version that is too new": raw_request(3, 99),
    "a version that is too old": raw_request(0, 0),
    "a client id longer than the request": struct.pack(">ihhih", 10, 18, 0, 1, 30000),
    "a body cut short": raw_request(3, 1, b"\x00"),
    "an array of two billion": raw_request(3, 1, b"\x7f\xff\xff\xff"),
    "more elements than a request may have": raw_request(3, 1, struct.pack(">i", 200_000) + bytes(400_000)),
    "a name that is no text": raw_request(3, 1, struct.pack(">ih", 1, 4) + b"\xff\xfe\xfd\xfc"),
}


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_what_is_no_request_is_closed_with_one_line(kafka: Broker, name: str) -> None:
    peer = f"127.0.1.{1 + list(NO_REQUESTS).index(name)}"  # one each: a peer is allowed a few lines only
    with socket.create_connection((kafka.host, kafka.port), 20, (peer, 0)) as sock:
        sock.sendall(NO_REQUESTS[name])
        assert is_closed(sock)
    lines = [line for line in kafka.log.splitlines() if f"peer={peer}:" in line]
    assert len(lines) == 1, kafka.log
    assert "bad input" in lines[0]
    assert "Traceback" not in kafka.log


def test_an_api_versions_that_is_too_new_is_answered_in_version_0(kafka: Broker) -> None:
    with connect(kafka) as sock:
        sock.sendall(raw_request(18, 99))
        answer = read_frame(sock)
        assert struct.unpack(">ih", answer[:6]) == (1, Error.UNSUPPORTED_VERSION)
        ping(sock)


def test_half_a_frame_and_silence_is_closed_when_it_is_idle_too_long() -> None:
    with broker({"connections.max.idle.ms": 500}) as kafka, connect(kafka) as sock:
        sock.sendall(API_VERSIONS[:7])
        assert is_closed(sock)


def test_claimed_lengths_cost_no_memory(kafka: Broker) -> None:
    before = resident_mb(kafka)
    with ExitStack() as stack:
        for _ in range(200):
            sock = stack.enter_context(connect(kafka))
            sock.sendall(struct.pack(">i", 100 * MEGABYTE) + bytes(1000))
        with connect(kafka) as other:
            ping(other)
        assert resident_mb(kafka) < before + 30


def test_random_bodies_are_answered_or_closed(kafka: Broker) -> None:
    dice = random.Random(3)
    with connect(kafka) as sock:
        sock.sendall(API_VERSIONS)
        answer = read_frame(sock)
    keys = [struct.unpack_from(">hhh", answer, at) for at in range(10, len(answer) - 5, 6)]
    assert len(keys) > 20
    for key, low, high in keys:
        for _ in range(8):
            body = dice.randbytes(dice.choice((0, 1, 7, 40, 300)))
            with connect(kafka) as sock:
                sock.sendall(raw_request(key, dice.randint(low, high), body))
                sock.shutdown(socket.SHUT_WR)
                assert is_closed(sock)
    assert "Traceback" not in kafka.log, kafka.log


def produce(kafka: Broker, topic: str, batch: bytes) -> Error:
    data = m.ProduceRequest_PartitionProduceData(0, batch)
    topic_data = m.ProduceRequest_TopicProduceData(name=topic, partition_data=[data])
    response = kafka.call(m.ProduceRequest(None, -1, 10_000, [topic_data]), 9)
    return Error(response.responses[0].partition_responses[0].error_code)


def sound(count: int = 3) -> bytearray:
    return build([Record(n, int(time.time() * 1000), b"k", b"v" * 10) for n in range(count)])


def changed(field: int, value: int) -> bytes:
    """A sound batch with another value in one field of its header, and the right checksum."""
    batch = sound()
    header = list(HEADER.unpack_from(batch))
    header[field] = value
    HEADER.pack_into(batch, 0, *header)
    seal(memoryview(batch))
    return bytes(batch)


def wrong_checksum() -> bytes:
    batch = sound()
    batch[CRC_START + 30] ^= 1
    return bytes(batch)


LENGTH, MAGIC, ATTRIBUTES, LAST_OFFSET_DELTA, COUNT = 1, 3, 5, 6, 12
BATCHES = {
    "wrong checksum": (wrong_checksum, {Error.CORRUPT_MESSAGE}),
    "wrong count": (lambda: changed(COUNT, 7), {Error.INVALID_RECORD}),
    "no records": (lambda: changed(COUNT, 0), {Error.INVALID_RECORD}),
    "wrong last offset": (lambda: changed(LAST_OFFSET_DELTA, 9), {Error.INVALID_RECORD}),
    "a control batch": (lambda: changed(ATTRIBUTES, 0x20), {Error.INVALID_RECORD}),
    "a length beyond the batch": (lambda: changed(LENGTH, 10_000), {Error.INVALID_RECORD}),
    "a length below the header": (lambda: changed(LENGTH, 5), {Error.CORRUPT_MESSAGE}),
    "an old format": (
        lambda: changed(MAGIC, 1),
        {Error.INVALID_RECORD, Error.CORRUPT_MESSAGE, Error.UNSUPPORTED_FOR_MESSAGE_FORMAT},
    ),
    "half a batch": (lambda: bytes(sound()[:-4]), {Error.INVALID_RECORD}),
    "half a header": (lambda: bytes(sound()[: HEADER_SIZE - 9]), {Error.INVALID_RECORD}),
    "larger than allowed": (lambda: bytes(sound(100_000)), {Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE}),
}


@pytest.mark.parametrize("name", BATCHES)
def test_a_bad_batch_is_refused_and_the_next_one_taken(kafka: Broker, name: str) -> None:
    topic = kafka.create_topic()
    make, expected = BATCHES[name]
    assert produce(kafka, topic, make()) in expected
    assert produce(kafka, topic, bytes(sound())) == Error.NONE


def test_a_decompression_bomb_is_refused_within_bounds(kafka: Broker) -> None:
    topic = kafka.create_topic(compression_type="uncompressed")
    body = gzip.compress(bytes(400 * MEGABYTE), 6)
    batch = bytearray(HEADER_SIZE) + body
    now = int(time.time() * 1000)
    HEADER.pack_into(batch, 0, 0, len(batch) - 12, -1, 2, 0, 1, 0, now, now, -1, -1, -1, 1)
    seal(memoryview(batch))
    before = resident_mb(kafka)
    assert produce(kafka, topic, bytes(batch)) != Error.NONE
    assert resident_mb(kafka) < before + 200


@pytest.mark.parametrize("name", ["..", ".", "../evil", "a/b", "a\\b", "", "nul\0", "x" * 250, "ö"])
def test_names_that_are_no_names_are_refused(kafka: Broker, name: str) -> None:
    topic = m.CreateTopicsRequest_CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    result = kafka.call(m.CreateTopicsRequest(topics=[topic]), 7).topics[0]
    assert result.error_code == Error.INVALID_TOPIC_EXCEPTION
    asked = m.MetadataRequest_MetadataRequestTopic(name=name)
    answer = kafka.call(m.MetadataRequest(topics=[asked], allow_auto_topic_creation=True), 9)
    assert answer.topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION


def test_thousands_of_connections_are_served(kafka: Broker) -> None:
    """As many as the limit of open files lets this process have, up to 10,000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, hard - 1000)
    before = resident_mb(kafka)
    try:
        with ExitStack() as stack:
            socks = [stack.enter_context(connect(kafka)) for _ in range(count)]
            for sock in socks:
                sock.sendall(API_VERSIONS)
            for sock in socks:
                assert read_frame(sock)[:4] == struct.pack(">i", 7)
            assert resident_mb(kafka) < before + 10 + count / 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def fetch_all(topic: str, size: int) -> bytes:
    partition = m.FetchRequest_FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    asked: Any = m.FetchRequest_FetchTopic(topic=topic, partitions=[partition])
    return frames.request_frame(m.FetchRequest(max_bytes=size, max_wait_ms=0, min_bytes=0, topics=[asked]), 11, 1, "t")


def test_a_client_that_never_reads_costs_little_and_is_closed_in_the_end() -> None:
    with broker({"connections.max.idle.ms": 2000}) as kafka:
        topic = kafka.create_topic()
        for _ in range(8):
            assert produce(kafka, topic, bytes(build([Record(0, 1, b"k", bytes(MEGABYTE // 2))]))) == Error.NONE
        before = resident_mb(kafka)
        with connect(kafka) as deaf, connect(kafka) as chatty:
            for sock in (deaf, chatty):
                sock.settimeout(1)
            for sock, request in ((deaf, fetch_all(topic, 4 * MEGABYTE)), (chatty, API_VERSIONS * 100)):
                with pytest.raises((TimeoutError, ConnectionError)):
                    while True:
                        sock.sendall(request)
            assert resident_mb(kafka) < before + 30
            with connect(kafka) as other:
                ping(other)
            eventually(lambda: open_sockets(kafka) == 0, what="the end of the deaf connections")


def open_sockets(kafka: Broker) -> int:
    """Established connections of the broker's port, as the kernel knows them."""
    port = f":{kafka.port:04X}"
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file][1:]
    return sum(row[1].endswith(port) and row[3] == "01" for row in rows)
