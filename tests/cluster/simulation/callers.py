"""How clients reach the cluster: a connection to each node, and what the nodes say about who leads what."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from moldau.wire import codec, frames
from moldau.wire import messages as m
from tests.cluster.simulation.fabric import CLIENT_PORT, Link, Outside
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

TIMEOUT_MS = 2500.0
METADATA_VERSION = 12
REFRESH_MS = 150.0

Answered = Callable[[Any], None]
Lost = Callable[[], None]


class Caller:
    """A client's connection to one node, made again when it is lost. Each call is answered or lost, in order."""

    def __init__(self, world: World, name: str, place: int) -> None:
        self.world = world
        self.name = name
        self.place = place
        self.link: Link | None = None
        self.is_connecting = False
        self.serial = 0
        self.numbers = count()
        self.waiting: list[tuple[int, bytes]] = []
        self.pending: dict[int, tuple[int, int, Answered, Lost]] = {}

    def call(self, request: Any, version: int, answered: Answered, lost: Lost, timeout_ms: float = TIMEOUT_MS) -> None:
        number = next(self.numbers)
        self.pending[number] = (request.SCHEMA.key, version, answered, lost)
        frame = frames.request_frame(request, version, number, self.name)
        if self.link is not None:
            self.link.send(frame)
        else:
            self.waiting.append((number, frame))
            self.connect()
        self.world.events.after(timeout_ms, lambda: self.time_out(number))

    def connect(self) -> None:
        if not self.is_connecting:
            self.is_connecting = True
            self.serial += 1
            serial = self.serial
            self.world.fabric.connect(
                OUTSIDE, self.place, CLIENT_PORT, lambda link: self.opened(serial, link), lambda: self.refused(serial)
            )

    def opened(self, serial: int, link: Link) -> None:
        if serial != self.serial or not self.is_connecting:
            link.close()
            return
        self.is_connecting, self.link = False, link
        link.on_frame, link.on_cut = self.answered, lambda: self.cut(link)
        waiting, self.waiting = self.waiting, []
        for _, frame in waiting:
            link.send(frame)

    def refused(self, serial: int) -> None:
        if serial == self.serial and self.is_connecting:
            self.lose_all()

    def cut(self, link: Link) -> None:
        if self.link is link:
            self.lose_all()

    def time_out(self, number: int) -> None:
        if number in self.pending:
            if self.link is not None:
                self.link.close()
            self.lose_all()

    def lose_all(self) -> None:
        self.link, self.is_connecting = None, False
        self.waiting.clear()
        calls = list(self.pending.values())
        self.pending.clear()
        for _, _, _, lost in calls:
            lost()

    def answered(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], signed=True)
        first = next(iter(self.pending), None)
        if number != first:
            raise Broken(Property.ANSWERS, f"{self.name} got answer {number}, and waits for {first}")
        key, version, answered, _ = self.pending.pop(number)
        _, position = frames.response_header(key, version, frame)
        answered(codec.decode(m.response_class(key), version, memoryview(frame), position))


OUTSIDE = Outside()


class Client:
    """What all clients have: a connection to each node, and a picture of who leads what."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.callers = {place: Caller(world, name, place) for place in world.brokers}
        self.leaders: dict[tuple[str, int], tuple[int, int]] = {}  # leader and epoch
        self.topic_ids: dict[str, bytes] = {}
        self.is_asking = False

    def any_caller(self) -> Caller:
        return self.callers[self.world.random.choice(list(self.callers))]

    def leader(self, topic: str, index: int) -> Caller | None:
        known = self.leaders.get((topic, index))
        return None if known is None else self.callers.get(known[0])

    def refresh(self) -> None:
        """Ask somebody who leads what."""
        if not self.is_asking:
            self.is_asking = True
            request = m.MetadataRequest(topics=None, allow_auto_topic_creation=False)
            self.any_caller().call(request, METADATA_VERSION, self.learn, self.not_learnt)

    def refresh_later(self) -> None:
        self.world.events.after(REFRESH_MS * self.world.random.uniform(0.2, 1), self.refresh)

    def not_learnt(self) -> None:
        self.is_asking = False
        self.refresh_later()

    def learn(self, answer: Any) -> None:
        self.is_asking = False
        for topic in answer.topics:
            if self.topic_ids.get(topic.name) != topic.topic_id:  # another topic of that name begins with other epochs
                self.topic_ids[topic.name] = bytes(topic.topic_id)
                self.leaders = {key: leader for key, leader in self.leaders.items() if key[0] != topic.name}
            for part in topic.partitions:
                key, before = (topic.name, part.partition_index), self.leaders.get((topic.name, part.partition_index))
                if before is None or part.leader_epoch >= before[1]:
                    self.leaders[key] = part.leader_id, part.leader_epoch
