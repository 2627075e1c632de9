"""What the node knows about one connection. The rim (server.py) moves its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moldau.broker.authorizer import host_of
from moldau.broker.wait import Wait

ANONYMOUS = "User:ANONYMOUS"


def nobody_listens(connection: Connection) -> None:
    """Do nothing: no rim is attached."""


@dataclass(slots=True, eq=False)
class Connection:
    """One client connection: what is to be written, and what it waits for.

    Answers leave in the order of the requests, so while `wait` is set the rim hands over no further frame.
    `on_ready` is called when `out` grew, or `wait` ended, outside of `Node.receive`.
    """

    id: int
    listener: str = "PLAINTEXT"
    peer: str = ""
    on_ready: Callable[[Connection], None] = nobody_listens
    out: list[Any] = field(default_factory=list[Any])
    wait: Wait | None = None
    closing: str | None = None
    client_id: str | None = None
    head_ends: tuple[int, ...] = ()  # of its requests, see learned_requests.py
    principal: str = ANONYMOUS
    software: tuple[str, str] = ("unknown", "unknown")
    host: str = field(init=False)  # of the peer, as access control entries write it

    def __post_init__(self) -> None:
        self.host = host_of(self.peer)
