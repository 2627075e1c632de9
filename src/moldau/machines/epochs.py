"""What groups have in common whose members have epochs: consumer groups, share groups and streams groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from moldau.machines.group import refuse
from moldau.wire.errors import Error

FIRST_EPOCH = 1
COMMIT_BY_EPOCH = 9  # the first version of OffsetCommit that knows member epochs

Members = Mapping[str, object]


def check_size(setting: Callable[[str], Any], kind: str, members: Members, member_id: str) -> None:
    """Whether there is room for a member, unless it is one already."""
    limit = setting(f"group.{kind}.max.size")
    if len(members) >= limit and member_id not in members:
        problem = f"The {kind} group has reached its maximum capacity of {limit} members."
        refuse(Error.GROUP_MAX_SIZE_REACHED, problem)


def must_be_member(members: Members, member_id: str, instance_id: str | None, epoch: int, transactional: bool) -> bool:
    """Whether a commit is one of a member: a group without any takes it from all, a transaction need not name one."""
    if epoch < 0 and not members:
        return False
    return not (transactional and epoch == -1 and not member_id and instance_id is None)


def check_commit_version(kind: str, version: int) -> None:
    if version < COMMIT_BY_EPOCH:
        refuse(Error.UNSUPPORTED_VERSION, f"Members of {kind} groups commit by version {COMMIT_BY_EPOCH} or later.")


def fence_member(kind: str, epoch: int, known: int, and_so: str = "") -> NoReturn:
    how = "greater" if epoch > known else "smaller"
    refuse(
        Error.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {how} member epoch ({epoch}) than the one known by the group coordinator "
        f"({known}){and_so}. The member must abandon all its partitions and rejoin.",
    )
