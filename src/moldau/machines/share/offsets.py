"""Commands on what a share group has at the share coordinator (KIP-932): set it up, reset it, delete it.

The share coordinator is another machine. So each change has two halves: a command says what is about to happen, and
gives the request for it; when the request was answered a second command says how it went.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.machines.consumer.assignors import Partitions
from moldau.machines.effects import Change
from moldau.machines.replaying import existing
from moldau.machines.share.group import ShareGroup, existing_or_new
from moldau.machines.share.topics import (
    Known,
    Topics,
    deletable,
    deletion,
    difference,
    initialization,
    states_change,
    union,
    unset,
    with_names,
)
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

NO_OFFSETS = "There is no offset information to delete."


class Step(NamedTuple):
    """The first half of a change: what to write, and then to ask the share coordinator, if anything."""

    changes: list[Change]
    request: Any = None


def begin_set_up(groups: Groups, group_id: str, wanted: Topics) -> Any:
    """Return the request for those of the partitions that still have no state, and note that it is under way; or None.

    Several heartbeats may have asked for the same partitions before the first of them was carried out. Setting one up
    a second time would take away what members have acquired of it since.
    """
    group = existing(groups, group_id, ShareGroup)
    if group is None:
        return None
    todo = difference(difference(wanted, group.known_states().initialized), group.setting_up)
    group.setting_up = union(group.setting_up, todo)
    return initialization(group_id, group.epoch, unset(todo)) if todo else None


def initialized(groups: Groups, group_id: str, partitions: Partitions) -> list[Change]:
    """Note that the share coordinator has the state of these partitions; the next heartbeat assigns them."""
    group = existing(groups, group_id, ShareGroup)
    if group is None:
        return []
    topics = with_names(partitions, groups.cluster())
    group.setting_up = difference(group.setting_up, topics)
    return [states_change(group_id, group.known_states().finish(topics))]


def uninitialized(groups: Groups, group_id: str, partitions: Partitions) -> list[Change]:
    """Note that it has not; the next heartbeat tries again."""
    group = existing(groups, group_id, ShareGroup)
    if group is None:
        return []
    topics = with_names(partitions, groups.cluster())
    group.setting_up = difference(group.setting_up, topics)
    if not group.known_states().initializing:
        return []
    return [states_change(group_id, group.known_states().give_up(topics))]


def alter(groups: Groups, group_id: str, offsets: Mapping[bytes, Mapping[int, int]]) -> Step:
    """Let the group begin at these offsets. It must be empty, and need not be there; raises Refused."""
    group = existing_or_new(groups, group_id)
    group.check_delete()
    wanted = with_names({topic: frozenset(starts) for topic, starts in offsets.items() if starts}, groups.cluster())
    if not wanted:
        return Step([])
    change = states_change(group_id, group.known_states().begin(wanted))
    return Step([change], initialization(group_id, group.epoch, offsets))


def delete_offsets(groups: Groups, group_id: str, names: Iterable[str]) -> tuple[Step, dict[str, str]]:
    """Let go of whole topics; and a sentence for each topic of which there is nothing. Raises Refused.

    As in Kafka nothing is said where the group never had anything.
    """
    group: ShareGroup = groups.get(group_id, ShareGroup.kind)
    group.check_delete()
    if group.states is None:
        return Step([]), {}
    nothing: dict[str, str] = {}
    topics: dict[bytes, Known] = {}
    for name in names:
        stored = deletable_topic(groups, group, name)
        topics |= stored
        if not stored:
            known = name in groups.cluster().topics
            nothing[name] = NO_OFFSETS if known else Error.UNKNOWN_TOPIC_OR_PARTITION.message
    change = states_change(group_id, group.states.delete(topics))
    return Step([change], deletion(group_id, topics) if topics else None), nothing


def deletable_topic(groups: Groups, group: ShareGroup, name: str) -> Topics:
    """Return a topic of which there is a state, or of which one could not be deleted before."""
    topic, states = groups.cluster().topics.get(name), group.known_states()
    if topic is None:
        return {}
    if topic.id in states.initialized:
        return {topic.id: states.initialized[topic.id]}
    return {topic.id: Known(name, frozenset(topic.partitions))} if topic.id in states.deleting else {}


def offsets_deleted(groups: Groups, group_id: str, topics: Iterable[bytes]) -> list[Change]:
    """Note that the share coordinator has deleted what it had of these topics."""
    group = existing(groups, group_id, ShareGroup)
    if group is None or group.states is None:
        return []
    return [states_change(group_id, group.states.without(set(topics)))]


def delete_group(groups: Groups, group_id: str) -> Step:
    """Let go of everything, before the group itself is deleted; raises Refused."""
    group = existing(groups, group_id, ShareGroup)
    if group is None:
        return Step([])
    group.check_delete()
    if group.states is None:
        return Step([])
    topics = deletable(group.states, groups.cluster())
    return Step([states_change(group_id, group.states.delete(topics))], deletion(group_id, topics) if topics else None)


def of_deleted_topic(groups: Groups, topic: bytes) -> Iterator[Change]:
    """Forget the states of a topic that is gone; the share coordinator hears of it by itself."""
    for group in groups.groups.values():
        if isinstance(group, ShareGroup) and group.states is not None and group.states.knows(topic):
            yield states_change(group.id, group.states.without({topic}))
