"""A user's mistake, and the exit codes of all commands."""

from __future__ import annotations

OK = 0
FAILED = 1  # the cluster refused, or is not there
MISUSED = 2  # an option or an argument that cannot be
NO = 3  # the answer to a question is no: not compatible, not healthy
INTERRUPTED = 130
PIPE_CLOSED = 141


class Mistake(Exception):
    """What was asked for cannot be done: one sentence that says what to do."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def misused(sentence: str) -> Mistake:
    """A mistake in the words of the command line itself."""
    return Mistake(sentence, MISUSED)
