"""Rebalances of a classic group: who is waited for, how long, and what ends it.

A group that comes from Empty gathers members for `group.initial.rebalance.delay.ms`, again as long as more arrive, up
to the rebalance timeout. Any other rebalance ends when all members have joined again, or at the rebalance timeout
without those that have not, static members excepted: these are only removed by their session timeout (KIP-345).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.classic.group import ClassicGroup, Member, State
from moldau.machines.effects import Effects, Promise
from moldau.machines.timers import Action
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

# A member that has not got its first answer cannot send heartbeats; if its client is gone, this is when it goes.
NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000

Answers = list[tuple[Promise, Any]]


def rebalance_or_complete(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    """Begin a rebalance because the members have changed, or see whether the one under way can end."""
    if group.state is not State.PREPARING:
        return prepare(groups, group, now_ms)
    return complete_if_all_joined(groups, group, now_ms)


def prepare(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    """Ask all members to join again: their heartbeats will tell them."""
    effects = Effects()
    if group.state is State.COMPLETING:
        effects.answers += fail_syncs(groups, group, Error.REBALANCE_IN_PROGRESS, now_ms)
    groups.timers.cancel(("sync", group.id))
    group.enter(State.PREPARING, now_ms)
    if group.initial:
        delay: int = groups.setting("group.initial.rebalance.delay.ms")
        remaining = max(group.rebalance_timeout_ms() - delay, 0)
        gather(groups, group, delay, remaining, now_ms)
        return effects
    return merge(effects, complete_or_schedule(groups, group, now_ms))


def merge(first: Effects, then: Effects) -> Effects:
    first.undo = first.undo or then.undo
    return first.add(then.changes, then.answers)


def gather(groups: Groups, group: ClassicGroup, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
    """Wait for more members of a group that was empty."""
    action = partial(end_gathering, groups, group.id, delay_ms, remaining_ms)
    groups.timers.set(("join", group.id), now_ms + delay_ms, action)


def end_gathering(groups: Groups, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> Effects:
    """End the delay, or wait once more if somebody joined meanwhile and there is time left."""
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return Effects()
    if not group.joined_late or remaining_ms == 0:
        return complete(groups, group, now_ms)
    group.joined_late = False
    next_delay = min(groups.setting("group.initial.rebalance.delay.ms"), remaining_ms)
    gather(groups, group, next_delay, max(remaining_ms - delay_ms, 0), now_ms)
    return Effects()


def complete_if_all_joined(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    if group.state is State.PREPARING and not group.initial and (group.all_joined() or not group.members):
        return complete(groups, group, now_ms)
    return Effects()


def complete_or_schedule(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    if group.all_joined() or not group.members:
        return complete(groups, group, now_ms)
    schedule_completion(groups, group, now_ms)
    return Effects()


def schedule_completion(groups: Groups, group: ClassicGroup, now_ms: int) -> None:
    action = partial(join_timed_out, groups, group.id)
    groups.timers.set(("join", group.id), now_ms + group.rebalance_timeout_ms(), action)


def join_timed_out(groups: Groups, group_id: str, now_ms: int) -> Effects:
    group = groups.groups.get(group_id)
    if isinstance(group, ClassicGroup) and group.state is State.PREPARING:
        return complete(groups, group, now_ms)
    return Effects()


def complete(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    """End the rebalance: those who joined are the members of the next generation."""
    groups.timers.cancel(("join", group.id))
    for member in [x for x in group.members.values() if x.joining is None and x.instance_id is None]:
        remove(groups, group, member.id)
    if not elect_leader(group) and group.members:
        # Only static members are left, and none has joined: their session timeouts will settle it.
        schedule_completion(groups, group, now_ms)
        return Effects()
    return next_generation(groups, group, now_ms)


def elect_leader(group: ClassicGroup) -> bool:
    """Keep a leader that has joined, or take another member that has; False if none has."""
    leader = group.members.get(group.leader or "")
    if leader is None or leader.joining is None:
        joined = next((member.id for member in group.members.values() if member.joining is not None), None)
        if joined is None:
            return False
        group.leader = joined
    return True


def next_generation(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    """Begin a generation, of nobody or of those who joined, who are told."""
    group.generation += 1
    group.unsynced.clear()
    if not group.members:
        group.protocol = group.leader = None
        group.enter(State.EMPTY, now_ms)
        return Effects([group.record({})])
    group.enter(State.COMPLETING, now_ms)
    group.protocol = group.select_protocol()
    effects = Effects()
    for member in group.members.values():
        if member.joining is not None:
            effects.answers.append((member.joining, join_answer(group, member)))
            member.joining = None
        touch(groups, group, member, now_ms)
        member.is_new = False
        group.unsynced.add(member.id)
    schedule_sync(groups, group, now_ms)
    return effects


def join_answer(
    group: ClassicGroup, member: Member, *, skip_assignment: bool = False, leader: str | None = None
) -> Any:
    """Return the answer to a join: the leader learns of all members."""
    return m.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=(group.leader if leader is None else leader) or "",
        skip_assignment=skip_assignment,
        member_id=member.id,
        members=member_rows(group) if leader is None and group.leader == member.id else [],
    )


def member_rows(group: ClassicGroup) -> list[Any]:
    return [
        m.JoinGroupResponse_JoinGroupResponseMember(x.id, x.instance_id, x.metadata(group.protocol))
        for x in group.members.values()
    ]


def schedule_sync(groups: Groups, group: ClassicGroup, now_ms: int) -> None:
    """Start the timer that removes members which do not sync within the rebalance timeout."""
    action = partial(sync_timed_out, groups, group.id, group.generation)
    groups.timers.set(("sync", group.id), now_ms + group.rebalance_timeout_ms(), action)


def sync_timed_out(groups: Groups, group_id: str, generation: int, now_ms: int) -> Effects:
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup) or group.generation != generation or not group.unsynced:
        return Effects()
    if group.state not in (State.COMPLETING, State.STABLE):
        return Effects()
    for member_id in list(group.unsynced):
        remove(groups, group, member_id)
    return prepare(groups, group, now_ms)


def fail_syncs(groups: Groups, group: ClassicGroup, error: Error, now_ms: int) -> Answers:
    """Tell those who wait for an assignment of this generation that it will not come."""
    answers: Answers = []
    for member in group.members.values():
        member.assignment = b""
        if member.syncing is not None:
            answers.append((member.syncing, member.syncing.refuse(error)))
            member.syncing = None
            touch(groups, group, member, now_ms)
    return answers


# Members come and go.


def add(groups: Groups, group: ClassicGroup, member: Member, protocol_type: str, now_ms: int) -> None:
    """Let a new member in; it waits in `joining`."""
    if not group.members:
        group.protocol_type = protocol_type
    if group.initial:
        group.joined_late = True
    group.members[member.id] = member
    if member.instance_id is not None:
        group.instances[member.instance_id] = member.id
    if group.leader is None:
        group.leader = member.id
    group.pending.discard(member.id)
    member.is_new = True
    touch(groups, group, member, now_ms, NEW_MEMBER_TIMEOUT_MS)


def touch(groups: Groups, group: ClassicGroup, member: Member, now_ms: int, timeout_ms: int | None = None) -> None:
    """Note a sign of life."""
    name = "member", group.id, member.id
    deadline = now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms)
    groups.timers.renew(name, deadline, timeout_of(groups, group.id, member.id))


def timeout_of(groups: Groups, group_id: str, member_id: str) -> Action:
    return partial(member_timed_out, groups, group_id, member_id)


def remove(groups: Groups, group: ClassicGroup, member_id: str) -> Member | None:
    """Take a member out, whether it has joined or only has an id."""
    groups.timers.cancel(("member", group.id, member_id))
    group.pending.discard(member_id)
    group.unsynced.discard(member_id)
    member = group.members.pop(member_id, None)
    if member is not None and member.instance_id is not None and group.instances.get(member.instance_id) == member_id:
        del group.instances[member.instance_id]
    if group.leader == member_id:
        group.leader = next(iter(group.members), None)
    return member


def member_timed_out(groups: Groups, group_id: str, member_id: str, now_ms: int) -> Effects:
    """Remove a member that was silent for too long, unless it waits for an answer of ours."""
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        return Effects()
    member = group.members.get(member_id)
    if member is not None and not member.is_new and (member.joining or member.syncing):
        return Effects()
    return depart(groups, group, [member_id], now_ms)


def depart(groups: Groups, group: ClassicGroup, member_ids: list[str], now_ms: int) -> Effects:
    """Remove members that leave or are given up; the others share what they had."""
    effects = Effects()
    were_members = False
    for member_id in member_ids:
        member = remove(groups, group, member_id)
        if member is not None:
            were_members = True
            effects.answers += refuse_waiting(member, Error.UNKNOWN_MEMBER_ID)
    if group.state is State.PREPARING:
        return merge(effects, complete_if_all_joined(groups, group, now_ms))
    if group.state is not State.EMPTY and were_members:
        return merge(effects, prepare(groups, group, now_ms))
    forget_if_nothing(groups, group)
    return effects


def refuse_waiting(member: Member, error: Error) -> Answers:
    """Refuse the requests with which a former member waits."""
    waiting = [promise for promise in (member.joining, member.syncing) if promise is not None]
    answers = [(promise, promise.refuse(error)) for promise in waiting]
    if member.joining is not None:
        answers[0][1].member_id = member.id
    member.joining = member.syncing = None
    return answers


def forget_if_nothing(groups: Groups, group: ClassicGroup) -> None:
    """Forget a group of which nothing was ever written when its last candidate has gone."""
    unwritten = group.state is State.EMPTY and group.generation == 0 and group.protocol_type is None
    if unwritten and not group.pending and not groups.offsets.knows(group.id):
        groups.forget(group.id)
