"""What the node knows about one connection. The rim (server.py) moves its bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from moldau.broker.authorizer import host_of
from moldau.broker.wait import Wait

if TYPE_CHECKING:
    from moldau.broker.authentication.gate import Gate
    from moldau.broker.learned_requests import Heads, Known
    from moldau.broker.quotas import Account

ANONYMOUS = "User:ANONYMOUS"
PRODUCE = b"\0\0"  # the key, as a request begins with it
# How much a connection may have waiting for answers before it reads no further. Clients have 5 requests in flight.
PENDING_ANSWERS = 100
PENDING_BYTES = 8 * 1024 * 1024  # of the requests, whatever is kept of them


def nobody_listens(connection: Connection) -> None:
    """Do nothing: no rim is attached."""


@dataclass(slots=True, eq=False)
class Pending:
    """The place of an answer among those that wait. `parts` is None until there is one."""

    wait: Wait | None
    size: int  # of what is kept for it
    parts: list[Any] | None = None


@dataclass(slots=True, eq=False)
class Connection:
    """One client connection: what is to be written, and what it waits for.

    Answers leave in the order of the requests. While some wait, the rim hands over only what `takes` allows: Produce
    requests after Produce requests that are appended, so that many of them share a sync or a round of the replicas.
    `on_ready` is called when `out` grew, or more can be taken, outside of `Node.receive`.
    """

    id: int
    listener: str = "PLAINTEXT"
    peer: str = ""
    on_ready: Callable[[Connection], None] = nobody_listens
    out: list[Any] = field(default_factory=list[Any])
    pending: deque[Pending] = field(default_factory=deque[Pending])  # from the first answer that waits on
    pending_bytes: int = 0
    closing: str | None = None
    client_id: str | None = None
    head_ends: tuple[int, ...] = ()  # of its requests, see learned_requests.py
    cleared: dict[Known, Account | None] = field(default_factory=dict["Known", "Account | None"])  # that it may send
    cleared_for: Heads | None = None  # what was learnt then
    cleared_at: int = -1  # how often the access control lists had changed then
    principal: str = ANONYMOUS
    gate: Gate | None = None  # while it must authenticate
    mechanism: str = ""  # by which it has
    by_token: bool = False  # it was a delegation token that authenticated
    session: Wait | None = None  # ends the authentication
    on_through: Callable[[Connection], None] = nobody_listens  # it has authenticated
    throttle_ms: float = 0.0  # for which it is muted after the answer that is being made
    is_controller: bool = False  # it came to a listener of the controller
    software: tuple[str, str] = ("unknown", "unknown")
    host: str = field(init=False)  # of the peer, as access control entries write it

    def __post_init__(self) -> None:
        self.host = host_of(self.peer)

    @property
    def wait(self) -> Wait | None:
        """What the next answer waits for; None if nothing waits."""
        return self.pending[0].wait if self.pending else None

    def takes(self, key: bytes) -> bool:
        """Tell whether a request can be handed over now, by the two bytes of its key."""
        pending = self.pending
        if not pending:
            return True
        last = pending[-1].wait
        return (
            key == PRODUCE
            and (last is None or last.applied or last.done)
            and len(pending) < PENDING_ANSWERS
            and self.pending_bytes < PENDING_BYTES
        )

    def write(self, parts: list[Any]) -> None:
        """Answer a request, after those that wait."""
        if self.pending:
            self.keep_place(Pending(None, sum(map(len, parts)), parts))
        else:
            self.out += parts

    def park(self, wait: Wait, size: int) -> Pending:
        """Keep a place for the answer of a request of this size, which waits."""
        return self.keep_place(Pending(wait, size))

    def keep_place(self, pending: Pending) -> Pending:
        self.pending.append(pending)
        self.pending_bytes += pending.size
        return pending

    def answer(self, answered: Pending, parts: list[Any]) -> None:
        """Fill the place of an answer, and let all leave that wait no longer."""
        answered.parts = parts
        pending = self.pending
        while pending and (ready := pending[0].parts) is not None:
            self.out += ready
            self.pending_bytes -= pending.popleft().size
        self.on_ready(self)

    def next_deadline_ms(self) -> float:
        """Return when the first of the answers that wait must be given."""
        return min((wait.deadline_ms for wait in self.waits()), default=inf)

    def waits(self) -> Iterator[Wait]:
        """All that has no answer yet."""
        return (one.wait for one in self.pending if one.wait is not None and not one.wait.done)
