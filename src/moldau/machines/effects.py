"""What a coordinator's machine decides: records to commit, and answers that become true with them.

A command of a machine (`join`, `commit`, `end_transaction`) reads the state and returns `Effects`. The runtime
(broker/coordinators.py, broker/metadata.py) appends the records to the machine's own partition and replays them, so
that the next command is decided on them; it releases the answers when the records are committed. If they never are,
the answers are refused and the machine is dropped, to be loaded again from its log. Requests that must wait
(JoinGroup) are `Promise`s: a machine keeps them and answers them in the effects of a later command.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from moldau.wire.errors import Error


@dataclass(slots=True, eq=False)
class Promise:
    """A request that is answered once; `refuse` makes the answer for an error that the machine did not foresee.

    A handler that is a coroutine may await it; see broker/steps.py.
    """

    refuse: Callable[[Error], Any]
    answer: Any = None
    then: Callable[[], None] | None = None

    def resolve(self, answer: Any) -> None:
        """Give the answer, unless there is one, and let the coroutine that awaits it go on."""
        if self.answer is None:
            self.answer = answer
            if self.then is not None:
                self.then()

    def __await__(self) -> Generator[Promise, None, Any]:
        if self.answer is None:
            yield self
        return self.answer


def error_promise() -> Promise:
    """Make a promise whose answer is an Error: NONE when all went well."""
    return Promise(lambda error: error)


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
