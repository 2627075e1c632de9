"""The one error of the client: a Kafka error code, a sentence, and whether a retry may help."""

from __future__ import annotations

from typing import Any

from moldau.wire.errors import Error


class ClientError(Exception):
    """A failed call. Its text is a sentence for the user, `error` a code for programs, `answer` the response, if any.

    Failures in the client have a fitting code: NETWORK_EXCEPTION if a broker could not be reached or went away,
    REQUEST_TIMED_OUT if it did not answer in time, UNSUPPORTED_VERSION if it does not know the request.
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
    """Return the error of a code, UNKNOWN_SERVER_ERROR for a code of a later Kafka."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
