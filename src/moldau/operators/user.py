"""Processors of users: any object with `process(record)`; `init(context)` and `close()` if it likes."""

from __future__ import annotations

from typing import Any

from .context import Context
from .errors import StreamsError
from .record import Record


class UserOperator:
    def __init__(self, processor: Any, node: str) -> None:
        self.processor = processor
        self.node = node
        if not callable(getattr(processor, "process", None)):
            raise StreamsError(f"the processor of {node}, a {type(processor).__name__}, has no method process(record)")

    def init(self, context: Context) -> None:
        start = getattr(self.processor, "init", None)
        if start is not None:
            start(self.given(context))

    def given(self, context: Context) -> Any:
        return context

    def process(self, record: Record) -> None:
        self.processor.process(record)

    def close(self) -> None:
        close = getattr(self.processor, "close", None)
        if close is not None:
            close()


class FixedKey(UserOperator):
    """Of process_values: what it forwards must have the key of what it was given, for nothing is repartitioned."""

    key: Any = None

    def given(self, context: Context) -> Any:
        return FixedKeyContext(context, self)

    def process(self, record: Record) -> None:
        before, self.key = self.key, record.key
        self.processor.process(record)
        self.key = before


class FixedKeyContext:
    """A context that refuses records with another key."""

    def __init__(self, context: Context, operator: FixedKey) -> None:
        self._context, self._operator = context, operator

    def forward(self, record: Record, child: str | None = None) -> None:
        key = self._operator.key
        if record.key is not key and record.key != key:
            raise StreamsError(
                f"{self._context.name} forwards the key {record.key!r} for a record of {key!r}: process_values must "
                "keep the key; use process() to change it"
            )
        self._context.forward(record, child)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
