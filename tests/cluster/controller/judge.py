"""Apache Kafka's controller as the judge: both are asked the same, and must answer and write the same.

Brokers are made up: they register, send heartbeats and propose ISRs over the network to a Kafka that is a controller
and nothing else. The metadata log is followed from there. Each question is put to Moldau's decision on the image as it
was before, at the offset at which Kafka has written; then the answers are compared, and the records byte for byte.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, is_dataclass
from dataclasses import fields as fields_of
from typing import Any

from moldau.client.config import Address, Config
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline
from moldau.cluster.controller.directories import assign_directories
from moldau.cluster.controller.elections import elect_leader
from moldau.cluster.controller.heartbeats import Heartbeats, fence
from moldau.cluster.controller.isr import alter_partition
from moldau.cluster.controller.policy import clear_eligible_leaders, policy_of
from moldau.cluster.controller.producer_ids import allocate_producer_ids
from moldau.cluster.controller.reassigning import cancel, reassign
from moldau.cluster.controller.registration import register, unregister
from moldau.cluster.controller.result import Result
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.cluster import BROKER, TOPIC, UNASSIGNED_DIRECTORY, Cluster, Partition
from moldau.machines.metadata.topics import NewTopic, create_topic
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import batches, records
from moldau.wire.refusal import Refused
from tests.conformance.differential.brokers import CLUSTER_ID

WAIT_S = 10.0
FEATURES = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "transaction.version": (0, 2),
    "group.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


class TooSlow(Exception):
    """This machine does not get to send heartbeats in time: what Kafka does by itself comes between the questions."""


@dataclass(frozen=True)
class Written:
    """A record of Kafka's metadata log."""

    offset: int
    record: Any
    value: bytes


class Log:
    """Follows the metadata log of a controller."""

    def __init__(self, port: int) -> None:
        self.connection = connect(port)
        self.offset, self.epoch, self.leader_epoch = 0, 0, -1

    def read(self) -> list[Written]:
        """Return what is new, without waiting for more."""
        part = m.FetchRequest_FetchPartition(
            partition=0,
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self.epoch,
            partition_max_bytes=1 << 20,
            replica_directory_id=bytes([77] * 16),
        )
        topics = [m.FetchRequest_FetchTopic(topic_id=metadata_records.TOPIC_ID, partitions=[part])]
        request = m.FetchRequest(
            cluster_id=CLUSTER_ID,
            replica_state=m.FetchRequest_ReplicaState(77, -1),
            max_wait_ms=0,
            max_bytes=1 << 23,
            session_epoch=-1,
            topics=topics,
        )
        row = self.connection.call(request, Deadline(WAIT_S)).responses[0].partitions[0]
        if row.current_leader is not None:
            self.leader_epoch = row.current_leader.leader_epoch
        found: list[Written] = []
        for batch in batches(memoryview(bytes(row.records or b""))):
            if not batch.is_control:
                for one in records(batch):
                    value = bytes(one.value or b"")
                    found.append(Written(one.offset, metadata_records.decode(value), value))
            self.offset, self.epoch = batch.next_offset, batch.partition_leader_epoch
        return found

    def read_all(self) -> list[Written]:
        found = self.read()
        while more := self.read():
            found += more
        return found


def connect(port: int) -> Connection:
    address = Address("127.0.0.1", port)
    return Connection(address, Config({"bootstrap.servers": str(address)}), None, Deadline(WAIT_S))


@dataclass
class Broker:
    """A broker that is made up."""

    id: int
    incarnation: int = 0
    epoch: int = -1
    directories: list[bytes] = field(default_factory=list[bytes])
    is_silent: bool = False


