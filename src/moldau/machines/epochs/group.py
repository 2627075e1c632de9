"""The questions that all groups whose members have epochs answer alike: consumer, share and streams groups.

Each kind is a class of its own. It takes the functions of this module as methods where it does as the others do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from moldau.machines.group import CheckPartition, refuse
from moldau.machines.metadata.cluster import GROUP
from moldau.machines.reconciling import Moving, Wanted, is_reconciled
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.machines.groups import Groups

FIRST_EPOCH = 1
JOIN, LEAVE, STATIC_LEAVE = 0, -1, -2  # member epochs that clients send
COMMIT_BY_EPOCH = 9  # the first version of OffsetCommit that knows member epochs

M = TypeVar("M", covariant=True)


class Members(Protocol[M]):
    """A group with epochs."""

    id: str
    kind: str
    epoch: int
    target_epoch: int

    @property
    def members(self) -> Mapping[str, M]: ...
    @property
    def target(self) -> Mapping[str, object]: ...


class Member(Moving, Protocol):
    """A member that moves by epochs. `classic` is what one that speaks the classic protocol said of itself."""

    @property
    def id(self) -> str: ...
    @property
    def previous_epoch(self) -> int: ...
    @property
    def rebalance_timeout_ms(self) -> int: ...
    @property
    def classic(self) -> object | None: ...


class Committing(Members[Member], Protocol):
    """A group whose members commit offsets."""

    def partition_check(self, member: Any, epoch: int, /) -> CheckPartition:
        """Return what a member that has moved on may still commit in an older epoch (KIP-1251)."""
        ...


def is_empty(group: Members[Any]) -> bool:
    return not group.members


def protocol_name(group: Members[Any]) -> str:
    return group.kind


def member(group: Members[M], member_id: str) -> M:
    """Return the member of this id; raises Refused."""
    known = group.members.get(member_id)
    if known is None:
        refuse(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.id}.")
    return known


def check_delete(group: Members[Any]) -> None:
    if group.members:
        refuse(Error.NON_EMPTY_GROUP, f"Group '{group.id}' has {len(group.members)} members.")


def state_name(group: Committing) -> str:
    if not group.members:
        return "Empty"
    if group.epoch > group.target_epoch:
        return "Assigning"
    settled = all(is_reconciled(member, group.target_epoch) for member in group.members.values())
    return "Stable" if settled else "Reconciling"


def check_commit(
    group: Committing, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
) -> CheckPartition | None:
    """Refuse a commit that is not in the member's epoch, but for what it has owned since the epoch that it names.

    A group without members takes offsets from all, and a transaction need not name a member.
    """
    if epoch < 0 and not group.members:
        return None
    if transactional and epoch == -1 and not member_id and instance_id is None:
        return None
    known = member(group, member_id)
    if not transactional and known.classic is None and version < COMMIT_BY_EPOCH:
        problem = f"Members of {group.kind} groups commit by version {COMMIT_BY_EPOCH} or later."
        refuse(Error.UNSUPPORTED_VERSION, problem)
    if epoch == known.epoch:
        return None
    if epoch > known.epoch:
        refuse(stale(known), f"Epoch {epoch} is ahead of the member's, which is {known.epoch}.")
    return group.partition_check(known, epoch)


def check_given(member: Member, what: str, given: int | None, epoch: int) -> None:
    """Refuse a commit of what the member does not own, or got in a later epoch than it names."""
    if given is None:
        refuse(stale(member), f"{what} is not the member's.")
    if epoch < given:
        refuse(stale(member), f"{what} was given in epoch {given}; {epoch} is older.")


def check_fetch(group: Committing, member_id: str | None, epoch: int) -> None:
    if member_id is None and epoch < 0:
        return
    known = member(group, member_id or "")
    if epoch != known.epoch:
        refuse(stale(known), f"Epoch {epoch} is not the member's, which is {known.epoch}.")


def stale(member: Member) -> Error:
    """Clients of the classic protocol know of generations, not of epochs."""
    return Error.ILLEGAL_GENERATION if member.classic else Error.STALE_MEMBER_EPOCH


# Questions of the commands.


def config(groups: Groups, group_id: str, name: str, kind: str) -> int:
    """Return a setting of this group, or that of the broker for all groups of its kind."""
    own = groups.cluster().config(GROUP, group_id).get(f"{kind}.{name}")
    return groups.setting(f"group.{kind}.{name}") if own is None else int(own)


def check_size(groups: Groups, group: Members[Any], member_id: str) -> None:
    """Refuse a member for which there is no room, unless it is one already."""
    limit = groups.setting(f"group.{group.kind}.max.size")
    if len(group.members) >= limit and member_id not in group.members:
        problem = f"The {group.kind} group has reached its maximum capacity of {limit} members."
        refuse(Error.GROUP_MAX_SIZE_REACHED, problem)


def check_epoch(kind: str, member: Member, epoch: int, owned: Wanted[Any] | None) -> None:
    """Fence a member of another epoch. An answer may have been lost: the epoch before is good, as long as the client
    owns nothing beyond what it was given."""
    if epoch == member.epoch:
        return
    is_before = epoch == member.previous_epoch < member.epoch
    if owned is None or not is_before or any(owned[key] - member.assigned.get(key, {}).keys() for key in owned):
        fence_member(kind, epoch, member.epoch)


def fence_member(kind: str, epoch: int, known: int, and_so: str = "") -> NoReturn:
    how = "greater" if epoch > known else "smaller"
    refuse(
        Error.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}){and_so}. The member must abandon all its partitions and rejoin.",
    )
