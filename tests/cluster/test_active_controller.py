"""The active controller, in a simulated cluster without faults."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from moldau.broker.controller import PROBES_AFTER_MS
from moldau.broker.node import Node
from moldau.broker.outbox import Done, Lost, Peer
from moldau.broker.quorum import Quorum
from moldau.wire import messages as m
from tests.cluster.simulation.process import Process
from tests.cluster.simulation.world import World

pytestmark = pytest.mark.usefixtures("no_logs")


def active(world: World) -> Process:
    """Let a cluster start, and return the process of its active controller."""
    world.plan.spite = 0.0
    world.run_for(2500)
    return next(host.process for host in world.hosts.values() if host.process and host.process.node.controller)


def test_a_controller_that_is_replaced_forgets_what_it_planned() -> None:
    """It would decide on an image without all that other controllers have done, when it is active again."""
    process = active(World(1))
    node, quorum = process.node, process.node.quorum
    assert isinstance(quorum, Quorum)
    planned = node.metadata.planned

    def replace() -> None:
        quorum.raft.meet(quorum.epoch + 1, -1, None, node.clock.monotonic_ms())
        quorum.settle()

    process.run(replace)
    assert node.controller is None
    assert node.metadata.planned is not planned


def test_a_new_controller_knows_the_connections_of_brokers_before_their_next_heartbeats() -> None:
    """A broker that dies meanwhile would be waited for until its session ends."""
    process = active(World(1))
    node, controller = process.node, process.node.controller
    assert controller is not None
    uses = Counter(controller.heard_by.values())
    others = [one.id for one in node.cluster.live_brokers() if one.id != node.id]
    assert [uses[broker] for broker in others] == [2] * len(others), "for heartbeats and for fetches"


class Probes:
    """The probes that a node sends: they are answered when the test says so. All else goes its way."""

    def __init__(self, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[Done] = []
        self.ask = node.ask
        monkeypatch.setattr(node, "ask", self)

    def __call__(self, peer: Peer, request: Any, done: Done, timeout_ms: float | None = None) -> None:
        if peer.purpose == "probe":
            self.done.append(done)
        else:
            self.ask(peer, request, done, timeout_ms)

    def lose(self, process: Process, lost: Lost) -> None:
        """Answer the last one."""
        process.run(lambda: self.done[-1](lost))
        process.node.on_due()


def test_a_broker_whose_process_is_gone_is_fenced_at_once_and_may_register_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first probes may go to connections that are about to break with the process: that proves nothing yet."""
    world = World(1)
    process = active(world)
    node, controller = process.node, process.node.controller
    assert controller is not None
    victim = next(one for one in node.cluster.live_brokers() if one.id != node.id)
    probes = Probes(node, monkeypatch)
    process.run(lambda: controller.look_for(victim.id))
    for pause_ms in PROBES_AFTER_MS[1:]:
        probes.lose(process, Lost("closed by the peer"))
        world.run_for(pause_ms + 1)
        assert not node.metadata.planned.brokers[victim.id].fenced
    assert len(probes.done) == len(PROBES_AFTER_MS)
    probes.lose(process, Lost("refused", is_refused=True))
    assert node.metadata.planned.brokers[victim.id].fenced
    assert not controller.heartbeats.is_alive(victim, node.clock.monotonic_ms())


def test_a_broker_that_only_does_not_answer_keeps_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1)
    process = active(world)
    node, controller = process.node, process.node.controller
    assert controller is not None
    victim = next(one for one in node.cluster.live_brokers() if one.id != node.id)
    probes = Probes(node, monkeypatch)
    process.run(lambda: controller.look_for(victim.id))
    for pause_ms in (*PROBES_AFTER_MS[1:], 100):
        probes.lose(process, Lost("no answer in time"))
        world.run_for(pause_ms + 1)
    assert len(probes.done) == len(PROBES_AFTER_MS)
    assert not node.metadata.planned.brokers[victim.id].fenced
    assert controller.heartbeats.is_alive(victim, node.clock.monotonic_ms())


def test_who_asks_when_a_leader_has_just_died_is_told_the_next_one() -> None:
    """A client loses its connection when the followers do; librdkafka asks once, and again only after a second."""
    world = World(1)
    node = active(world).node
    leader, other = (one.id for one in node.cluster.live_brokers() if one.id != node.id)
    caller = world.admin.callers[other]
    answers: list[Any] = []

    def ask(request: Any, version: int) -> None:
        caller.call(request, version, answers.append, lambda: answers.append(None), 6000)

    replicas = [m.CreateTopicsRequest_CreatableReplicaAssignment(0, [leader, other, node.id])]
    ask(m.CreateTopicsRequest([m.CreateTopicsRequest_CreatableTopic("t", -1, -1, replicas)], 6000), 7)
    world.run_for(3000)
    assert answers.pop().topics[0].error_code == 0
    follower = world.hosts[other].process
    assert follower is not None
    world.hosts[leader].kill()
    world.run_for(1)
    assert follower.node.replication.vanished
    assert follower.node.cluster.topics["t"].partitions[0].leader == leader, "it is not known yet who comes next"
    ask(m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="t")]), 12)
    world.run_for(400)
    assert answers.pop().topics[0].partitions[0].leader_id not in (leader, -1)
    assert not follower.node.replication.vanished


def test_a_vote_that_cannot_be_written_down_is_never_given() -> None:
    """It would be forgotten with the process, and given again to another candidate of the epoch."""
    world = World(1)
    leader = active(world)
    voter = next(host for host in world.hosts.values() if host.controls and host.place != leader.place)
    assert voter.process is not None
    node, quorum = voter.process.node, voter.process.node.quorum
    assert isinstance(quorum, Quorum)
    reasons: list[str] = []
    node.on_fatal = reasons.append
    epoch, end = quorum.raft.epoch, node.metadata.log.end_offset
    part = m.VoteRequest_PartitionData(0, epoch + 1, leader.place, last_offset_epoch=epoch, last_offset=end)
    request = m.VoteRequest(world.cluster_id, voter.place, [m.VoteRequest_TopicData("__cluster_metadata", [part])])
    voter.machine.full = True
    assert quorum.answer(request) is None
    assert "No space left" in reasons[0]
