"""Groups of all kinds: list and describe them, read and change what they have committed, delete them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from moldau.admin import TopicPartition, by_topic, offsets
from moldau.client import Client, ClientError, Error, check, group
from moldau.client import messages as m
from moldau.wire import codec
from moldau.wire.errors import WireError

CONSUMER = "consumer"  # the protocol type of consumers, whichever protocol they speak
SHARE = "share"
NAMES_UNTIL = 9  # the last version of OffsetFetch and OffsetCommit that names topics rather than their ids
NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its coordinator lists it. Old brokers tell no state and no type."""

    id: str
    type: str
    protocol: str
    state: str
    coordinator: int


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member and what it has; `epoch` is -1 in classic groups. A streams member has tasks instead of partitions."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    epoch: int = -1
    rack: str | None = None
    subscribed: tuple[str, ...] = ()
    is_classic: bool = False


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group with its members; epochs are -1 in classic groups."""

    id: str
    type: str
    state: str
    protocol: str
    assignor: str
    members: tuple[GroupMember, ...]
    coordinator: int = -1
    coordinator_address: str = ""
    epoch: int = -1
    target_epoch: int = -1

    @property
    def is_empty(self) -> bool:
        return self.state in ("Empty", "Dead")


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group is in a partition: `offset` is None where nothing is committed, `lag` where that or the end of
    the partition is unknown. `member` reads it, if somebody does.
    """

    topic: str
    partition: int
    offset: int | None
    start: int | None
    end: int | None
    member: GroupMember | None
    leader_epoch: int = -1

    @property
    def lag(self) -> int | None:
        return None if self.offset is None or self.end is None else max(0, self.end - self.offset)


@dataclass(frozen=True, slots=True)
class SubTopology:
    """A part of a streams group's topology: topics that it reads, its own topics between parts, and changelogs."""

    id: str
    sources: tuple[str, ...]
    repartition_sources: tuple[str, ...]
    repartition_sinks: tuple[str, ...]
    changelogs: tuple[str, ...]


def listed(
    client: Client, states: Iterable[str] = (), types: Iterable[str] = (), *, partial: bool = False
) -> list[ListedGroup]:
    """List all groups by name, from all brokers; with `partial`, without those of brokers that do not answer."""
    request = m.ListGroupsRequest(list(states), list(types))
    found = [
        ListedGroup(row.group_id, row.group_type, row.protocol_type, row.group_state, broker)
        for broker, answer in client.send_to_each(request, partial=partial).items()
        for row in check(answer).groups
    ]
    return sorted(found, key=lambda one: one.id)


def described(client: Client, name: str, kind: str = "") -> DescribedGroup:
    """Describe a group, or raise ClientError with GROUP_ID_NOT_FOUND. `kind` is its listed type, if that is known."""
    kinds = {CONSUMER: _consumer, SHARE: _share, "streams": _streams}
    known = kinds.get((kind or _kind_of(client, name)).lower(), _classic)(client, name)
    if known is None:
        raise ClientError(Error.GROUP_ID_NOT_FOUND, f"There is no group {name}.", retriable=False)
    return known


def raw_members(client: Client, name: str) -> list[tuple[bytes, bytes]]:
    """Return metadata and assignment of the members of a classic group, of any protocol; nobody if there is none.

    While a group is about to agree on a new round, the brokers tell neither.
    """
    row = client.send(m.DescribeGroupsRequest([name]), group(name)).groups[0]
    return [(bytes(one.member_metadata), bytes(one.member_assignment)) for one in row.members]


def committed(
    client: Client, name: str, *, stable: bool = False, timeout_s: float | None = None
) -> dict[TopicPartition, Committed]:
    """Return all that a group has committed."""
    row = m.OffsetFetchRequest_OffsetFetchRequestGroup(name, topics=None)
    request = m.OffsetFetchRequest(groups=[row], require_stable=stable)
    answer = check(client.send(request, group(name), at_most=NAMES_UNTIL, timeout_s=timeout_s))
    return {
        (topic.name, part.partition_index): Committed(
            part.committed_offset, part.committed_leader_epoch, part.metadata or ""
        )
        for topic in answer.groups[0].topics
        for part in topic.partitions
        if part.committed_offset != NO_OFFSET
    }


