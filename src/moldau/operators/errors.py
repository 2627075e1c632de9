"""What happens to a record that cannot be read, processed or written. Names of headers are Kafka's."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from .record import Headers, Produced, Raw, Record

Stage = Literal["deserialization", "processing", "production"]
Decision = Literal["fail", "continue"]
PREFIX = "__streams.errors."


class StreamsError(RuntimeError):
    """An error that ends the application: one sentence that names the node, and the record if there is one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What a handler gets. `source` is the record that was read from a topic (None in punctuators), `record` the input
    of the node.
    """

    stage: Stage
    node: str
    task_id: str
    error: BaseException
    source: Raw | None
    record: Record | None = None
    topic: str | None = None  # that was to be written

    @property
    def where(self) -> str:
        if self.source is None:
            return "in a punctuator"
        return f"at {self.source.topic}-{self.source.partition} offset {self.source.offset}"

    def __str__(self) -> str:
        problem = str(self.error) or type(self.error).__name__
        return f"{self.stage} failed in {self.node} {self.where}: {problem}"


@dataclass(frozen=True, slots=True)
class Response:
    """The decision of a handler, and what is to be written to dead-letter topics."""

    decision: Decision
    dead_letters: tuple[Produced, ...] = ()


Handler = Callable[[Failure], Response]


def answer(decision: Decision, dead_letter_topic: str | None = None) -> Handler:
    """Return a handler of Kafka: fail, or continue without the record. It writes a dead letter if there is a topic."""

    def handle(failure: Failure) -> Response:
        if dead_letter_topic is None:
            return Response(decision)
        return Response(decision, (dead_letter(failure, dead_letter_topic),))

    return handle


def dead_letter(failure: Failure, topic: str) -> Produced:
    """Return the record as it was read, with headers that say what happened."""
    source = failure.source
    if source is None:
        return Produced(topic, None, None, None, 0, error_headers(failure))
    headers = source.headers + error_headers(failure)
    return Produced(topic, None, source.key, source.value, source.timestamp, headers)


def error_headers(failure: Failure) -> Headers:
    error, source = failure.error, failure.source
    facts = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(error)),
        "topic": source.topic if source else None,
        "partition": str(source.partition) if source else None,
        "offset": str(source.offset) if source else None,
    }
    return tuple((PREFIX + name, None if fact is None else fact.encode()) for name, fact in facts.items())


def decided(response: Response | Decision, failure: Failure) -> Response:
    """Return a handler's response, which may be one word."""
    if isinstance(response, Response):
        return response
    if response in ("fail", "continue"):
        return Response(response)
    raise StreamsError(f"the handler of {failure.stage} errors answered {response!r}: it must be 'fail' or 'continue'")
