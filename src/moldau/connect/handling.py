"""Errors of single records: tried again, tolerated, logged, reported; and the text of a failure.

An operation on a record (a converter, a transform, a sink's own put) may fail. A failure that may pass is tried again
for `errors.retry.timeout`. After that, `errors.tolerance` decides whether the task fails or the record is left out; one
that is left out is logged and, of a sink, written to the dead-letter topic.
"""

from __future__ import annotations

import logging
import random
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from moldau.connect.errors import ConnectError, GoneError, RetriableError, java_name
from moldau.connect.metrics import Figures

log = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_PAUSE_MS = 300
KEY, VALUE, HEADER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"
TRANSFORM, PUT, PRODUCE = "TRANSFORMATION", "TASK_PUT", "KAFKA_PRODUCE"
PREFIX = "__connect.errors."


class Tolerated(Exception):
    """The record is to be left out."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the settings of a connector say of errors."""

    tolerates: bool = False
    retry_timeout_ms: int = 0  # -1: without end
    retry_delay_max_ms: int = 60_000
    logs: bool = False
    logs_messages: bool = False
    dead_letters: str = ""
    dead_letter_replicas: int = 3
    dead_letter_headers: bool = False

    @staticmethod
    def of(config: Mapping[str, str], *, has_letters: bool = True) -> Policy:
        """Read the settings of a sink, or those of a source, which has no dead letters and ignores their settings."""

        def flag(name: str) -> bool:
            return config.get(name, "false").strip().lower() == "true"

        return Policy(
            config.get("errors.tolerance", "none").lower() == "all",
            int(config.get("errors.retry.timeout", "0")),
            int(config.get("errors.retry.delay.max.ms", "60000")),
            flag("errors.log.enable"),
            flag("errors.log.include.messages"),
            config.get("errors.deadletterqueue.topic.name", "") if has_letters else "",
            int(config.get("errors.deadletterqueue.topic.replication.factor", "3")) if has_letters else 3,
            flag("errors.deadletterqueue.context.headers.enable"),
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A record that failed: at which stage, in which class, and why. `raw` is what was read from Kafka, of a sink."""

    stage: str
    class_name: str
    error: Exception
    raw: Any = None


class Handler:
    """Runs operations of one task. `dead_letter` writes a record that is left out, of a sink."""

    def __init__(
        self,
        task: str,
        policy: Policy,
        wait: Callable[[float], bool],
        dead_letter: Callable[[Failure], None] | None = None,
        figures: Figures | None = None,
    ) -> None:
        self.policy, self._figures = policy, figures or Figures()
        self._task, self._wait, self._dead_letter = task, wait, dead_letter

    def run(self, stage: str, class_name: str, operation: Callable[[], T], raw: Any = None) -> T:
        """Return what the operation returns; Tolerated where the record is to be left out."""
        began, pause_ms = time.monotonic(), FIRST_PAUSE_MS
        while True:
            try:
                return operation()
            except RetriableError as error:
                self._figures.errors += 1
                spent_ms = (time.monotonic() - began) * 1000
                most = self.policy.retry_timeout_ms
                if 0 <= most <= spent_ms + pause_ms or self._wait(self._pause_s(pause_ms)):
                    self.refuse(Failure(stage, class_name, error, raw))
                pause_ms *= 2
                self._figures.retries += 1
            except GoneError:
                raise
            except Exception as error:  # of a converter, a transform or a connector
                self._figures.errors += 1
                return self.refuse(Failure(stage, class_name, error, raw))

    def _pause_s(self, pause_ms: int) -> float:
        most = self.policy.retry_delay_max_ms
        return (pause_ms if pause_ms < most else random.uniform(0, most)) / 1000

    def refuse(self, failure: Failure) -> NoReturn:
        """Log and report a record; raise Tolerated, or the error that fails the task."""
        self._figures.failures += 1
        if self.policy.logs:
            self._figures.logged += 1
            log.error("%s", self._line(failure), exc_info=failure.error)
        if self._dead_letter is not None and self.policy.dead_letters and failure.raw is not None:
            self._figures.letters += 1
            self._dead_letter(failure)
        if self.policy.tolerates:
            self._figures.skipped += 1
            raise Tolerated from failure.error
        raise ConnectError("Tolerance exceeded in error handler") from failure.error

    def _line(self, failure: Failure) -> str:
        said = f"Error encountered in task {self._task}. Executing stage '{failure.stage}' with class"
        line = f"{said} '{failure.class_name}'"
        raw = failure.raw
        if self.policy.logs_messages and raw is not None:
            where = f"topic='{raw.topic()}', partition={raw.partition()}, offset={raw.offset()}"
            line += f", where consumed record is {{{where}, timestamp={raw.timestamp()[1]}}}"
        return line + "."


def dead_letter_headers(failure: Failure, connector: str, task: int) -> list[tuple[str, bytes]]:
    """Return the headers in which Connect says why a record is a dead letter."""
    raw, error = failure.raw, failure.error
    fields = {
        "topic": raw.topic(),
        "partition": raw.partition(),
        "offset": raw.offset(),
        "connector.name": connector,
        "task.id": task,
        "stage": failure.stage,
        "class.name": failure.class_name,
        "exception.class.name": java_name(error),
        "exception.message": str(error),
        "exception.stacktrace": trace_of(error),
    }
    return [(PREFIX + name, str(value).encode()) for name, value in fields.items()]


def trace_of(error: BaseException) -> str:
    """Describe a failure as Java does: classes and messages, causes last, with Python's lines between."""
    parts: list[str] = []
    one: BaseException | None = error
    while one is not None and len(parts) < 20:
        lines = "".join(
            f"\tat {frame.name}({frame.filename.rpartition('/')[2]}:{frame.lineno})\n"
            for frame in reversed(traceback.extract_tb(one.__traceback__))
        )
        told = getattr(one, "java_trace", None) or f"{java_name(one)}: {one}\n{lines}"  # a Java plugin's has its own
        parts.append(f"{'Caused by: ' if parts else ''}{told}")
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return "".join(parts)
