"""A controller on a log in memory, what it is asked, and what it hears."""

from __future__ import annotations

from random import Random
from typing import Any

from moldau.cluster.elections import Election
from moldau.cluster.observing import Limits
from moldau.cluster.raft import Endpoint, Raft, Send, Voter, Voters
from moldau.machines.metadata.records import TOPIC, TOPIC_ID
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, batches, build, patch
from tests.cluster.memory_log import MemoryLog, as_log

LISTENER = "CONTROLLER"
CLUSTER = "a-cluster"
LIMITS = Limits(20, 1 << 20, 100)
WALL = 1_700_000_000_000


def directory(number: int) -> bytes:
    return bytes([number]) * 16


def voter(number: int) -> Voter:
    return Voter(number, directory(number), (Endpoint(LISTENER, "host", number),))


def voters(*numbers: int) -> Voters:
    return Voters(tuple(voter(number) for number in numbers), 1)


class Controller:
    """A controller, its disk, and what it has asked."""

    def __init__(self, number: int, of: Voters, log: Any = None, **more: Any) -> None:
        self.log = log or MemoryLog()
        self.saved: list[Election] = []
        self.snapshots: dict[tuple[int, int], bytes] = more.pop("snapshots", {})
        more = {"election": Election(), "save": self.saved.append, "random": Random(1), **more}
        self.raft = Raft(
            number,
            directory(number),
            CLUSTER,
            as_log(self.log),
            voters=of,
            servers=[],
            listeners=[Endpoint(LISTENER, "host", number)],
            controller_listener=LISTENER,
            limits=LIMITS,
            snapshot=max(self.snapshots, default=None),
            read_snapshot=self.read_snapshot,
            **more,
        )
        self.raft.start(0.0, WALL)

    def read_snapshot(self, end_offset: int, epoch: int, position: int, most: int) -> tuple[bytes, int] | None:
        data = self.snapshots.get((end_offset, epoch))
        return None if data is None else (data[position : position + most], len(data))

    def sync(self) -> None:
        if isinstance(self.log, MemoryLog):
            self.log.sync(self.log.end_offset, self.log.cuts)
        else:
            self.log.flush(WALL)
        self.raft.synced(0.0)

    def tick(self, now: float) -> list[Send]:
        return self.raft.tick(now, WALL)

    def hear(self, sent: Send, response: Any, now: float = 0.0) -> Any:
        return self.raft.heard(sent, response, now, WALL)

    def elect(self, now: float = 10_000.0) -> None:
        """Let it win an election with the votes of all others."""
        for _ in range(2):
            for sent in self.tick(now):
                if sent.request.SCHEMA.name == "VoteRequest":
                    self.hear(sent, vote_answer(sent.request.topics[0].partitions[0].replica_epoch), now)
        assert self.raft.is_leader


def filled(*epochs: int) -> MemoryLog:
    """Return a synced log with a record of each of these epochs."""
    log = MemoryLog()
    for epoch in epochs:
        view = memoryview(build([Record(0, 0, None, b"x")], partition_leader_epoch=epoch))
        patch(view, base_offset=log.end_offset, leader_epoch=epoch)
        log.add(next(iter(batches(view))))
    log.sync(log.end_offset, 0)
    return log


def vote_answer(epoch: int, granted: bool = True, leader: int = -1, error: Error = Error.NONE) -> Any:
    part = m.VoteResponse_PartitionData(0, error, leader, epoch, granted)
    return m.VoteResponse(0, [m.VoteResponse_TopicData(TOPIC, [part])])


def ask_vote(raft: Raft, who: int, epoch: int, last: tuple[int, int] = (0, 0), pre: bool = False, **more: Any) -> Any:
    part = m.VoteRequest_PartitionData(0, epoch, who, directory(who), more.pop("key", raft.mine[1]), *last, pre)
    request = m.VoteRequest(CLUSTER, raft.me, [m.VoteRequest_TopicData(TOPIC, [part])])
    for name, value in more.items():
        setattr(request, name, value)
    response = raft.vote(codec.decode(m.VoteRequest, 2, codec.encode(request, 2)), 0.0)
    codec.encode(response, 2)
    return response


def vote_row(response: Any) -> tuple[Error, bool]:
    row = response.topics[0].partitions[0]
    return row.error_code, row.vote_granted


def fetch_request(who: int, offset: int, epoch: int, last_epoch: int = 0, **more: Any) -> Any:
    part = m.FetchRequest_FetchPartition(
        0, epoch, offset, last_epoch, 0, 1 << 20, directory(who), more.pop("hw", 10**6)
    )
    topics = [m.FetchRequest_FetchTopic("", TOPIC_ID, [part])]
    state = m.FetchRequest_ReplicaState(who, -1)
    return m.FetchRequest(CLUSTER, -1, state, 500, 1, 1 << 20, topics=topics, session_epoch=-1, **more)


def fetch(raft: Raft, who: int, offset: int, epoch: int, last_epoch: int = 0, is_last: bool = True, **more: Any) -> Any:
    request = fetch_request(who, offset, epoch, last_epoch, **more)
    response = raft.fetch(request, more.get("now", 0.0), is_new=True, is_last=is_last)
    return None if response is None else response.responses[0].partitions[0]


def fetch_answer(epoch: int, leader: int, high_watermark: int = -1, records: bytes = b"", **more: Any) -> Any:
    named = m.FetchResponse_LeaderIdAndEpoch(leader, epoch)
    row = m.FetchResponse_PartitionData(0, 0, high_watermark, current_leader=named, records=bytearray(records), **more)
    return m.FetchResponse(responses=[m.FetchResponse_FetchableTopicResponse("", TOPIC_ID, [row])])


def begin(raft: Raft, leader: int, epoch: int, now: float = 0.0) -> Error:
    part = m.BeginQuorumEpochRequest_PartitionData(0, raft.mine[1], leader, epoch)
    places = [m.BeginQuorumEpochRequest_LeaderEndpoint(LISTENER, "host", leader)]
    topics = [m.BeginQuorumEpochRequest_TopicData(TOPIC, [part])]
    response = raft.begin_quorum_epoch(m.BeginQuorumEpochRequest(CLUSTER, raft.me, topics, places), now)
    return response.topics[0].partitions[0].error_code


def led(*numbers: int) -> Controller:
    """Return a leader that has committed something of its epoch."""
    one = Controller(1, voters(*numbers))
    if len(numbers) > 1:
        one.elect()
    one.sync()
    follow(one, *numbers)
    return one


def follow(one: Controller, *numbers: int) -> None:
    one.sync()
    for number in numbers:
        if number != 1:
            fetch(one.raft, number, one.log.end_offset, one.raft.epoch, one.raft.epoch)
