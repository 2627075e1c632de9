"""The administrator: makes topics, changes settings, moves partitions, asks for elections. A promise is a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.log.checkpoints import decode_id
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.simulation.callers import Client
from tests.cluster.simulation.fabric import CONTROLLER_PORT, LISTENERS, host_name
from tests.cluster.simulation.plan import FACTOR
from tests.cluster.simulation.properties import Broken, Property

if TYPE_CHECKING:
    from tests.cluster.simulation.host import Host
    from tests.cluster.simulation.world import World

TOPIC, SET = 2, 0
AGAIN_MS = 100.0
SETTING = "retention.ms"
TIMEOUT_MS = 6000.0
REMOVAL = "RemoveRaftVoterRequest"
DECIDED = (Error.NONE, Error.VOTER_NOT_FOUND)


class Admin(Client):
    """One who asks for changes, one at a time for each matter, until they are made."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.configs: dict[str, set[str]] = {}  # what a topic's setting may be: the last that was told, and later ones
        self.serial = 0
        self.removals = 0  # of voters that were asked for: each may happen at any time until its outcome is known

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
        elif error is not Error.TOPIC_ALREADY_EXISTS or not self.world.find_topic(name, partitions):
            self.later(again)

    def act(self) -> None:
        if self.world.is_draining:
            return
        random, ledgers = self.world.random, self.world.ledgers()
        if not ledgers:
            return
        ledger = random.choice(ledgers)
        if random.random() < self.world.plan.voter_changes:
            self.change_voters()
            return
        fleeting = self.world.plan.fleeting
        if fleeting in self.world.topics and random.random() < 0.4:
            self.delete(fleeting, *self.world.topics.pop(fleeting))
            return
        match random.randrange(4):
            case 0:
                self.serial += 1
                self.create(f"made{self.serial}", 1, 3)
            case 1:
                self.configure(random.choice(self.world.ledgers(lasting=True) or [ledger]).topic)
            case 2:
                self.elect(ledger.topic, ledger.index)
            case _:
                self.move(ledger.topic, ledger.index)

    def delete(self, name: str, topic_id: bytes, partitions: int) -> None:
        """Ask for the end of a topic until it is gone, and then for another of its name."""
        self.world.doomed.setdefault(topic_id, False)
        again = lambda: self.delete(name, topic_id, partitions)  # noqa: E731
        done = lambda answer: self.deleted(name, topic_id, partitions, answer, again)  # noqa: E731
        request = m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState(None, topic_id)], timeout_ms=2000)
        self.any_caller().call(request, 6, done, lambda: self.later(again), TIMEOUT_MS)

    def deleted(self, name: str, topic_id: bytes, partitions: int, answer: Any, again: Any) -> None:
        error = Error(answer.responses[0].error_code)
        self.world.note(f"topic {name} is deleted: {error.name}")
        if error in (Error.NONE, Error.UNKNOWN_TOPIC_ID):
            self.world.counts["topics deleted"] += 1
            self.world.doomed[topic_id] = True
            self.configs.pop(name, None)
            self.create(name, partitions, FACTOR)
        else:
            self.later(again)

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
        replicas = self.world.random.sample(self.world.brokers, FACTOR)
        part = m.AlterPartitionReassignmentsRequest_ReassignablePartition(index, replicas)
        row = m.AlterPartitionReassignmentsRequest_ReassignableTopic(topic, [part])
        self.say(m.AlterPartitionReassignmentsRequest(topics=[row]), 0)

    def change_voters(self) -> None:
        """Add a controller to the voters or remove one of them; where they are fixed, let them stand in the log."""
        world, raft = self.world, self.world.newest_quorum()
        if raft is None or not raft.voters.is_dynamic:
            row = m.UpdateFeaturesRequest_FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
            self.say(m.UpdateFeaturesRequest(feature_updates=[row]), 1)
            return
        lost = [one for one in raft.voters.members if decode_id(world.hosts[one.id].directory) != one.directory]
        spares = [host for host in world.hosts.values() if host.controls and raft.voters.get(host.place) is None]
        if spares and not lost and world.random.random() < 0.6:
            self.add_voter(world.random.choice(spares))
            return
        voter = world.random.choice(lost or raft.voters.members)
        self.removals += 1
        self.say(m.RemoveRaftVoterRequest(world.cluster_id, voter.id, voter.directory), 0)

    def add_voter(self, host: Host) -> None:
        listener = m.AddRaftVoterRequest_Listener(LISTENERS[CONTROLLER_PORT], host_name(host.place), CONTROLLER_PORT)
        waits = self.world.random.random() < 0.7
        request = m.AddRaftVoterRequest(
            self.world.cluster_id, 2000, host.place, decode_id(host.directory), [listener], waits
        )
        self.say(request, 1)

    def say(self, request: Any, version: int) -> None:
        name = request.SCHEMA.name
        self.world.counts[name] += 1
        done = lambda answer: self.note(name, answer)  # noqa: E731
        self.any_caller().call(request, version, done, lambda: self.world.note(f"{name} was lost"), TIMEOUT_MS)

    def note(self, name: str, answer: Any) -> None:
        if name == REMOVAL and Error(answer.error_code) in DECIDED:
            self.removals -= 1
        self.world.note(f"{name}: {answered(answer)}")
        self.world.counts[f"{name}: {answered(answer)}"] += 1

    def check(self, image: Any) -> None:
        for topic, values in self.configs.items():
            found = image.config(TOPIC, topic).get(SETTING, "")
            if found not in values:
                raise Broken(Property.METADATA_STAYS, f"{topic} has {SETTING} {found}")


def answered(answer: Any) -> str:
    """Return the errors of an answer in a word."""
    text = repr(answer)
    return "an error" if "error_code=0" not in text and "error_code" in text else "done"
