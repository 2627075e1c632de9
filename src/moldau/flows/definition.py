"""What a flow is, and what may become of it: decisions on definitions, without I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

FORMAT = 1
NAME = re.compile(r"[a-zA-Z0-9._-]{1,200}")
NO_SERIAL = -1
MOST_SETTINGS, LONGEST_SETTING = 200, 10_000
MOST_FLOWS = 2000
WRITES = "writes"  # in what is to run: the topics that are known to be written


class Wanted(StrEnum):
    """What is wanted of a flow. A removed one is stopped and cleared away, and then its definition goes too."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    REMOVED = "removed"


class FlowError(Exception):
    """A change that cannot be made: a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A flow. `what` says what to run, in the words of its kind; `version` names it.

    The serial number is the offset of the first definition under this name since it was last removed: what a flow has
    kept goes by it, so that a name that is deployed again does not meet what another left behind. Each change raises
    the revision; `attempt` is raised to run a flow anew as it is.
    """

    name: str
    kind: str
    version: str
    what: Mapping[str, Any]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    wanted: Wanted = Wanted.RUNNING
    serial: int = NO_SERIAL
    revision: int = 1
    attempt: int = 1
    changed_ms: int = 0
    previous: tuple[str, Mapping[str, Any]] | None = None  # version and what to run before the last upgrade
    topics: tuple[str, ...] = ()  # internal topics of this version and of all before it
    rollback: bool = False  # whether the worker goes back by itself if this version fails in its first batches
    note: str | None = None  # why it is as it is, where nobody has asked for it
    leaving: str | None = None  # the lane that it must leave before the one of its settings has it
    begin: Mapping[str, Any] | None = None  # the position in which it has left its last lane
    apart: bool = False  # whether it has a lane of its own because it was behind for long (`fairness.py`)

    @property
    def identity(self) -> tuple[int, int, str]:
        """What a running query is of: another one means that it must be made anew."""
        return self.serial, self.attempt, self.version


@dataclass(frozen=True, slots=True)
class Foreign:
    """A definition of a later release: it is left alone, and shown as such."""

    name: str
    format: int


Known = Mapping[str, Definition | Foreign]


def deployed(known: Known, new: Definition) -> Definition:
    """Return the definition to write for a flow that is new, or that gets another version or other settings."""
    check(new)
    before = known.get(new.name)
    if before is None:
        if len(known) >= MOST_FLOWS:
            raise FlowError(f"There are {MOST_FLOWS} flows already: undeploy some.")
        return new
    before = ours(before)
    if before.kind != new.kind:
        raise FlowError(f"{new.name} is a {before.kind}: undeploy it, or choose another name.")
    if before.wanted is Wanted.REMOVED:
        raise FlowError(f"{new.name} is being removed: try again in a moment.")
    is_other = before.version != new.version
    return replace(
        new,
        serial=before.serial,
        revision=before.revision + 1,
        attempt=before.attempt + (not is_other),
        previous=(before.version, before.what) if is_other else before.previous,
        topics=tuple(sorted({*before.topics, *new.topics})),
        leaving=before.leaving,
        begin=before.begin,
        apart=before.apart,
    )


def changed(known: Known, name: str, wanted: Wanted, now_ms: int, *, anew: bool = False) -> Definition:
    """Return the definition after somebody has paused, resumed, stopped or removed a flow, or has it run anew."""
    before = ours(find(known, name))
    if before.wanted is Wanted.REMOVED and wanted is not Wanted.REMOVED:
        raise FlowError(f"{name} is being removed.")
    return replace(
        before, wanted=wanted, revision=before.revision + 1, attempt=before.attempt + anew, changed_ms=now_ms
    )


def rolled_back(
    known: Known, name: str, now_ms: int, revision: int | None = None, note: str | None = None
) -> Definition:
    """Return the definition with what ran before the last upgrade; with `revision`, only if it is still that one."""
    before = ours(find(known, name))
    if before.previous is None:
        raise FlowError(f"{name} has no earlier version.")
    if before.wanted is Wanted.REMOVED or revision not in (None, before.revision):
        raise FlowError(f"{name} was changed meanwhile.")
    version, what = before.previous
    return replace(
        before,
        version=version,
        what=what,
        wanted=Wanted.RUNNING,
        revision=before.revision + 1,
        changed_ms=now_ms,
        previous=(before.version, before.what),
        rollback=False,
        note=note,
    )


def settled(known: Known, name: str, revision: int) -> Definition | None:
    """Return the definition of a version that has proved itself, so that nobody goes back any more; None if it was
    changed meanwhile.
    """
    before = known.get(name)
    if not isinstance(before, Definition) or before.revision != revision or not before.rollback:
        return None
    return replace(before, rollback=False)


def versions(known: Known) -> dict[str, Mapping[str, Any]]:
    """Return the versions that some definition can still run, now or after a rollback, and what each of them is."""
    found: dict[str, Mapping[str, Any]] = {}
    for one in known.values():
        if isinstance(one, Definition) and one.wanted is not Wanted.REMOVED:
            found |= dict(versions_of(one))
    return found


def versions_of(one: Definition) -> list[tuple[str, Mapping[str, Any]]]:
    return [(one.version, one.what), *([] if one.previous is None else [one.previous])]


def find(known: Known, name: str) -> Definition | Foreign:
    if name not in known:
        raise FlowError(f"There is no flow {name}: `moldau streams list` shows what is deployed.")
    return known[name]


def ours(one: Definition | Foreign) -> Definition:
    if isinstance(one, Foreign):
        raise FlowError(f"{one.name} was deployed by a later release of Moldau: change it there.")
    return one


def check(one: Definition) -> None:
    """Refuse names and settings that make no sense."""
    if not NAME.fullmatch(one.name) or one.name in (".", ".."):
        raise FlowError(f"The name {one.name[:60]!r} must have 1 to 200 of the characters a-z A-Z 0-9 . _ -")
    if len(one.settings) > MOST_SETTINGS:
        raise FlowError(f"{one.name} has {len(one.settings)} settings; {MOST_SETTINGS} are allowed.")
    for name, text in one.settings.items():
        if len(name) + len(text) > LONGEST_SETTING:
            raise FlowError(f"The setting {name[:60]} of {one.name} is longer than {LONGEST_SETTING} characters.")
