"""A client of the classic protocol, for tests of groups that change their protocol."""

from __future__ import annotations

from typing import Any

from moldau.machines.consumer.migration import read
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.machines.consumers import REBALANCE_MS, Coordinator

GUEST_SESSION_MS = 10_000


class Guest:
    """A client of the classic protocol that assigns as its leader if it is asked to.

    One that was thrown out and comes back before it has heard of it is taken in under its old id, as in Kafka. It still
    names what it had, and reads it until it has synced, but has `lost` it: others may own it by then.
    """

    def __init__(self, coordinator: Coordinator, instance_id: str | None = None, protocol: str = "range") -> None:
        self.coordinator, self.instance_id, self.protocol = coordinator, instance_id, protocol
        self.id, self.generation, self.owned, self.error = "", -1, frozenset[int](), 0
        self.leads: list[str] = []
        self.lost = False

    def join(self) -> Guest:
        self.lost = self.lost or not self.is_member()
        answer = self.ask_join()
        if answer.error_code == Error.MEMBER_ID_REQUIRED:
            self.id = answer.member_id
            answer = self.ask_join()
        self.error = answer.error_code
        if not self.error:
            self.id, self.generation = answer.member_id, answer.generation_id
            self.leads = [row.member_id for row in answer.members]
        return self

    def is_member(self) -> bool:
        group: Any = self.coordinator.machine.groups.get("g")
        return group is not None and self.id in group.members

    def ask_join(self) -> Any:
        owned = [m.ConsumerProtocolSubscription_TopicPartition("t", sorted(self.owned))] if self.owned else []
        subscription = codec.encode(m.ConsumerProtocolSubscription(["t"], None, owned, self.generation), 3)
        protocol = m.JoinGroupRequest_JoinGroupRequestProtocol(self.protocol, b"\0\3" + subscription)
        request = m.JoinGroupRequest(
            "g", GUEST_SESSION_MS, REBALANCE_MS, self.id, self.instance_id, "consumer", [protocol]
        )
        answer = self.coordinator.classic("join", request, 9)
        assert answer is not None, "the join waits"
        return answer

    def sync(self) -> Guest:
        shares = [[index for index in range(4) if index % len(self.leads) == n] for n in range(len(self.leads))]
        rows = [
            m.SyncGroupRequest_SyncGroupRequestAssignment(member, assignment(share))
            for member, share in zip(self.leads, shares, strict=True)
        ]
        request = m.SyncGroupRequest("g", self.generation, self.id, self.instance_id, "consumer", self.protocol, rows)
        answer = self.coordinator.classic("sync", request, 5)
        self.error = answer.error_code
        if not self.error:
            decoded = read(m.ConsumerProtocolAssignment, answer.assignment)
            self.owned = frozenset(index for row in decoded.assigned_partitions for index in row.partitions)
            self.lost = False
        return self

    def beat(self) -> Error:
        request = m.HeartbeatRequest("g", self.generation, self.id, self.instance_id)
        return Error(self.coordinator.classic("heartbeat", request, 4).error_code)

    def leave(self) -> Any:
        row = m.LeaveGroupRequest_MemberIdentity(self.id, self.instance_id)
        return self.coordinator.classic("leave", m.LeaveGroupRequest("g", "", [row]), 5)

    def go_on(self) -> None:
        """What a client does between polls."""
        if self.beat() == Error.REBALANCE_IN_PROGRESS:
            self.join().sync()


def assignment(indexes: list[int], user_data: bytes | None = None) -> bytes:
    rows = [m.ConsumerProtocolAssignment_TopicPartition("t", indexes)]
    return b"\0\3" + codec.encode(m.ConsumerProtocolAssignment(rows, user_data), 3)