class Judge:
    """Asks both, and compares."""

    def __init__(self, port: int, session_ms: float, seed: int) -> None:
        self.connection, self.log = connect(port), Log(port)
        self.image, self.heartbeats = Cluster(), Heartbeats(session_ms)
        self.policy = policy_of(self.image)
        self.random = random.Random(seed)
        self.brokers = {one: Broker(one, directories=[bytes([one, n] * 8) for n in (1, 2)]) for one in range(1, 5)}
        self.heard_ms = 0.0
        self.history: list[str] = []
        self.expiring: int | None = None
        deadline = time.monotonic() + WAIT_S
        while not self.image.features or (self.image.metadata_version >= 15 and not self.image.controllers):
            assert time.monotonic() < deadline, "the controller registers itself last of all"
            self.catch_up()

    def catch_up(self) -> None:
        for one in self.log.read_all():
            self.image.replay(one.record)

    def now_ms(self) -> float:
        return time.monotonic() * 1000

    def ask(self, request: Any, decide: Callable[[int], Result], at_most: int | None = None) -> Any:
        """Put a question to both; returns the answer."""
        self.history.append(f"{request}")
        answer = self.connection.call(request, Deadline(WAIT_S), at_most=at_most)
        self.history.append(f"{answer}")
        written = self.log.read_all()
        first = written[0].offset if written else self.log.offset
        expected = decide(first)
        fenced = self.fenced_meanwhile(request, written)
        fences = [record for broker_id in fenced for record in fence(self.image, broker_id, self.policy)]
        self.compare(self.without_artefacts(request, written), [*expected.records, *fences])
        assert plain(answer) == plain(expected.response), self.told("answers", answer, expected.response)
        for one in written:
            self.image.replay(one.record)
            self.forget_offset(one.record)
        self.forget_strangers()
        return answer

    def without_artefacts(self, request: Any, written: Sequence[Written]) -> list[Written]:
        """Leave out partitions that a departing broker is not in: Kafka's table of them misses ClearElrRecords."""
        if request.SCHEMA.name not in ("UnregisterBrokerRequest", "BrokerRegistrationRequest"):
            return list(written)
        return [one for one in written if not self.is_foreign(one.record, request.broker_id)]

    def is_foreign(self, record: Any, broker_id: int) -> bool:
        if record.SCHEMA.name != "PartitionChangeRecord":
            return False
        part = self.image.topics_by_id[bytes(record.topic_id)].partitions[record.partition_id]
        return broker_id not in part.isr and broker_id not in part.eligible_leaders

    def forget_offset(self, record: Any) -> None:
        """Kafka forgets how far a broker is when its registration changes, until the next heartbeat."""
        if record.SCHEMA.name == "BrokerRegistrationChangeRecord" and record.fenced != 1:
            self.heartbeats.sessions[record.broker_id].metadata_offset = -1

    def fenced_meanwhile(self, request: Any, written: Sequence[Written]) -> set[int]:
        """The broker whose session has run out meanwhile, as we wait for; raises TooSlow if it is another."""
        changes = [one.record for one in written if one.record.SCHEMA.name == "BrokerRegistrationChangeRecord"]
        fenced = {one.broker_id for one in changes if one.fenced == 1} - {getattr(request, "broker_id", None)}
        for broker_id in fenced:
            self.heartbeats.sessions.pop(broker_id, None)
        if fenced - {self.expiring}:
            raise TooSlow(f"the sessions of {fenced} have run out")
        return fenced

    def compare(self, written: Sequence[Written], decided: Sequence[Any]) -> None:
        """Compare records in a fixed order; Kafka goes through partitions as its hash tables do.

        It writes the same change twice for a partition of which ClearElrRecord has made its tables forget less than it
        should, and for one that is in a failed directory of a broker that is fenced.
        """
        theirs = sorted({self.corrected(one) for one in written if not self.says_nothing(one.record)})
        ours = sorted(metadata_records.encode(one, self.image.metadata_version) for one in decided)
        assert theirs == ours, self.told(
            "records",
            [one.record for one in written],
            decided,
        )

    def says_nothing(self, record: Any) -> bool:
        """Kafka fences again a broker that is fenced, and names no directory where none is left."""
        if record.SCHEMA.name != "BrokerRegistrationChangeRecord":
            return record.SCHEMA.name == "NoOpRecord"
        if record.fenced == 1:
            return self.image.brokers[record.broker_id].fenced
        is_change = record.fenced or record.in_controlled_shutdown or record.log_dirs
        return not is_change and record.cordoned_log_dirs is None

    def corrected(self, one: Written) -> bytes:
        """A change of a partition without brokers that do not keep it.

        Kafka leaves those whom a reassignment has removed eligible to lead: should one of them be added again, it could
        lead with an empty log. If one of them was the last known leader, Kafka's controller fails when it comes back.
        """
        record = copy(one.record)
        if record.SCHEMA.name != "PartitionChangeRecord":
            return one.value
        part = self.image.topics_by_id[bytes(record.topic_id)].partitions[record.partition_id]
        replicas = part.replicas if record.replicas is None else record.replicas
        record.eligible_leader_replicas = known(record.eligible_leader_replicas, part.eligible_leaders, replicas)
        record.last_known_elr = known(record.last_known_elr, part.last_known_leaders, replicas)
        return one.value if record == one.record else metadata_records.encode(record, self.image.metadata_version)

    def forget_strangers(self) -> None:
        """Let Kafka forget them: it does when min.insync.replicas changes."""
        for topic in self.image.topics.values():
            parts = topic.partitions.values()
            if any({*part.eligible_leaders, *part.last_known_leaders} - set(part.replicas) for part in parts):
                value = "1" if self.policy.min_insync(topic.name) == 2 else "2"
                row = m.IncrementalAlterConfigsRequest_AlterableConfig("min.insync.replicas", 0, value)
                resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC, topic.name, [row])
                self.connection.call(m.IncrementalAlterConfigsRequest([resource]), Deadline(WAIT_S))
        self.catch_up()

    def told(self, what: str, theirs: Any, ours: Any) -> str:
        asked = "\n".join(self.history[-6:])
        parts = [f"{topic.name} {part}" for topic in self.image.topics.values() for part in topic.partitions.values()]
        live = [
            f"{one.id} {one.epoch} {one.fenced} {one.in_controlled_shutdown}" for one in self.image.brokers.values()
        ]
        state = "\n".join([*parts, *live])
        state = state.replace(repr(UNASSIGNED_DIRECTORY), "?")
        return f"{what} differ after {len(self.history)} questions\n{asked}\nKafka  {theirs}\nMoldau {ours}\n{state}"

    # What brokers ask.

    def register(self, broker: Broker, previous: int = -1, at_most: int | None = None, **other: Any) -> Any:
        request = m.BrokerRegistrationRequest(
            broker_id=broker.id,
            cluster_id=CLUSTER_ID,
            incarnation_id=bytes([broker.id] * 8) + broker.incarnation.to_bytes(8, "big"),
            listeners=[m.BrokerRegistrationRequest_Listener("PLAINTEXT", "127.0.0.1", 9000 + broker.id, 0)],
            features=[m.BrokerRegistrationRequest_Feature(name, *levels) for name, levels in FEATURES.items()],
            rack=f"r{broker.id}",
            log_dirs=broker.directories,
            previous_broker_epoch=previous,
        )
        for name, value in other.items():
            setattr(request, name, value)
        version = 4 if at_most is None else at_most
        now = self.now_ms()

        def decide(first: int) -> Result:
            return register(self.image, request, version, first, now, self.heartbeats, self.policy, CLUSTER_ID)

        answer = self.ask(request, decide, at_most)
        if not answer.error_code:
            broker.epoch, broker.is_silent = answer.broker_epoch, False
        return answer

    def heartbeat(self, broker: Broker, **other: Any) -> Any:
        fields = {"current_metadata_offset": self.log.offset - 1, "want_fence": False, "want_shut_down": False}
        fields |= {"broker_id": broker.id, "broker_epoch": broker.epoch, "offline_log_dirs": []} | other
        request = m.BrokerHeartbeatRequest(**fields)
        now = self.now_ms()
        return self.ask(request, lambda first: self.heartbeats.heartbeat(self.image, request, now, first, self.policy))

    def propose(self, broker: Broker, part: Partition, topic_id: bytes, members: Any, **other: Any) -> Any:
        """Propose an ISR, given as pairs of broker and epoch."""
        row = m.AlterPartitionRequest_PartitionData(
            partition_index=part.index,
            leader_epoch=part.leader_epoch,
            new_isr_with_epochs=[m.AlterPartitionRequest_BrokerState(*member) for member in members],
            leader_recovery_state=0,
            partition_epoch=part.partition_epoch,
        )
        for name, value in other.items():
            setattr(row, name, value)
        request = m.AlterPartitionRequest(broker.id, broker.epoch, [m.AlterPartitionRequest_TopicData(topic_id, [row])])
        return self.ask(request, lambda _: alter_partition(self.image, request, 3, self.policy))

    def assign(self, broker: Broker, directory: bytes, topic_id: bytes, indexes: Sequence[int]) -> Any:
        rows = [m.AssignReplicasToDirsRequest_PartitionData(index) for index in indexes]
        topics = [m.AssignReplicasToDirsRequest_TopicData(topic_id, rows)]
        named = [m.AssignReplicasToDirsRequest_DirectoryData(directory, topics)]
        request = m.AssignReplicasToDirsRequest(broker.id, broker.epoch, named)
        return self.ask(request, lambda _: assign_directories(self.image, request, self.policy))

    def producer_ids(self, broker: Broker) -> Any:
        request = m.AllocateProducerIdsRequest(broker.id, broker.epoch)
        return self.ask(request, lambda _: allocate_producer_ids(self.image, request))

    def unregister(self, broker_id: int) -> Any:
        request = m.UnregisterBrokerRequest(broker_id)
        return self.ask(request, lambda _: unregister(self.image, broker_id, self.policy))

    # What clients ask.

    def create(self, name: str, assignment: dict[int, list[int]], **configs: str) -> None:
        self.keep_alive(rarely=True)
        row = m.CreateTopicsRequest_CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[m.CreateTopicsRequest_CreatableReplicaAssignment(*pair) for pair in assignment.items()],
            configs=[
                m.CreateTopicsRequest_CreatableTopicConfig(key.replace("_", "."), value)
                for key, value in configs.items()
            ],
        )
        answer = self.connection.call(m.CreateTopicsRequest([row], timeout_ms=10_000), Deadline(WAIT_S)).topics[0]
        written = self.log.read_all()
        self.fenced_meanwhile(row, written)
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        try:
            decided = create_topic(self.image, NewTopic(name, -1, -1, assignment, settings), answer.topic_id)
            code = Error.NONE
        except Refused as refused:
            decided, code = [], refused.error
        self.history.append(f"create {name} {assignment}")
        # Kafka clears, with the setting of a topic, what a topic without partitions cannot have.
        self.compare([one for one in written if one.record.SCHEMA.name != "ClearElrRecord"], decided)
        assert answer.error_code == code, self.told("codes", answer, code)
        for one in written:
            self.image.replay(one.record)

    def reassign(self, name: str, index: int, target: list[int] | None) -> Any:
        row = m.AlterPartitionReassignmentsRequest_ReassignablePartition(index, target)
        topics = [m.AlterPartitionReassignmentsRequest_ReassignableTopic(name, [row])]
        request = m.AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)

        def decide(_: int) -> Result:
            part = m.AlterPartitionReassignmentsResponse_ReassignablePartitionResponse
            try:
                if target is None:
                    made = cancel(self.image, self.policy, name, index)
                else:
                    made = reassign(self.image, self.policy, name, index, target)
                row = part(index, error_message=None)
            except Refused as refused:
                made, row = [], part(index, refused.error, refused.message)
            topic = m.AlterPartitionReassignmentsResponse_ReassignableTopicResponse(name, [row])
            return Result(made, m.AlterPartitionReassignmentsResponse(error_message=None, responses=[topic]))

        return self.ask(request, decide)

    def elect(self, name: str, index: int, kind: int) -> Any:
        topics = [m.ElectLeadersRequest_TopicPartitions(name, [index])]
        request = m.ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=10_000)

        def decide(_: int) -> Result:
            part = m.ElectLeadersResponse_PartitionResult
            try:
                made, row = elect_leader(self.image, self.policy, name, index, kind), part(index, error_message=None)
            except Refused as refused:
                made, row = [], part(index, refused.error, refused.message)
            results = [m.ElectLeadersResponse_ReplicaElectionResult(name, [row])]
            return Result(made, m.ElectLeadersResponse(replica_election_results=results))

        return self.ask(request, decide)

    def configure(self, kind: int, name: str, key: str, value: str) -> Any:
        row = m.IncrementalAlterConfigsRequest_AlterableConfig(key, 0, value)
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(kind, name, [row])
        request = m.IncrementalAlterConfigsRequest([resource])

        def decide(_: int) -> Result:
            changes = [m.ConfigRecord(kind, name, key, value)]
            if self.image.config(kind, name).get(key) == value and kind == TOPIC:
                changes = []
            answer = m.IncrementalAlterConfigsResponse_AlterConfigsResourceResponse(0, None, kind, name)
            made = [*changes, *clear_eligible_leaders(self.image, changes)]
            return Result(made, m.IncrementalAlterConfigsResponse(responses=[answer]))

        return self.ask(request, decide)

    # What nobody asks.

    def expire(self, broker: Broker) -> None:
        """Let the session of a broker run out while the others are heard; `ask` sees it fenced."""
        self.heartbeat(broker)
        while any(session.stops_at >= 0 for session in self.heartbeats.sessions.values()):
            self.keep_alive()  # whoever wants to stop may, once the others have seen it: that must not come between
        self.history.append(f"the session of {broker.id} runs out")
        broker.is_silent, self.expiring = True, broker.id
        deadline = time.monotonic() + WAIT_S
        while self.heartbeats.sessions.get(broker.id) is not None:
            assert time.monotonic() < deadline, f"broker {broker.id} is not fenced"
            time.sleep(self.heartbeats.session_ms / 10_000)
            self.keep_alive()
        self.expiring = None

    def keep_alive(self, rarely: bool = False) -> None:
        """Let every broker be heard that lives; rarely: if it is time."""
        if rarely and self.now_ms() - self.heard_ms < self.heartbeats.session_ms / 5:
            return
        self.heard_ms = self.now_ms()
        for broker in self.brokers.values():
            known = self.image.brokers.get(broker.id)
            if known is not None and known.epoch == broker.epoch and not broker.is_silent:
                self.heartbeat(broker, want_fence=known.fenced)


