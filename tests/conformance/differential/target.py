"""A broker under test: one connection, the topics made on it, and what its answers gave for later requests."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from moldau.wire import codec, frames
from moldau.wire import messages as m
from tests.conformance.differential.case import CLIENT_ID, Case

CLOSED = "closed the connection"
NO_ANSWER = "does not answer"
PROBE = 0x7FFF  # correlation id of the request behind a silent one
READY_S = 20.0


class Target:
    def __init__(self, name: str, port: int, data_dir: str, other_ports: tuple[int, ...] = ()) -> None:
        self.name = name
        self.port = port
        self.data_dir = data_dir
        self.places = {data_dir: "DIR", f":{port}": ":PORT"} | {f":{other}": ":OTHER" for other in other_ports}
        self.written: Callable[[], str] = str  # the broker's log so far
        self.ids: dict[str, bytes] = {}
        self.kept: dict[str, Any] = {}
        self._sent = 0
        self._socket: socket.socket | None = None

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, case: Case, version: int) -> None:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        self._sent += 1
        frame = case.frame(self, version, self._sent)
        if case.silent:
            frame += frames.request_frame(m.ApiVersionsRequest(), 0, PROBE, CLIENT_ID)
        with suppress(ConnectionError):  # closed before all of it was sent, as `receive` will see
            self._socket.sendall(frame)

    def receive(self, case: Case, version: int) -> Any:
        """The decoded answer, or a text that says what happened instead."""
        assert self._socket is not None
        self._socket.settimeout(case.patience_s)
        try:
            data = self._frame(self._socket)
        except (TimeoutError, ConnectionError, EOFError) as end:
            self.close()
            return NO_ANSWER if isinstance(end, TimeoutError) else CLOSED
        if case.silent and data[:4] == struct.pack(">i", PROBE):
            return NO_ANSWER
        answer = version if case.answer is None else case.answer
        response = m.message(f"{case.api}Response")
        correlation_id, position = frames.response_header(response.SCHEMA.key, answer, data)
        assert correlation_id == self._sent, f"{self.name} answered {correlation_id}, not {self._sent}"
        message = codec.decode(response, answer, memoryview(data), position)
        if case.keep:
            case.keep(self, message)
        return message

    def ask(self, case: Case, version: int) -> Any:
        self.send(case, version)
        return self.receive(case, version)

    def _frame(self, connection: socket.socket) -> bytes:
        (size,) = struct.unpack(">i", _exactly(connection, 4))
        return _exactly(connection, size)

    def create(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Make topics and wait until each of their partitions has a leader, which Kafka's brokers learn later."""
        if not topics:
            return
        rows = [(name, parts, 1, [], list(settings.items())) for name, (parts, settings) in topics.items()]
        answer = self.ask(Case("topics", "CreateTopics", 7, (rows, 20_000)), 7)
        assert all(not topic.error_code for topic in answer.topics), f"{self.name}: {answer}"
        self.ids |= {topic.name: topic.topic_id for topic in answer.topics}
        for name, (partitions, _) in topics.items():
            self._await(name, partitions)

    def _await(self, name: str, partitions: int) -> None:
        """Ask until the broker leads all partitions; Metadata may name it before it knows itself."""
        rows = [(partition, -1, -1) for partition in range(partitions)]
        case = Case("ready", "ListOffsets", 4, {"replica_id": -1, "topics": [(name, rows)]})
        self.until(case, 4, lambda answer: not any(row.error_code for row in answer.topics[0].partitions))

    def until(self, case: Case, version: int, ready: Callable[[Any], bool]) -> None:
        deadline = time.monotonic() + READY_S
        while not ready(self.ask(case, version)):
            assert time.monotonic() < deadline, f"{self.name} is not ready: {case}"
            time.sleep(0.02)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return bytes(data)
