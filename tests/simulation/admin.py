"""An administrator: topics come, grow, change and go; records are deleted.

An operation is a row: how it is asked for, and how to see in the metadata whether it came to be. One that was answered
with an error, or not at all, is in doubt; the next look at the metadata decides it, and holds from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.simulation.ledger import Ledger
from tests.simulation.network import Peer
from tests.simulation.properties import Broken, Property
from tests.simulation.topics import Topic, changed_config, random_configs

if TYPE_CHECKING:
    from tests.simulation.world import World

TOPIC_RESOURCE, SET = 2, 0
MAX_TOPICS = 4
IN_DOUBT = (Error.KAFKA_STORAGE_ERROR, Error.REQUEST_TIMED_OUT)


@dataclass(slots=True)
class Described:
    """A topic as the node describes it."""

    id: bytes
    partitions: int
    configs: dict[str, str]


Image = dict[str, Described]


@dataclass(slots=True, eq=False)
class Operation:
    """What was asked for; `is_done` reads it off the metadata, `accept` changes the model."""

    text: str
    request: Any
    version: int
    error_of: Callable[[Any], int]
    is_done: Callable[[Image], bool]
    accept: Callable[[Any, Image | None], None]
    ledger: Ledger | None = None  # the partition that may have its own reason to refuse


class Admin:
    """One operation at a time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.peer = Peer(world, "admin")
        self.current: Operation | None = None
        self.named = 0
        self.maybes: list[Operation] = []  # answered with an error: a restart may still bring them
        self.pace_ms = world.plan.length_ms / world.plan.admin_acts
        self.later()

    def later(self) -> None:
        self.world.events.after(self.world.random.uniform(0.1, 1.9) * self.pace_ms, self.act)

    def act(self) -> None:
        if self.world.ending:
            return
        self.later()
        if self.current is None and (operation := self.choose()) is not None:
            self.current = operation
            self.world.events.note(f"admin: {operation.text}")
            self.world.counts["admin operations"] += 1
            self.peer.call(
                operation.request,
                operation.version,
                lambda answer: self.answered(operation, answer),
                lambda: self.lost(operation),
            )

    def choose(self) -> Operation | None:
        world = self.world
        names = self.free_names()
        topics = list(world.topics.values())
        kind = world.random.randrange(8)
        if kind == 0 and names:
            return create_topic(world, world.random.choice(names))
        if not topics:
            return None
        topic = world.random.choice(topics)
        if kind == 1 and not topic.lasting:
            return delete_topic(world, topic)
        if kind == 2 and len(topic.ledgers) < 3 and not (topic.lasting and world.plan.stateful):
            return add_partitions(world, topic)
        if kind in (3, 4) and "delete" in topic.configs.get("cleanup.policy", "delete") and not topic.lasting:
            return delete_records(world, world.random.choice(topic.ledgers))
        return alter_config(world, topic)

    def free_names(self) -> list[str]:
        """A request by name may be under way for long: it must not find another topic of that name."""
        known = self.world.topics
        if len(known) >= MAX_TOPICS:
            return []
        if self.world.plan.reuse_names:
            return [f"t{number}" for number in range(MAX_TOPICS) if f"t{number}" not in known]
        self.named += 1
        return [f"u{self.named}"]

    def answered(self, operation: Operation, answer: Any) -> None:
        self.current = None
        error = Error(operation.error_of(answer))
        self.world.events.note(f"admin: {operation.text}: {error.name}")
        if error is Error.NONE:
            operation.accept(answer, None)
        elif error in IN_DOUBT:
            if operation.ledger is not None:
                self.world.check_refusal(operation.ledger, error)
            elif not self.world.storage_may_fail():
                raise Broken(Property.SOUND_STAYS_ONLINE, f"{operation.text}: {error.name}")
            self.maybes.append(operation)
        elif error is Error.NOT_LEADER_OR_FOLLOWER and operation.ledger is not None:
            self.world.check_refusal(operation.ledger, error)
        else:
            raise Broken(Property.ANSWERS, f"{operation.text}: {error.name}")

    def lost(self, operation: Operation) -> None:
        """It may still arrive, until the node has noticed that the connection is gone."""
        self.world.events.after(4 * self.world.plan.latency_ms, lambda: self.look_again(operation))

    def look_again(self, operation: Operation) -> None:
        """A node that is down looks when it starts."""
        if self.current is operation and self.world.up:
            while self.world.background.hurry():  # what is under way is decided then
                pass
            self.resolve(self.world.auditor.image())

    def resolve(self, image: Image, restarted: bool = False) -> None:
        """Decide what was in doubt."""
        doubts = self.maybes if restarted else []
        self.maybes = [] if restarted else self.maybes
        if self.current is not None:
            doubts = [*doubts, self.current]
            self.current = None
        for operation in doubts:
            done = operation.is_done(image)
            self.world.events.note(f"admin: {operation.text}: found {'done' if done else 'undone'}")
            if done:
                operation.accept(None, image)
            elif self.world.metadata_failed:
                self.maybes.append(operation)