def plain(message: Any) -> Any:
    """An answer without sentences, which are each one's own."""
    if isinstance(message, list | tuple):
        return [plain(one) for one in message]
    if not is_dataclass(message):
        return bytes(message) if isinstance(message, memoryview) else message
    names = [one.name for one in fields_of(message) if one.name not in ("error_message", "throttle_time_ms")]
    return {name: plain(getattr(message, name)) for name in names}


def known(changed: list[int] | None, before: tuple[int, ...], replicas: Sequence[int]) -> list[int] | None:
    """What a record should say of a list that may have brokers in it that are no replicas."""
    after = [one for one in (before if changed is None else changed) if one in replicas]
    return None if tuple(after) == before else after


def choices(judge: Judge) -> Iterator[Callable[[], Any]]:
    """Yield questions for ever, at random, about brokers and partitions as they are then."""
    dice = judge.random
    while True:
        broker = dice.choice(list(judge.brokers.values()))
        topic = dice.choice(list(judge.image.topics.values()))
        part = dice.choice(list(topic.partitions.values()))
        yield dice.choice(QUESTIONS)(judge, broker, topic, part)


def ask_heartbeat(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    dice, fields = judge.random, dict[str, Any]()
    if dice.random() < 0.3:
        fields["want_fence"] = True
    if dice.random() < 0.3:
        fields["want_shut_down"] = True
    # Kafka changes a partition twice if a broker with a broken disk leaves; we do once.
    if not fields and judge.image.is_active(broker.id) and dice.random() < 0.3:
        fields["offline_log_dirs"] = [dice.choice(broker.directories)]
    if dice.random() < 0.1:
        fields["broker_epoch"] = broker.epoch + dice.choice((-1, 1))
    if dice.random() < 0.1:
        fields["current_metadata_offset"] = dice.randrange(judge.log.offset)
    if dice.random() < 0.2:
        fields["cordoned_log_dirs"] = dice.sample(broker.directories, dice.randrange(3))
    return lambda: judge.heartbeat(broker, **fields)


def ask_serve(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    return lambda: judge.heartbeat(broker)


def ask_isr(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    dice, fields = judge.random, dict[str, Any]()
    leader = judge.brokers.get(part.leader, broker) if dice.random() < 0.9 else broker
    ids = [one for one in part.replicas if one == leader.id or dice.random() < 0.6]
    if dice.random() < 0.05:
        ids.append(dice.choice((*judge.brokers, 9)))
    epochs = [judge.brokers[one].epoch if one in judge.brokers else 5 for one in ids]
    members = [(one, dice.choice((epoch, epoch, epoch, -1, epoch - 1))) for one, epoch in zip(ids, epochs, strict=True)]
    if dice.random() < 0.05:
        fields["leader_epoch"] = part.leader_epoch + dice.choice((-1, 1))
    if dice.random() < 0.05:
        fields["partition_epoch"] = part.partition_epoch + dice.choice((-1, 1))
    if dice.random() < 0.1:
        fields["leader_recovery_state"] = 1
    topic_id = topic.id if dice.random() < 0.97 else bytes([5] * 16)
    return lambda: judge.propose(leader, part, topic_id, members, **fields)


def ask_join(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    """All who can be are in sync again."""
    able = [(one, judge.brokers[one].epoch) for one in part.replicas if judge.image.is_active(one)]
    leader = judge.brokers.get(part.leader, broker)
    return lambda: judge.propose(leader, part, topic.id, able)


def ask_move(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    """Where a move is under way, a target must not go back on it: there Kafka goes on with what is not wanted."""
    dice = judge.random
    target = dice.sample(list(judge.brokers), dice.randrange(1, 4)) if dice.random() < 0.7 else None
    if target is not None and (set(part.adding) - set(target) or (part.removing and set(part.replicas) <= set(target))):
        target = None
    if target is not None and dice.random() < 0.05:
        target.append(dice.choice((9, target[0])))
    return lambda: judge.reassign(topic.name, part.index, target)


def ask_election(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    kind = judge.random.choice((0, 0, 1))
    return lambda: judge.elect(topic.name, part.index, kind)


def ask_directory(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    dice = judge.random
    directory = dice.choice((*broker.directories, *broker.directories, bytes([broker.id, 9] * 8)))
    indexes = dice.sample(range(5), dice.randrange(1, 4))
    return lambda: judge.assign(broker, directory, topic.id, indexes)


def ask_setting(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    dice = judge.random
    if dice.random() < 0.1:
        value = str(dice.randrange(1, 4))
        return lambda: judge.configure(BROKER, "", "min.insync.replicas", value)
    rows = ("min.insync.replicas", "1"), ("min.insync.replicas", "2"), ("unclean.leader.election.enable", "true")
    name, value = dice.choice((*rows, ("unclean.leader.election.enable", "false")))
    return lambda: judge.configure(TOPIC, topic.name, name, value)


def ask_registration(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    """The same process again, or another while the first lives."""
    another = Broker(broker.id, broker.incarnation + judge.random.choice((0, 1)), broker.epoch, broker.directories)
    return lambda: judge.register(another, broker.epoch)


def ask_producer_ids(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    return lambda: judge.producer_ids(broker)


def ask_departure(judge: Judge, broker: Broker, topic: Any, part: Partition) -> Callable[[], Any]:
    """A broker is forgotten, and registers anew."""

    def leave() -> None:
        judge.unregister(broker.id)
        judge.unregister(broker.id)
        broker.incarnation += 1
        judge.register(broker, broker.epoch)

    return leave


QUESTIONS = (
    *(ask_serve,) * 8,
    *(ask_heartbeat,) * 6,
    *(ask_isr,) * 6,
    *(ask_join,) * 6,
    *(ask_move,) * 4,
    *(ask_election,) * 3,
    *(ask_directory,) * 2,
    *(ask_setting,) * 2,
    ask_registration,
    ask_producer_ids,
    ask_departure,
)