def commits(client: Client, of: Iterable[ListedGroup], most: int) -> dict[str, dict[TopicPartition, Committed]]:
    """Return what at most so many groups have committed, without share groups and groups that have gone."""
    found: dict[str, dict[TopicPartition, Committed]] = {}
    for name in islice((one.id for one in of if one.type.lower() != SHARE), most):
        with suppress(ClientError):
            found[name] = committed(client, name)
    return found


def lags(client: Client, of: DescribedGroup) -> list[Lag]:
    """List each partition that the group has committed or a member has, by topic and partition."""
    done = committed(client, of.id)
    held = {place: member for member in of.members for place in member.partitions}
    places = sorted({*done, *held})
    first = offsets.at(client, dict.fromkeys(places, offsets.EARLIEST))
    last = offsets.at(client, dict.fromkeys(places, offsets.LATEST))
    return [
        Lag(
            *place,
            done[place].offset if place in done else None,
            None if first[place].error else first[place].offset,
            None if last[place].error else last[place].offset,
            held.get(place),
            done[place].leader_epoch if place in done else -1,
        )
        for place in places
    ]


def commit(
    client: Client,
    name: str,
    wanted: Mapping[TopicPartition, int],
    *,
    metadata: Mapping[TopicPartition, str] | None = None,
    timeout_s: float | None = None,
) -> None:
    """Set what a group without members has committed; ClientError where a partition is refused."""
    text, row = metadata or {}, m.OffsetCommitRequest_OffsetCommitRequestPartition
    topics = [
        m.OffsetCommitRequest_OffsetCommitRequestTopic(
            name=topic, partitions=[row(part, wanted[topic, part], -1, text.get((topic, part), "")) for part in parts]
        )
        for topic, parts in by_topic(wanted).items()
    ]
    request = m.OffsetCommitRequest(group_id=name, topics=topics)
    check(client.send(request, group(name), at_most=NAMES_UNTIL, timeout_s=timeout_s))


def delete(client: Client, names: Iterable[str]) -> dict[str, Error]:
    """Delete groups without members; return the outcome of each."""
    found: dict[str, Error] = {}
    for name in names:
        answer = client.send(m.DeleteGroupsRequest([name]), group(name))
        found[name] = Error(answer.results[0].error_code)
    return found


def delete_offsets(client: Client, name: str, places: Iterable[TopicPartition]) -> dict[TopicPartition, Error]:
    """Forget what a group has committed in these partitions; return the outcome of each."""
    topics = [
        m.OffsetDeleteRequest_OffsetDeleteRequestTopic(
            topic, [m.OffsetDeleteRequest_OffsetDeleteRequestPartition(part) for part in parts]
        )
        for topic, parts in by_topic(places).items()
    ]
    answer = client.send(m.OffsetDeleteRequest(name, topics), group(name))
    if answer.error_code:
        check(answer)
    return {
        (topic.name, part.partition_index): Error(part.error_code)
        for topic in answer.topics
        for part in topic.partitions
    }


def _kind_of(client: Client, name: str) -> str:
    """Return the listed type; a broker that lists none has classic groups alone."""
    return next((row.type for row in listed(client) if row.id == name), "")


def _classic(client: Client, name: str) -> DescribedGroup | None:
    answer = client.send(m.DescribeGroupsRequest([name]), group(name))
    row = answer.groups[0]
    if row.error_code == Error.GROUP_ID_NOT_FOUND or row.group_state == "Dead":
        return None
    check(answer)
    members = (_classic_member(one, row.protocol_type) for one in row.members)
    return _group(client, row, "Classic", row.protocol_type, row.protocol_data, members)


def _classic_member(row: Any, protocol: str) -> GroupMember:
    of_consumers = protocol == CONSUMER
    return GroupMember(
        row.member_id,
        row.group_instance_id,
        row.client_id,
        row.client_host,
        _read_assignment(bytes(row.member_assignment)) if of_consumers else (),
        subscribed=_read_subscription(bytes(row.member_metadata)) if of_consumers else (),
        is_classic=True,
    )


def _read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """Return what a member of a classic group was assigned; nothing where the bytes make no sense."""
    found = _read(m.ConsumerProtocolAssignment, data)
    rows = found.assigned_partitions if found else ()
    return tuple(sorted((row.topic, part) for row in rows for part in row.partitions))


