"""Raw requests: the frame that the flood repeats, and the first produce that a starting broker acknowledges.

They are versions that clients send, and simple enough to stand here as structs: a client of the benchmarks owes
nothing to the code that is measured.
"""

import socket
import struct
import time
from collections.abc import Callable

import google_crc32c

from benchmarks.places import BenchError

METADATA, PRODUCE, OFFSET_COMMIT, FIND_COORDINATOR, LIST_GROUPS = (3, 8), (0, 7), (8, 9), (10, 2), (16, 2)
ALTER_CONFIGS, ALL_BROKERS = (44, 0), b"\4" + bytes(2)
RECORD = bytes(range(100))


def text(value: str) -> bytes:
    """A string as old versions write it."""
    return struct.pack(">h", len(value)) + value.encode()


def frame(api: tuple[int, int], body: bytes) -> bytes:
    """A request with header v1, its length first."""
    request = struct.pack(">hhi", *api, 7) + text("bench") + body
    return struct.pack(">i", len(request)) + request


def varint(value: int) -> bytes:
    """Zigzag, as in a record."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def batch(value: bytes) -> bytes:
    """A record batch v2 with one record, no key, no producer id."""
    now_ms = int(time.time() * 1000)
    record = b"\0" + varint(0) + varint(0) + varint(-1) + varint(len(value)) + value + varint(0)
    records = varint(len(record)) + record
    tail = struct.pack(">hiqqqhii", 0, 0, now_ms, now_ms, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, google_crc32c.value(tail)) + tail


def produce_frame(topic: str) -> bytes:
    """One record of 100 bytes to partition 0, acks=all."""
    records = batch(RECORD)
    body = struct.pack(">hhii", -1, -1, 30000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records
    return frame(PRODUCE, body)


def compact(value: str) -> bytes:
    """A short string as new versions write it."""
    return bytes([len(value) + 1]) + value.encode()


def coordinator_frame(group: str) -> bytes:
    """Asks who looks after a group; the first such question lets the broker create the offsets topic."""
    return frame(FIND_COORDINATOR, text(group) + b"\0")


def setting_frame(name: str, value: str | None) -> bytes:
    """Sets a setting of all brokers; None goes back to what it was."""
    change = b"\1" + struct.pack(">h", -1) if value is None else b"\0" + text(value)
    return frame(ALTER_CONFIGS, struct.pack(">i", 1) + ALL_BROKERS + struct.pack(">i", 1) + text(name) + change + b"\0")


def commit_frame(group: str, topic: str, partitions: int) -> bytes:
    """Offset 7 for each partition, from a consumer that is no member: generation -1, no member id, no instance."""
    rows = b"".join(struct.pack(">iqiBB", index, 7, 0, 1, 0) for index in range(partitions))
    member = struct.pack(">iBB", -1, 1, 0)
    read = b"\2" + compact(topic) + bytes([partitions + 1]) + rows
    return frame(OFFSET_COMMIT, b"\0" + compact(group) + member + read + b"\0\0")


def committed_answer(topic: str, partitions: int) -> bytes:
    """What the answer to it must be, without its length."""
    rows = b"".join(struct.pack(">ihB", index, 0, 0) for index in range(partitions))
    return struct.pack(">ixiB", 7, 0, 2) + compact(topic) + bytes([partitions + 1]) + rows + b"\0\0"


def metadata_frame(topic: str) -> bytes:
    """Asks for one topic and lets the broker create it."""
    return frame(METADATA, struct.pack(">i", 1) + text(topic) + b"\1\0\0")


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes."""
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)


def call(connection: socket.socket, request: bytes) -> bytes:
    """The answer without its length."""
    connection.sendall(request)
    (size,) = struct.unpack(">i", receive(connection, 4))
    return receive(connection, size)


def produced(connection: socket.socket, topic: str) -> bool:
    """Whether one record was acknowledged; Metadata goes first, for it creates the topic."""
    call(connection, metadata_frame(topic))
    answer = call(connection, produce_frame(topic))
    (error,) = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(topic) + 4 + 4)
    return error == 0


def wait_for_produce(port: int, topic: str, seconds: float, alive: Callable[[], bool] = lambda: True) -> None:
    """Returns as soon as the broker has acknowledged a record; asks every few milliseconds while it lives."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.settimeout(10)
                while time.monotonic() < deadline:
                    if produced(connection, topic):
                        return
                    time.sleep(0.005)
        except OSError:
            time.sleep(0.003)
    why = f"within {seconds:.0f} s" if alive() else "before the broker ended"
    raise BenchError(f"No record was acknowledged on port {port} {why}.")
