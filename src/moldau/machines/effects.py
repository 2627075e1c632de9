"""What a coordinator's machine decides: records to commit, and answers that become true with them.

A command of a machine (`join`, `commit`, `end_transaction`) reads the state and returns `Effects`. The runtime
(broker/coordinators.py) appends the records to the machine's own partition, and only when they are committed replays
them into the machine and releases the answers. Requests that must wait (JoinGroup) are `Promise`s: a machine keeps
them and answers them in the effects of a later command.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.wire.errors import Error


@dataclass(slots=True, eq=False)
class Promise:
    """A request that is answered once; `refuse` makes the answer for an error that the machine did not foresee."""

    refuse: Callable[[Error], Any]
    answer: Any = None


class Change(NamedTuple):
    """A record of an internal topic: the message of its key and that of its value, None to delete it.

    `version` is that in which the value is written; None takes the newest. Where a machine has the bytes of both at
    hand it gives them as `encoded`.
    """

    key: Any
    value: Any
    version: int | None = None
    encoded: tuple[bytes, bytes | None] | None = None


class Producer(NamedTuple):
    """The producer in whose transaction changes are made: they count when its commit marker comes."""

    id: int
    epoch: int


@dataclass(slots=True)
class Effects:
    """All of it happens, in this order: the changes are committed together, then the answers go out.

    If the changes are too large to be written the answers are refused, and `undo` says what follows for the machine.
    """

    changes: list[Change] = field(default_factory=list[Change])
    answers: list[tuple[Promise, Any]] = field(default_factory=list[tuple[Promise, Any]])
    producer: Producer | None = None
    undo: Callable[[], Effects] | None = None

    def add(self, changes: Iterable[Change] = (), answers: Iterable[tuple[Promise, Any]] = ()) -> Effects:
        self.changes += changes
        self.answers += answers
        return self
