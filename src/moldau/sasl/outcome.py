"""How an exchange ends: at the server somebody is admitted, or denied; at the client it may fail, too."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace


class Denied(Exception):
    """A failed authentication; the message is what the client is told."""


class LoginFailed(Exception):
    """A login that came to nothing on the client's side, in one sentence."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who has authenticated: the name, until when (in milliseconds of wall time), and what is answered last."""

    user: str
    kind: str = "User"
    until_ms: int | None = None
    by_token: bool = False
    answer: bytes = b""

    @property
    def principal(self) -> str:
        return f"{self.kind}:{self.user}"

    def with_answer(self, answer: bytes) -> Admitted:
        return replace(self, answer=answer)


# The first `next` yields nothing of meaning; then messages are sent in, answers come out, and the end is who came in.
Exchange = Generator[bytes, bytes, Admitted]
