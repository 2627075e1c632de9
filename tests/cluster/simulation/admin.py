"""The administrator: makes topics, changes settings, moves partitions, asks for elections. A promise is a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.simulation.callers import Client
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.world import World

TOPIC, SET = 2, 0
AGAIN_MS = 100.0
SETTING = "retention.ms"
TIMEOUT_MS = 6000.0


class Admin(Client):
    """One who asks for changes, one at a time for each matter, until they are made."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.configs: dict[str, set[str]] = {}  # what a topic's setting may be: the last that was told, and later ones
        self.serial = 0

    def later(self, call: Any) -> None:
        self.world.events.after(AGAIN_MS, call)

    def create(self, name: str, partitions: int, factor: int) -> None:
        """Ask for a topic until it is there."""
        topic = m.CreateTopicsRequest_CreatableTopic(name, partitions, factor)
        again = lambda: self.create(name, partitions, factor)  # noqa: E731
        done = lambda answer: self.created(name, partitions, answer, again)  # noqa: E731
        request = m.CreateTopicsRequest([topic])
        self.any_caller().call(request, 7, done, lambda: self.later(again), TIMEOUT_MS)

    def created(self, name: str, partitions: int, answer: Any, again: Any) -> None:
        row = answer.topics[0]
        error = Error(row.error_code)
        self.world.note(f"topic {name}: {error.name}")
        if error is Error.NONE:
            self.world.promise_topic(name, bytes(row.topic_id), partitions)
        elif error is Error.TOPIC_ALREADY_EXISTS:  # an earlier request was carried out, and its answer was lost
            self.world.find_topic(name, partitions)
        else:
            self.later(again)

    def act(self) -> None:
        if self.world.is_draining:
            return
        random, ledgers = self.world.random, self.world.ledgers()
        if not ledgers:
            return
        ledger = random.choice(ledgers)
        match random.randrange(4):
            case 0:
                self.serial += 1
                self.create(f"made{self.serial}", 1, 3)
            case 1:
                self.configure(ledger.topic)
            case 2:
                self.elect(ledger.topic, ledger.index)
            case _:
                self.move(ledger.topic, ledger.index)

    def configure(self, topic: str) -> None:
        value = str(self.world.random.randrange(10**8, 10**9))
        self.configs.setdefault(topic, {""}).add(value)
        entry = m.IncrementalAlterConfigsRequest_AlterableConfig(SETTING, SET, value)
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC, topic, [entry])
        self.say(m.IncrementalAlterConfigsRequest([resource]), 1)

    def elect(self, topic: str, index: int) -> None:
        part = m.ElectLeadersRequest_TopicPartitions(topic, [index])
        self.say(m.ElectLeadersRequest(0, [part], 3000), 2)

    def move(self, topic: str, index: int) -> None:
        """Ask for other replicas; with three nodes for another order of them."""
        replicas = self.world.random.sample(list(self.world.hosts), 3)
        part = m.AlterPartitionReassignmentsRequest_ReassignablePartition(index, replicas)
        row = m.AlterPartitionReassignmentsRequest_ReassignableTopic(topic, [part])
        self.say(m.AlterPartitionReassignmentsRequest(topics=[row]), 0)

    def say(self, request: Any, version: int) -> None:
        name = request.SCHEMA.name
        self.world.counts[name] += 1
        done = lambda answer: self.world.note(f"{name}: {answered(answer)}")  # noqa: E731
        self.any_caller().call(request, version, done, lambda: self.world.note(f"{name} was lost"), TIMEOUT_MS)

    def check(self, image: Any) -> None:
        for topic, values in self.configs.items():
            found = image.config(TOPIC, topic).get(SETTING, "")
            if found not in values:
                raise Broken(Property.METADATA_STAYS, f"{topic} has {SETTING} {found}")


def answered(answer: Any) -> str:
    """Return the errors of an answer in a word."""
    text = repr(answer)
    return "an error" if "error_code=0" not in text and "error_code" in text else "done"