def _read_subscription(data: bytes) -> tuple[str, ...]:
    found = _read(m.ConsumerProtocolSubscription, data)
    return tuple(sorted(found.topics)) if found else ()


def _read(kind: type[Any], data: bytes) -> Any:
    if len(data) < 2:
        return None
    version = max(0, min(int.from_bytes(data[:2], signed=True), kind.SCHEMA.versions[1]))
    try:
        return codec.decode_from(kind, version, data, 2)[0]
    except WireError:
        return None


def _consumer(client: Client, name: str) -> DescribedGroup | None:
    row = _describe(client, m.ConsumerGroupDescribeRequest([name]), name)
    if row is None:
        return _classic(client, name)
    members = (
        _member(one, _places(one.assignment), target=_places(one.target_assignment), is_classic=one.member_type == 0)
        for one in row.members
    )
    return _group(client, row, "Consumer", CONSUMER, row.assignor_name, members)


def _share(client: Client, name: str) -> DescribedGroup | None:
    row = _describe(client, m.ShareGroupDescribeRequest([name]), name)
    if row is None:
        return None
    members = (_member(one, _places(one.assignment)) for one in row.members)
    return _group(client, row, "Share", SHARE, row.assignor_name, members)


def _streams(client: Client, name: str) -> DescribedGroup | None:
    row = _describe(client, m.StreamsGroupDescribeRequest([name]), name)
    if row is None:
        return None
    sources = {
        one.subtopology_id: (*one.source_topics, *(info.name for info in one.repartition_source_topics))
        for one in (row.topology.subtopologies or () if row.topology else ())
    }

    def places(tasks: Iterable[Any]) -> Iterator[TopicPartition]:
        for task in tasks:
            yield from ((topic, part) for topic in sources.get(task.subtopology_id, ()) for part in task.partitions)

    members = (
        _member(one, tuple(sorted(places(one.assignment.active_tasks))), is_classic=one.is_classic)
        for one in row.members
    )
    return _group(client, row, "Streams", "streams", "", members)


def topology(client: Client, name: str) -> list[SubTopology]:
    """Return the topology that a streams group has reported; nothing where there is no such group."""
    row = _describe(client, m.StreamsGroupDescribeRequest([name]), name)
    found = row.topology.subtopologies if row is not None and row.topology else None
    return [
        SubTopology(
            one.subtopology_id,
            tuple(one.source_topics),
            tuple(info.name for info in one.repartition_source_topics),
            tuple(one.repartition_sink_topics),
            tuple(info.name for info in one.state_changelog_topics),
        )
        for one in found or ()
    ]


def _describe(client: Client, request: Any, name: str) -> Any | None:
    answer = client.send(request, group(name))
    if answer.groups[0].error_code == Error.GROUP_ID_NOT_FOUND:
        return None
    return check(answer).groups[0]


def _group(
    client: Client, row: Any, kind: str, protocol: str, assignor: str, members: Iterable[GroupMember]
) -> DescribedGroup:
    """Make a group of a row; rows of classic groups have no epochs."""
    epochs = getattr(row, "group_epoch", -1), getattr(row, "assignment_epoch", -1)
    coordinator = _coordinator(client, row.group_id)
    return DescribedGroup(
        row.group_id, kind, row.group_state, protocol, assignor, tuple(members), *coordinator, *epochs
    )


def _member(row: Any, partitions: tuple[TopicPartition, ...], **more: Any) -> GroupMember:
    """Make a member of a row of the new protocols; members of share groups have no instance ids."""
    subscribed = tuple(getattr(row, "subscribed_topic_names", ()))
    epoch, rack, instance = row.member_epoch, row.rack_id, getattr(row, "instance_id", None)
    given = {"epoch": epoch, "rack": rack, "subscribed": subscribed, **more}
    return GroupMember(row.member_id, instance, row.client_id, row.client_host, partitions, **given)


def _places(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(sorted((row.topic_name, part) for row in assignment.topic_partitions for part in row.partitions))


def _coordinator(client: Client, name: str) -> tuple[int, str]:
    address = client.locate(group(name), client.deadline())
    brokers = (client.cluster if client.cluster.brokers else client.refresh()).brokers
    return next((row.id for row in brokers.values() if row.address == address), -1), str(address)
