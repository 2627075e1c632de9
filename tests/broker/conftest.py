"""A production node in the test's own process, over a temporary directory, with a clock that the test moves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from moldau.broker.connection import Connection
from moldau.broker.node import Background, Node
from moldau.broker.rim.background import Done, Inline, Work, outcome
from moldau.log.disk import OsDisk
from moldau.machines.metadata.cluster import Endpoint
from moldau.settings import Settings
from moldau.wire import codec, frames
from moldau.wire import messages as m

IDS = count(1)
FEW = {"offsets_topic_num_partitions": "2", "transaction_state_log_num_partitions": "2"}  # partitions: quick to make


@dataclass
class ManualClock:
    """Time that passes only when the test says so."""

    now_ms: float = 1_700_000_000_000.0

    def wall_ms(self) -> int:
        return int(self.now_ms)

    def monotonic_ms(self) -> float:
        return self.now_ms


@dataclass
class Client:
    """A connection to a node: `send` hands a request over, `take` decodes the answers that are due."""

    node: Node
    connection: Connection = field(default_factory=lambda: Connection(next(IDS)))
    sent: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.node.connect(self.connection)

    def send(self, request: Any, version: int) -> None:
        frame = frames.request_frame(request, version, len(self.sent), "test")
        self.sent.append((request.SCHEMA.key, version))
        self.node.receive(self.connection, memoryview(bytearray(frame[4:])))

    def take(self) -> Any:
        """The one answer that is due, or None."""
        data = b"".join(part if isinstance(part, bytes) else bytes(part.read()) for part in self.connection.out)
        self.connection.out.clear()
        if not data:
            return None
        assert int.from_bytes(data[:4]) == len(data) - 4, "more than one answer"
        correlation_id = int.from_bytes(data[4:8])
        key, version = self.sent[correlation_id]
        _, position = frames.response_header(key, version, data[4:])
        return codec.decode(m.response_class(key), version, memoryview(data)[4:], position)

    def call(self, request: Any, version: int | None = None) -> Any:
        """Send a request in its newest answered version, and take the answer."""
        self.send(request, self.node.apis[request.SCHEMA.key].high if version is None else version)
        return self.take()


@dataclass
class Held:
    """A background whose jobs run when the test says so."""

    jobs: list[tuple[Work, Done]] = field(default_factory=list)
    holds: bool = False

    @property
    def pending(self) -> int:
        return len(self.jobs)

    def submit(self, work: Work, done: Done) -> None:
        self.jobs.append((work, done))
        if not self.holds:
            self.release()

    def release(self, result: Any = None) -> None:
        """Run the jobs, or let them fail with an exception."""
        while self.jobs:
            work, done = self.jobs.pop(0)
            done(outcome(work) if result is None else result)

    def close(self) -> None:
        self.release()


@dataclass
class World:
    """A node that can be stopped, crashed and started again over the same files."""

    path: Path
    overrides: dict[str, str] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)
    background: Background = field(default_factory=Inline)

    def __post_init__(self) -> None:
        self.node = self.start()
        self.client = Client(self.node)

    def start(self) -> Node:
        settings = Settings.load({"log.dirs": str(self.path), "node.id": "1"} | self.overrides)
        node = Node(settings, OsDisk(), self.clock, random.Random(7), self.background)
        node.start((Endpoint("PLAINTEXT", "127.0.0.1", 9092, 0),))
        return node

    def restart(self, clean: bool = True) -> None:
        self.node.stop() if clean else self.node.abandon()
        self.node = self.start()
        self.client = Client(self.node)

    def call(self, request: Any, version: int | None = None) -> Any:
        return self.client.call(request, version)

    def coordinate(self) -> World:
        """Ask for coordinators, as clients of groups and transactions do first: it makes the internal topics."""
        for kind in (0, 1):
            assert self.call(m.FindCoordinatorRequest("x", kind), 3).error_code == 0
        return self

    def create(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        rows = [m.CreateTopicsRequest_CreatableTopicConfig(k.replace("_", "."), v) for k, v in configs.items()]
        asked = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, [], rows)
        (answer,) = self.call(m.CreateTopicsRequest([asked])).topics
        assert answer.error_code == 0, answer.error_message
        return answer.topic_id

    def change(self, *records: Any) -> None:
        """Change the metadata by its records."""
        proposal = self.node.metadata.propose()
        proposal.add(records)
        assert proposal.commit().answer == 0

    def advance(self, ms: float) -> None:
        self.clock.now_ms += ms
        self.node.tick()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(**overrides: str) -> World:
        named = {name.replace("_", "."): value for name, value in overrides.items()}
        made.append(World(tmp_path / f"world{len(made)}", named))
        return made[-1]

    yield make
    for world in made:
        world.node.stop()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
