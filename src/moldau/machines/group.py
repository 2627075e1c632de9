"""What all kinds of groups have in common: the questions that offsets, listings and deletions ask of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, Protocol

from moldau.machines.effects import Change
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

NO_MEMBER = ""
NO_EPOCH = -1
BLANKS = "".join(map(chr, range(0x21)))  # what Java's trim takes away
LONG_PREFIX = 8000  # characters of a client id that find room in a member id

# Looks at one partition of a commit (topic, topic id, partition); raises Refused for it alone.
CheckPartition = Callable[[str, bytes, int], None]


class Randomness(Protocol):
    """Where member ids come from: a random.Random of the node."""

    def getrandbits(self, k: int, /) -> int: ...


class Client(NamedTuple):
    """Who sends a request."""

    id: str
    host: str


class Expiry(NamedTuple):
    """From when on the retention of a group's offsets counts: a moment, or None for that of each commit."""

    since_ms: int | None = None


class Group(Protocol):
    """A group of any kind. The checks raise Refused."""

    id: str
    kind: str  # classic, consumer, share or streams, as ListGroups says it

    @property
    def members(self) -> Mapping[str, Any]: ...

    def state_name(self) -> str:
        """As ListGroups and the Describe APIs say it."""
        ...

    def protocol_name(self) -> str:
        """Return the protocol type as ListGroups says it; empty for none."""
        ...

    def is_empty(self) -> bool:
        """Return whether it has no members: then a group of another kind may take its id."""
        ...

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool, version: int
    ) -> CheckPartition | None:
        """May this member commit offsets? `epoch` is a generation or a member epoch, `version` that of the request."""
        ...

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """May offsets be fetched by this member, or, without one, by anybody?"""
        ...

    def check_offset_delete(self) -> None: ...

    def check_delete(self) -> None: ...

    def subscribes(self, topic: str) -> bool:
        """Return whether a member is subscribed: then offsets of the topic are neither deleted nor expired."""
        ...

    def offset_expiry(self) -> Expiry | None:
        """Return how the group's offsets expire just now; None if they do not."""
        ...

    def tombstones(self) -> list[Change]:
        """Changes that delete the group with all that it wrote, but for its offsets."""
        ...


def refuse(error: Error, why: str) -> NoReturn:
    raise Refused(error, why)


def check_ids(**ids: str | None) -> None:
    """None of them may be blank, by Java's idea of it. They are named as in the request: `MemberId`."""
    for name, value in ids.items():
        if value is not None and not value.strip(BLANKS):
            refuse(Error.INVALID_REQUEST, f"{name} can't be empty.")


def fresh_id(random: Randomness) -> str:
    """Return a random UUID (version 4), as text."""
    number = random.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | 4 << 76 | 2 << 62
    text = f"{number:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def member_id(random: Randomness, prefix: str) -> str:
    """Make a new member's id from that of its client or static instance; a long one is cut."""
    if len(prefix) > LONG_PREFIX:
        prefix = prefix[:LONG_PREFIX]
    return f"{prefix}-{fresh_id(random)}"
