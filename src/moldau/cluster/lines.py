"""Requests of a controller that are under way: one at a time to each voter, and one for the log.

A line is free when its last request has been answered or given up, and the pause after a failure is over. When the
state of the controller changes, all lines are free again at once: answers that still come belong to no line then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from moldau.cluster.voters import Address

METADATA, VOTE = "metadata", "vote"  # what a connection is for
REPORT = "report"  # the line for what concerns the set of voters


class Token(NamedTuple):
    """By which a response is known: the request's number, its line, and the round of votes that it belongs to."""

    serial: int
    line: int | str
    round: int


class Send(NamedTuple):
    """A request, for the connection to `to` that is kept for this purpose."""

    to: Address
    request: Any
    purpose: str
    token: Token


class Want(NamedTuple):
    """A request that is to be sent as soon as its line is free: the line is a voter's id, METADATA or REPORT."""

    line: int | str
    to: Address
    request: Callable[[], Any]
    purpose: str = VOTE


@dataclass(slots=True)
class Line:
    """The number of the request under way, 0 if there is none, and when the next one may be sent."""

    serial: int = 0
    ready_ms: float = -inf


class Lines:
    """All lines of a controller."""

    def __init__(self) -> None:
        self.known: dict[int | str, Line] = {}
        self.serial = 0

    def reset(self) -> None:
        self.known = {}

    def is_free(self, want: Want, now_ms: float) -> bool:
        line = self.known.setdefault(want.line, Line())
        return not line.serial and line.ready_ms <= now_ms

    def next_ms(self, wants: Iterable[Want]) -> float:
        """Return when the first of these can be sent, unless it is to wait for an answer."""
        lines = [self.known.get(want.line) or Line() for want in wants]
        return min((line.ready_ms for line in lines if not line.serial), default=inf)

    def send(self, want: Want, round: int) -> Send:
        self.serial += 1
        self.known[want.line].serial = self.serial
        return Send(want.to, want.request(), want.purpose, Token(self.serial, want.line, round))

    def end(self, sent: Send, now_ms: float) -> bool:
        """Note that a request is done. False if it was sent in an earlier state."""
        line = self.known.get(sent.token.line)
        if line is None or line.serial != sent.token.serial:
            return False
        line.serial, line.ready_ms = 0, now_ms
        return True

    def delay(self, name: int | str, until_ms: float) -> None:
        """Send nothing on a line for a while, if nothing is under way there."""
        line = self.known.get(name)
        if line is not None and not line.serial:
            line.ready_ms = until_ms
