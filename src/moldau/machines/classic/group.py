"""A classic group: members that elect a leader, which assigns partitions for all of them (KIP-345, KIP-394).

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
               ^  members join      the leader assigns      |
               +--------------------------------------------+

The group is written to the log when its assignment is made, when it empties, and when a static member comes back under
a new id. Between these moments generation, members and state are soft: after a crash the group is at its last record,
and the members, whose generation is then unknown, join again. The rebalances are in rebalance.py, the requests
in requests.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from moldau.machines.effects import Change, Promise
from moldau.machines.group import CheckPartition, Client, Expiry, refuse
from moldau.wire import codec
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

CONSUMER = "consumer"  # the protocol type of consumers, whose metadata is a subscription
GROUP_VALUE_VERSION = 3

Protocols = tuple[tuple[str, bytes], ...]  # in the member's order of preference


class State(StrEnum):
    """As the Describe APIs say it."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True, eq=False)
class Member:
    """A member; `joining` and `syncing` are its requests that wait for an answer."""

    id: str
    instance_id: str | None
    client: Client
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    joining: Promise | None = None
    syncing: Promise | None = None
    names: tuple[str, ...] = field(init=False)  # of its protocols

    def __post_init__(self) -> None:
        self.speak(self.protocols)

    def speak(self, protocols: Protocols) -> None:
        self.protocols, self.names = protocols, tuple(name for name, _ in protocols)

    def metadata(self, protocol: str | None) -> bytes:
        """Return what it said about itself under a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        """Its favourite among protocols that all members know."""
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True, eq=False)
class ClassicGroup:
    """State of a group. `pending` were given an id and have not joined with it, `unsynced` have not synced yet."""

    id: str
    kind: str = field(default="classic", init=False)
    state: State = State.EMPTY
    initial: bool = False  # the rebalance under way is the first of an empty group
    since_ms: int = -1  # when it came into its state
    protocol_type: str | None = None
    protocol: str | None = None
    generation: int = 0
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    instances: dict[str, str] = field(default_factory=dict[str, str])
    pending: set[str] = field(default_factory=set[str])
    unsynced: set[str] = field(default_factory=set[str])
    joined_late: bool = False  # somebody joined while the initial delay ran

    # What every kind of group answers.

    def state_name(self) -> str:
        return self.state.value

    def protocol_name(self) -> str:
        return self.protocol_type or ""

    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> CheckPartition | None:
        """Members commit in their generation; without one an empty group takes offsets from anybody."""
        if epoch < 0 and self.state is State.EMPTY:
            return None
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            self.check_generation(epoch)
        elif not transactional:
            refuse(Error.UNKNOWN_MEMBER_ID, f"Group '{self.id}' has members, and only they commit offsets.")
        if not transactional and self.state is State.COMPLETING:
            refuse(Error.REBALANCE_IN_PROGRESS, f"Group '{self.id}' is being rebalanced.")
        return None

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Anybody may."""

    def check_offset_delete(self) -> None:
        """Members of consumers tell their topics, whose offsets stay; of other members nothing is known."""
        if self.state is not State.EMPTY and self.protocol_type != CONSUMER:
            refuse(Error.NON_EMPTY_GROUP, f"Group '{self.id}' has members.")

    def check_delete(self) -> None:
        if self.state is not State.EMPTY:
            refuse(Error.NON_EMPTY_GROUP, f"Group '{self.id}' has members.")

    def subscribes(self, topic: str) -> bool:
        topics = self.subscribed_topics()
        return self.consumes() if topics is None else topic in topics

    def offset_expiry(self) -> Expiry | None:
        if self.protocol_type is None:
            return Expiry()
        if self.state is State.EMPTY:
            return Expiry(None if self.since_ms < 0 else self.since_ms)
        if self.state is State.STABLE and self.consumes() and self.subscribed_topics() is not None:
            return Expiry()
        return None

    def tombstones(self) -> list[Change]:
        return [Change(m.GroupMetadataKey(self.id), None)]

    # Members.

    def consumes(self) -> bool:
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """Topics that members named in their subscriptions; None where nothing can be known."""
        if not self.consumes():
            return None
        if self.members and self.protocol is None:
            return None
        try:
            return {topic for member in self.members.values() for topic in topics_of(member.metadata(self.protocol))}
        except WireError:
            return None

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises Refused unless the member is one, and the one that holds its instance id."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                refuse(Error.UNKNOWN_MEMBER_ID, f"No member of '{self.id}' has the instance id '{instance_id}'.")
            if holder != member_id:
                refuse(Error.FENCED_INSTANCE_ID, f"Another member has taken over instance id '{instance_id}'.")
        if member_id not in self.members:
            refuse(Error.UNKNOWN_MEMBER_ID, f"'{member_id}' is no member of '{self.id}'.")

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            refuse(Error.ILLEGAL_GENERATION, f"Group '{self.id}' is at generation {self.generation}.")

    def supports(self, member_id: str, protocol_type: str, names: tuple[str, ...]) -> bool:
        """Return whether a member with these protocols could join. Where all have left, anything goes."""
        if not self.members:
            return bool(protocol_type and names)
        if protocol_type != self.protocol_type:
            return False
        known = self.members.get(member_id)
        # There is a protocol that all members know, so one that says what it said before need not be compared.
        return (known is not None and known.names == names) or not self.candidates().isdisjoint(names)

    def candidates(self) -> set[str]:
        """Protocols that all members know."""
        known = [set(names) for names in {member.names for member in self.members.values()}]  # most often one
        return known[0].intersection(*known) if known else set()

    def select_protocol(self) -> str:
        """Return the candidate with the most votes."""
        candidates = self.candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=votes.__getitem__)

    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def awaiting_join(self) -> int:
        return sum(member.joining is not None for member in self.members.values())

    def all_joined(self) -> bool:
        # From the last one on: members join in about the same order each time, so who is missing stands at the end.
        return not self.pending and all(member.joining is not None for member in reversed(self.members.values()))

    def enter(self, state: State, now_ms: int) -> None:
        self.initial = state is State.PREPARING and self.state is State.EMPTY
        self.state, self.since_ms = state, now_ms

    # Records.

    def record(self, assignments: Mapping[str, bytes]) -> Change:
        """Return the group with these assignments."""
        members = [
            m.GroupMetadataValue_MemberMetadata(
                member_id=member.id,
                group_instance_id=member.instance_id,
                client_id=member.client.id,
                client_host=member.client.host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(self.protocol),
                assignment=assignments.get(member.id, b""),
            )
            for member in self.members.values()
        ]
        value = m.GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.since_ms,
            members=members,
        )
        return Change(m.GroupMetadataKey(self.id), value, GROUP_VALUE_VERSION)

    def assignments(self) -> dict[str, bytes]:
        return {member.id: member.assignment for member in self.members.values()}

    def restore(self, value: Any) -> None:
        """Become what a record says, keeping what is known of the members beyond it."""
        self.generation, self.protocol, self.leader = value.generation, value.protocol, value.leader
        self.protocol_type = value.protocol_type or None
        self.since_ms = value.current_state_timestamp
        self.members = {row.member_id: self.restore_member(row) for row in value.members}
        self.instances = {x.instance_id: x.id for x in self.members.values() if x.instance_id is not None}
        self.state, self.initial = State.STABLE if self.members else State.EMPTY, False

    def restore_member(self, row: Any) -> Member:
        member = self.members.get(row.member_id)
        if member is None:
            rebalance_timeout = row.session_timeout if row.rebalance_timeout == -1 else row.rebalance_timeout
            client = Client(row.client_id, row.client_host)
            protocols = ((self.protocol or "", row.subscription),)
            member = Member(
                row.member_id, row.group_instance_id, client, rebalance_timeout, row.session_timeout, protocols
            )
        member.assignment = row.assignment
        return member


def topics_of(subscription: bytes) -> Sequence[str]:
    """Return the topics of a consumer's subscription, whose version stands before it; raises WireError."""
    version = min(int.from_bytes(subscription[:2], signed=True), m.ConsumerProtocolSubscription.SCHEMA.versions[1])
    if len(subscription) < 2 or version < 0:
        raise WireError("a subscription without a version")
    return codec.decode_from(m.ConsumerProtocolSubscription, version, subscription, 2)[0].topics


def replay_group(groups: Groups, key: Any, value: Any) -> None:
    """A group as it was written. A memberless record says nothing to a group whose members are joining anew."""
    group = groups.groups.get(key.group)
    if value is None:
        if isinstance(group, ClassicGroup):
            groups.forget(key.group)
        return
    if not isinstance(group, ClassicGroup):
        group = groups.groups[key.group] = ClassicGroup(key.group)
    if value.members or group.state in (State.EMPTY, State.STABLE):
        group.restore(value)


REPLAY = {"GroupMetadataKey": replay_group}
