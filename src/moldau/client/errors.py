"""The one error of the client: a Kafka error code, a sentence of what happened, and whether trying again helps."""

from __future__ import annotations

from typing import Any

from moldau.wire.errors import Error


class ClientError(Exception):
    """A call that failed. Its text is a sentence for the user; `error` is the code for a program.

    Troubles of the client's own have the code that fits: NETWORK_EXCEPTION where a broker could not be reached or went
    away, REQUEST_TIMED_OUT where it did not answer in time, UNSUPPORTED_VERSION where it does not know the request.
    `answer` is the response that carried the code, if there was one.
    """

    def __init__(self, error: Error, sentence: str, *, retriable: bool | None = None, answer: Any = None) -> None:
        super().__init__(sentence)
        self.error = error
        self.retriable = error.retriable if retriable is None else retriable
        self.answer = answer


def unreachable(sentence: str, *, retriable: bool = True) -> ClientError:
    return ClientError(Error.NETWORK_EXCEPTION, sentence, retriable=retriable)


def timed_out(sentence: str) -> ClientError:
    return ClientError(Error.REQUEST_TIMED_OUT, sentence)


def error_of(code: int) -> Error:
    """The error of a code, also of one that only a later Kafka knows."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
