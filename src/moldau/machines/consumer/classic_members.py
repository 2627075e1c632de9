"""Members of a consumer group that still speak the classic protocol: guests, while a group is upgraded (KIP-848).

Nobody leads and nobody waits. A join is a member's turn, answered at once; a sync fetches what the turn gave it; the
answer to a heartbeat tells when there is something to join for. The generation of a guest is its epoch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.machines.classic.group import CONSUMER
from moldau.machines.classic.requests import (
    MEMBER_ID_REQUIRED,
    check_protocol,
    leave_each,
    not_joined,
    protocols_of,
    rebalance_timeout_of,
)
from moldau.machines.consumer import migration
from moldau.machines.consumer.assignors import NO_TARGET
from moldau.machines.consumer.group import ConsumerGroup
from moldau.machines.consumer.heartbeat_step import Turn, take_turn
from moldau.machines.consumer.heartbeats import check_holder, fence, find_static
from moldau.machines.consumer.members import ClassicProtocol, Member
from moldau.machines.effects import Effects, Promise
from moldau.machines.epochs.group import check_size
from moldau.machines.epochs.sessions import touch
from moldau.machines.group import NO_MEMBER, Client, fresh_id, refuse
from moldau.machines.reconciling import State
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.machines.groups import Groups


def join(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Take a guest's turn."""
    group: Any = groups.groups[request.group_id]
    try:
        return join_group(groups, group, promise, request, client, version, now_ms)
    except Refused as refused:
        return Effects(answers=[(promise, promise.refuse(refused.error))])


def join_group(
    groups: Groups, group: ConsumerGroup, promise: Promise, request: Any, client: Client, version: int, now_ms: int
) -> Effects:
    if migration.policy(groups) == "disabled":
        refuse(Error.INCONSISTENT_GROUP_PROTOCOL, f"Group {group.id} takes no members of the classic protocol.")
    is_new = request.member_id == NO_MEMBER
    member_id = fresh_id(groups.random) if is_new else request.member_id
    check_size(groups, group, member_id)
    check_protocols(group, request)
    if is_new and request.group_instance_id is None and version >= MEMBER_ID_REQUIRED:
        return not_joined(promise, Error.MEMBER_ID_REQUIRED, member_id)
    turn = Turn(groups, group, now_ms)
    if request.group_instance_id is None:
        member = group.members.get(member_id) or Member(member_id)
    else:
        member = find_static(turn, member_id, request.group_instance_id, is_new, guest=True)
    return take_place(turn, member, promise, request, client)


def check_protocols(group: ConsumerGroup, request: Any) -> None:
    """A guest needs a protocol that all other guests know, so that the group can be downgraded."""
    guests = [member.classic for member in group.members.values() if member.classic]
    common = [
        protocol.name
        for protocol in request.protocols
        if all(any(protocol.name == name for name, _ in guest.protocols) for guest in guests)
    ]
    if request.protocol_type != CONSUMER or not common:
        refuse(Error.INCONSISTENT_GROUP_PROTOCOL, f"The protocols of member {request.member_id} are not supported.")


def take_place(turn: Turn, member: Member, promise: Promise, request: Any, client: Client) -> Effects:
    """Subscribe as the join says, move on, and go from there; or turn the group back to the classic protocol."""
    groups, group = turn.groups, turn.group
    try:
        subscription = migration.read_subscription(request.protocols[0].metadata)
    except WireError:
        refuse(Error.INCONSISTENT_GROUP_PROTOCOL, "The subscription cannot be read.")
    wanted = guest(member, request, subscription, client)
    owned = migration.ids_of(subscription.owned_partitions, groups.cluster())
    if turn.replaced and migration.may_be_replaced(groups, group, turn.replaced):
        return turn_back(turn, turn.replaced, wanted, promise)
    moved = take_turn(turn, member, wanted, owned)
    answer = m.JoinGroupResponse(
        generation_id=moved.epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0].name,
        member_id=moved.id,
    )
    groups.timers.cancel(("guest-join", group.id, moved.id))
    touch(groups, group, moved.id, turn.now_ms, request.session_timeout_ms)
    name = "guest-sync", group.id, moved.id
    action = partial(groups.give_up, group.id, moved.id, None)
    groups.timers.set(name, turn.now_ms + wanted.rebalance_timeout_ms, action)
    return Effects(turn.changes, [(promise, answer)])


