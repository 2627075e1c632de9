"""The processing log: an entry for each record, or each value, that a query could not read, compute or write.

An entry has ksqlDB's fields. Exactly one part of its message is not null, and `type` is the place of that part.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .codegen import Report, Row

PARTS = (
    "deserializationError",
    "recordProcessingError",
    "productionError",
    "serializationError",
    "kafkaStreamsThreadError",
)
MAX_CAUSES = 20


@dataclass(frozen=True, slots=True)
class ProcessingLog:
    """Where entries go. Rows are a part of them only if `include_rows` (ksql.logging.processing.rows.include)."""

    emit: Callable[[dict[str, Any]], None]
    include_rows: bool = False
    clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000

    def step(self, query_id: str, context: str) -> Report:
        """Return what a step calls for a value that it could not compute."""
        name = logger(query_id, context)

        def report(message: str, cause: BaseException, row: Row) -> None:
            record = json.dumps(row, default=str, ensure_ascii=False) if self.include_rows else None
            self.add(name, "recordProcessingError", errorMessage=message, record=record, cause=causes(cause))

        return report

    def reader(self, query_id: str, context: str, topic: str, target: str) -> Callable[[bytes, BaseException], None]:
        """Return what a source calls for bytes that it could not read; `target` is key or value."""
        name = logger(query_id, f"{context}/deserializer")

        def report(data: bytes, cause: BaseException) -> None:
            shown = base64.b64encode(data).decode() if self.include_rows else None
            self.add(
                name,
                "deserializationError",
                target=target,
                errorMessage=f"Error deserializing message from topic: {topic}",
                recordB64=shown,
                cause=[*causes(cause)],
                topic=topic,
            )

        return report

    def add(self, name: str, part: str, **fields: Any) -> None:
        """Emit an entry."""
        message: dict[str, Any] = {"type": PARTS.index(part), **dict.fromkeys(PARTS)}
        message[part] = fields
        self.emit({"level": "ERROR", "logger": name, "time": self.clock(), "message": message})


def logger(query_id: str, context: str) -> str:
    return f"processing.{step_name(query_id, context)}"


def step_name(query_id: str, context: str) -> str:
    """Return ksqlDB's name of a step of a query."""
    return f"{query_id}.{context.replace('/', '.')}"


def causes(error: BaseException) -> list[str]:
    """Return the message of an error and of what caused it."""
    found: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(found) < MAX_CAUSES:
        found.append(str(cause) or type(cause).__name__)
        cause = cause.__cause__
    return found