def create_topic(world: World, name: str) -> Operation:
    configs, partitions = random_configs(world.random), world.random.choice((1, 1, 2))
    rows = [m.CreateTopicsRequest_CreatableTopicConfig(*pair) for pair in configs.items()]
    request = m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, [], rows)])

    def accept(answer: Any, image: Image | None) -> None:
        topic = Topic(name, configs, image[name].id if image else answer.topics[0].topic_id)
        topic.extend(partitions)
        world.topics[name] = topic
        world.note_failures()

    return Operation(
        f"create {name}",
        request,
        7,
        lambda answer: answer.topics[0].error_code,
        lambda image: name not in world.topics and name in image and image[name].configs == configs,
        accept,
    )


def delete_topic(world: World, topic: Topic) -> Operation:
    topic.doomed = True
    by_id = world.random.random() < 0.5
    named = {"topic_id": topic.id, "name": None} if by_id else {"name": topic.name}
    return Operation(
        f"delete {topic.name}",
        m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState(**named)], [], 1000),
        6,
        lambda answer: answer.responses[0].error_code,
        lambda image: topic.name not in image or image[topic.name].id != topic.id,
        lambda answer, image: world.forget_topic(topic),
    )


def add_partitions(world: World, topic: Topic) -> Operation:
    count = len(topic.ledgers) + 1
    row = m.CreatePartitionsRequest_CreatePartitionsTopic(topic.name, count, None)

    def accept(answer: Any, image: Image | None) -> None:
        topic.extend(count)
        world.note_failures()

    return Operation(
        f"extend {topic.name} to {count}",
        m.CreatePartitionsRequest([row], 1000, False),
        3,
        lambda answer: answer.results[0].error_code,
        lambda image: topic.is_in(image) and image[topic.name].partitions == count,
        accept,
    )


def delete_records(world: World, ledger: Ledger) -> Operation:
    offset = world.random.choice((-1, world.random.randint(0, ledger.acked)))
    ledger.cut_to = max(ledger.cut_to, offset if offset >= 0 else 2**62)
    row = m.DeleteRecordsRequest_DeleteRecordsPartition(ledger.index, offset)
    topics = [m.DeleteRecordsRequest_DeleteRecordsTopic(ledger.topic.name, [row])]

    def accept(answer: Any, _: Image | None) -> None:
        low = answer.topics[0].partitions[0].low_watermark
        if low < offset:
            raise ledger.broken(Property.RETENTION, f"records before {offset} were to be deleted, it begins at {low}")
        ledger.start = max(ledger.start, low)

    return Operation(
        f"delete records of {ledger} before {offset}",
        m.DeleteRecordsRequest(topics, 1000),
        2,
        lambda answer: out_of_range_is_fine(answer.topics[0].partitions[0]),
        lambda image: False,
        accept,
        ledger,
    )


def out_of_range_is_fine(part: Any) -> int:
    """Retention may have been faster."""
    if part.error_code == Error.OFFSET_OUT_OF_RANGE:
        part.error_code, part.low_watermark = 0, 2**62
    return part.error_code


def alter_config(world: World, topic: Topic) -> Operation:
    name, value = changed_config(world.random, topic.lasting)
    topic.may_become(name, value)
    row = m.IncrementalAlterConfigsRequest_AlterableConfig(name, SET, value)
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC_RESOURCE, topic.name, [row])

    def accept(answer: Any, image: Image | None) -> None:
        topic.configs[name] = value

    return Operation(
        f"set {name}={value} of {topic.name}",
        m.IncrementalAlterConfigsRequest([resource], False),
        1,
        lambda answer: answer.responses[0].error_code,
        lambda image: topic.is_in(image) and image[topic.name].configs.get(name) == value,
        accept,
    )