def turn_back(turn: Turn, replaced: Member, member: Member, promise: Promise) -> Effects:
    """Make a classic group again: the last static member with the new protocol came back with the old one."""
    group = turn.group
    others = [other for other in group.members.values() if other.id != replaced.id]
    target = group.target | {member.id: group.target.get(replaced.id, NO_TARGET)}
    answer = m.JoinGroupResponse(
        generation_id=group.epoch,
        protocol_type=CONSUMER,
        protocol_name=migration.common_protocol([*others, member]),
        member_id=member.id,
    )
    stale = group.epoch > group.target_epoch
    effects = migration.to_classic(turn.groups, group, [*others, member], target, turn.now_ms, rebalance=stale)
    return effects.add(answers=[(promise, answer)])


def guest(member: Member, request: Any, subscription: Any, client: Client) -> Member:
    return member._replace(
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        topics=frozenset(subscription.topics),
        regex="",
        client_id=client.id,
        client_host=client.host,
        classic=ClassicProtocol(request.session_timeout_ms, protocols_of(request)),
    )


def sync(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Tell the guest what its last turn gave it."""
    try:
        group, member, classic = known(groups, request)
        check_protocol(request, CONSUMER, classic.protocols[0][0])
        if group.target_epoch > member.epoch and member.state != State.UNREVOKED:
            expect_join(groups, group, member, now_ms)
            refuse(Error.REBALANCE_IN_PROGRESS, f"Group {group.id} is being rebalanced.")
    except Refused as refused:
        return Effects(answers=[(promise, m.SyncGroupResponse(error_code=refused.error))])
    groups.timers.cancel(("guest-sync", group.id, member.id))
    touch(groups, group, member.id, now_ms, classic.session_timeout_ms)
    answer = m.SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=migration.write_assignment(member.assigned, member, groups.cluster()),
    )
    return Effects(answers=[(promise, answer)])


def known(groups: Groups, request: Any) -> tuple[ConsumerGroup, Member, ClassicProtocol]:
    """Return the guest that sends a request, in its epoch; raises Refused."""
    group: Any = groups.groups[request.group_id]
    if request.group_instance_id is None:
        member = group.member(request.member_id)
    else:
        holder = group.static_member(request.group_instance_id)
        member = check_holder(holder, request.member_id, request.group_instance_id)
    if member.classic is None:
        refuse(Error.UNKNOWN_MEMBER_ID, f"Member {member.id} does not use the classic protocol.")
    if member.epoch != request.generation_id:
        refuse(Error.ILLEGAL_GENERATION, f"Member {member.id} is at generation {member.epoch}.")
    return group, member, member.classic


def heartbeat(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Note a sign of life; the answer tells whether a join would bring anything."""
    try:
        group, member, classic = known(groups, request)
    except Refused as refused:
        return Effects(answers=[(promise, m.HeartbeatResponse(error_code=refused.error))])
    touch(groups, group, member.id, now_ms, classic.session_timeout_ms)
    error = Error.NONE
    if should_join(group, member):
        error = Error.REBALANCE_IN_PROGRESS
        expect_join(groups, group, member, now_ms)
    return Effects(answers=[(promise, m.HeartbeatResponse(error_code=error))])


def should_join(group: ConsumerGroup, member: Member) -> bool:
    """Return whether there is a new target, something to give up, or something that has become free."""
    if member.epoch < group.target_epoch or member.state == State.UNREVOKED:
        return True
    return member.state == State.UNRELEASED and not waits_for_others(group, member)


def waits_for_others(group: ConsumerGroup, member: Member) -> bool:
    return any(
        group.owners.get(topic, {}).get(index, member.id) != member.id
        for topic, wanted in group.target.get(member.id, {}).items()
        for index in wanted
    )


def expect_join(groups: Groups, group: ConsumerGroup, member: Member, now_ms: int) -> None:
    """Give a guest that was told to join its rebalance timeout to do so."""
    name = "guest-join", group.id, member.id
    if name not in groups.timers.by_name:
        action = partial(groups.give_up, group.id, member.id, None)
        groups.timers.set(name, now_ms + member.rebalance_timeout_ms, action)


def leave(groups: Groups, promise: Promise, request: Any, client: Client, version: int, now_ms: int) -> Effects:
    """Let members leave, or an administrator remove static members by their instance ids."""
    group: Any = groups.groups[request.group_id]
    leaving: list[Member] = []
    response = leave_each(request, lambda member, instance: leaving.append(leaver(group, member, instance)))
    gone = {member.id: member for member in leaving}
    return fence(groups, group, list(gone.values()), now_ms).add(answers=[(promise, response)])


def leaver(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Return the member that is meant; raises Refused."""
    if instance_id is None:
        return group.member(member_id)
    holder = group.static_member(instance_id)
    return check_holder(holder, member_id if member_id != NO_MEMBER or holder is None else holder.id, instance_id)
