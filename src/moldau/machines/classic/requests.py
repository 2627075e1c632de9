"""What members of a classic group ask: join, sync, heartbeat, leave. Each returns the effects with its answer."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from moldau.machines.classic import rebalance
from moldau.machines.classic.group import ClassicGroup, Member, Protocols, State
from moldau.machines.effects import Effects, Promise
from moldau.machines.group import NO_MEMBER, Client, member_id, refuse
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

MEMBER_ID_REQUIRED = 4  # JoinGroup versions from which a new member first gets an id (KIP-394)
SKIP_ASSIGNMENT = 9  # and from which a leader is told to keep the assignment (KIP-814)


def loaded(groups: Groups, group: ClassicGroup, now_ms: int) -> Effects:
    """Give the members of a loaded group a session's time to be heard of."""
    for member in group.members.values():
        rebalance.touch(groups, group, member, now_ms)
    if len(group.members) > groups.setting("group.max.size"):
        return rebalance.prepare(groups, group, now_ms)
    return Effects()


# Join.


def join(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Take part, for the first time or again; the answer comes when the rebalance ends."""
    group = groups.groups.get(request.group_id)
    effects = Effects()
    if group is not None and not isinstance(group, ClassicGroup):
        # An empty group of another kind makes room.
        effects.changes += group.tombstones()
        group = None
    if group is None:
        if request.member_id != NO_MEMBER:
            return effects_of(promise, promise.refuse(Error.UNKNOWN_MEMBER_ID))
        if not groups.has_room_for(request.group_id):
            return not_joined(promise, Error.GROUP_MAX_SIZE_REACHED, NO_MEMBER)
        group = ClassicGroup(request.group_id, since_ms=now_ms)
        if effects.changes:
            effects.changes.append(group.record({}))
        groups.groups[group.id] = group
    try:
        outcome = join_group(groups, group, promise, request, client, version, now_ms)
    except Refused as refused:
        outcome = effects_of(promise, promise.refuse(refused.error))
    rebalance.forget_if_nothing(groups, group)
    return rebalance.merge(effects, outcome)


def effects_of(promise: Promise, answer: Any) -> Effects:
    return Effects(answers=[(promise, answer)])


def not_joined(promise: Promise, error: Error, member: str) -> Effects:
    """Return a refusal that tells a member id other than that of the request."""
    answer = promise.refuse(error)
    answer.member_id = member
    return effects_of(promise, answer)


def turn_away(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Refuse a join to a group of a kind that takes no members of the classic protocol."""
    return not_joined(promise, Error.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER)


def join_group(
    groups: Groups, group: ClassicGroup, promise: Promise, request: Any, client: Client, version: int, now_ms: int
) -> Effects:
    if not has_room(groups, group, request.member_id):
        rebalance.remove(groups, group, request.member_id)
        return not_joined(promise, Error.GROUP_MAX_SIZE_REACHED, NO_MEMBER)
    names = tuple([protocol.name for protocol in request.protocols])
    if not group.supports(request.member_id, request.protocol_type, names):
        refuse(Error.INCONSISTENT_GROUP_PROTOCOL, f"Group '{group.id}' uses other protocols.")
    if request.member_id == NO_MEMBER:
        return join_new(groups, group, promise, request, client, version, now_ms)
    if request.member_id in group.pending and request.group_instance_id is None:
        return enter(groups, group, promise, new_member(request, request.member_id, client), request, now_ms)
    group.check_member(request.member_id, request.group_instance_id)
    return rejoin(groups, group, group.members[request.member_id], promise, request, now_ms)


def has_room(groups: Groups, group: ClassicGroup, member: str) -> bool:
    """While a group rebalances those who wait count: if the limit was lowered, the last to join again are let go."""
    limit: int = groups.setting("group.max.size")
    known = group.members.get(member)
    if group.state is State.EMPTY or len(group.members) < limit:
        return True
    if group.state is State.PREPARING:
        return (known is not None and known.joining is not None) or group.awaiting_join() < limit
    return known is not None


def join_new(
    groups: Groups, group: ClassicGroup, promise: Promise, request: Any, client: Client, version: int, now_ms: int
) -> Effects:
    """Let somebody without a member id join: a static member at once, others must first take an id."""
    instance = request.group_instance_id
    new_id = member_id(groups.random, client.id if instance is None else instance)
    if instance is not None and instance in group.instances:
        return replace_static(groups, group, promise, request, new_id, version, now_ms)
    if instance is None and version >= MEMBER_ID_REQUIRED:
        group.pending.add(new_id)
        deadline = now_ms + request.session_timeout_ms
        groups.timers.set(("member", group.id, new_id), deadline, rebalance.timeout_of(groups, group.id, new_id))
        return not_joined(promise, Error.MEMBER_ID_REQUIRED, new_id)
    return enter(groups, group, promise, new_member(request, new_id, client), request, now_ms)


def new_member(request: Any, new_id: str, client: Client) -> Member:
    return Member(
        id=new_id,
        instance_id=request.group_instance_id,
        client=client,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols_of(request),
    )


def rebalance_timeout_of(request: Any) -> int:
    """Version 0 knows one timeout for both."""
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def protocols_of(request: Any) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def enter(groups: Groups, group: ClassicGroup, promise: Promise, member: Member, request: Any, now_ms: int) -> Effects:
    member.joining = promise
    rebalance.add(groups, group, member, request.protocol_type, now_ms)
    return rebalance.rebalance_or_complete(groups, group, now_ms)


def rejoin(groups: Groups, group: ClassicGroup, member: Member, promise: Promise, request: Any, now_ms: int) -> Effects:
    """Let a member join again: in a rebalance, with something new to say, or because it missed our answer."""
    same = member.protocols == protocols_of(request)
    if group.state is State.EMPTY:
        refuse(Error.UNKNOWN_MEMBER_ID, f"Group '{group.id}' is empty.")
    if same and group.state is State.COMPLETING:
        return effects_of(promise, rebalance.join_answer(group, member))
    if same and group.state is State.STABLE and group.leader != member.id:
        return effects_of(promise, rebalance.join_answer(group, member))
    effects = Effects(answers=update(member, promise, request))
    return rebalance.merge(effects, rebalance.rebalance_or_complete(groups, group, now_ms))


def update(member: Member, promise: Promise | None, request: Any) -> rebalance.Answers:
    """Take over what a member says anew, and answer an older join of it, which its client gave up."""
    member.speak(protocols_of(request))
    member.rebalance_timeout_ms = rebalance_timeout_of(request)
    member.session_timeout_ms = request.session_timeout_ms
    older, member.joining = member.joining, promise
    return [] if older is None else [(older, older.refuse(Error.REBALANCE_IN_PROGRESS))]


# Static members.


def replace_static(
    groups: Groups, group: ClassicGroup, promise: Promise, request: Any, new_id: str, version: int, now_ms: int
) -> Effects:
    """Replace a static member that is back without its id; if the protocol stays, nobody else is told (KIP-345)."""
    old_leader = group.leader
    old_id = group.instances[request.group_instance_id]
    effects = Effects(answers=rebalance.refuse_waiting(group.members[old_id], Error.FENCED_INSTANCE_ID))
    member = rename(groups, group, old_id, new_id)
    rebalance.touch(groups, group, member, now_ms)
    update(member, promise, request)
    if group.state is State.COMPLETING:
        return rebalance.merge(effects, rebalance.prepare(groups, group, now_ms))
    if group.state is not State.STABLE:
        return rebalance.merge(effects, rebalance.complete_if_all_joined(groups, group, now_ms))
    if group.select_protocol() != group.protocol:
        return rebalance.merge(effects, rebalance.prepare(groups, group, now_ms))
    member.joining = None
    if version >= SKIP_ASSIGNMENT:
        answer = rebalance.join_answer(group, member, skip_assignment=group.leader == member.id)
    else:
        # An older client that found itself the leader would assign anew, so it is not told.
        answer = rebalance.join_answer(group, member, leader=old_leader)
    return effects.add([group.record(group.assignments())], [(promise, answer)])


def rename(groups: Groups, group: ClassicGroup, old_id: str, new_id: str) -> Member:
    """Give a static member a new id, with its place, its assignment and, if it had it, the lead."""
    was_leader = group.leader == old_id
    member = rebalance.remove(groups, group, old_id)
    assert member is not None and member.instance_id is not None
    member.id = new_id
    group.members[new_id] = member
    group.instances[member.instance_id] = new_id
    if was_leader:
        group.leader = new_id
    return member


# Sync.


def sync(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Ask for the assignment; the leader brings it for all."""
    try:
        group = known(groups, request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        check_protocol(request, group.protocol_type, group.protocol)
        return sync_member(groups, group, group.members[request.member_id], promise, request, now_ms)
    except Refused as refused:
        return effects_of(promise, promise.refuse(refused.error))


def known(groups: Groups, group_id: str) -> ClassicGroup:
    group = groups.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        refuse(Error.UNKNOWN_MEMBER_ID, f"There is no classic group '{group_id}'.")
    return group


def check_protocol(request: Any, protocol_type: str | None, protocol: str | None) -> None:
    """Check the protocol that a member believes to have agreed on, as it says from version 5 on."""
    for said, agreed in ((request.protocol_type, protocol_type), (request.protocol_name, protocol)):
        if said is not None and said != agreed:
            refuse(Error.INCONSISTENT_GROUP_PROTOCOL, f"Group '{request.group_id}' uses {agreed}, not {said}.")


def sync_member(
    groups: Groups, group: ClassicGroup, member: Member, promise: Promise, request: Any, now_ms: int
) -> Effects:
    if group.state is State.EMPTY:
        refuse(Error.UNKNOWN_MEMBER_ID, f"Group '{group.id}' is empty.")
    if group.state is State.PREPARING:
        refuse(Error.REBALANCE_IN_PROGRESS, f"Group '{group.id}' is being rebalanced.")
    note_synced(groups, group, member)
    if group.state is State.STABLE:
        return effects_of(promise, sync_answer(group, member.assignment))
    older, member.syncing = member.syncing, promise
    effects = Effects(answers=[] if older is None else [(older, older.refuse(Error.REBALANCE_IN_PROGRESS))])
    if group.leader != member.id:
        return effects
    assignments = {row.member_id: row.assignment for row in request.assignments}
    return rebalance.merge(effects, assign(groups, group, assignments, now_ms))


def note_synced(groups: Groups, group: ClassicGroup, member: Member) -> None:
    group.unsynced.discard(member.id)
    if not group.unsynced:
        groups.timers.cancel(("sync", group.id))


def assign(groups: Groups, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int) -> Effects:
    """Write the leader's assignment: then the group is stable, and those who wait are answered."""
    group.since_ms = now_ms
    effects = Effects([group.record(assignments)], undo=lambda: rebalance.prepare(groups, group, now_ms))
    for member in group.members.values():
        if member.syncing is not None:
            effects.answers.append((member.syncing, sync_answer(group, assignments.get(member.id, b""))))
            member.syncing = None
            rebalance.touch(groups, group, member, now_ms)
    return effects


def sync_answer(group: ClassicGroup, assignment: bytes) -> Any:
    return m.SyncGroupResponse(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)


# Heartbeat and leave.


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Note a sign of life; the answer says whether to join again."""
    try:
        group = known(groups, request.group_id)
        group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
    except Refused as refused:
        return effects_of(promise, m.HeartbeatResponse(error_code=refused.error))
    if group.state is State.EMPTY:
        return effects_of(promise, m.HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID))
    rebalance.touch(groups, group, group.members[request.member_id], now_ms)
    error = Error.REBALANCE_IN_PROGRESS if group.state is State.PREPARING else Error.NONE
    return effects_of(promise, m.HeartbeatResponse(error_code=error))


def leave(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Let members leave, or an administrator remove static members by their instance ids."""
    group = groups.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        group = ClassicGroup(request.group_id)  # of which nobody is a member
    leaving: list[str] = []
    response = leave_each(request, lambda member, instance: leaving.append(leaver(group, member, instance, leaving)))
    effects = rebalance.depart(groups, group, leaving, now_ms) if leaving else Effects()
    return effects.add(answers=[(promise, response)])


def leave_each(request: Any, let_go: Callable[[str, str | None], None]) -> Any:
    """Let go of each member of a request, by its id and its instance id; the answer holds who was refused."""
    rows: list[Any] = []
    for member in request.members:
        row = m.LeaveGroupResponse_MemberResponse(member.member_id, member.group_instance_id)
        try:
            let_go(member.member_id, member.group_instance_id)
        except Refused as refused:
            row.error_code = refused.error
        rows.append(row)
    return m.LeaveGroupResponse(members=rows)


def leaver(group: ClassicGroup, member: str, instance: str | None, gone: Container[str]) -> str:
    """Return the id of the member that is meant; raises Refused, also for one that is named twice."""
    if member == NO_MEMBER and instance is not None and instance in group.instances:
        member = group.instances[instance]
    elif member not in group.pending:
        group.check_member(member, instance)
    if member in gone:
        refuse(Error.UNKNOWN_MEMBER_ID, f"'{member}' has left '{group.id}' already.")
    return member
