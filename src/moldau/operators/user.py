"""Processors of users: any object with `process(record)`, and if needed with `init(context)` and `close()`."""

from __future__ import annotations

from typing import Any

from .columns import Columns
from .context import Context
from .errors import StreamsError
from .record import Record


class ForColumns:
    """The base of processors and transformers of our own that take columns too. They look at nothing but the record,
    and where it was read: neither at stores nor at the context's time.
    """

    def process_all(self, columns: Columns) -> Columns:
        """Return what goes on to the next node."""
        raise NotImplementedError


def call_if_defined(user_object: Any, method: str, *arguments: Any) -> None:
    defined = getattr(user_object, method, None)
    if defined is not None:
        defined(*arguments)


class UserOperator:
    """A user's processor as an operator."""

    def __init__(self, processor: Any, node: str) -> None:
        self.processor = processor
        self.node = node
        if not callable(getattr(processor, "process", None)):
            raise StreamsError(f"the processor of {node}, a {type(processor).__name__}, has no method process(record)")

    def init(self, context: Context) -> None:
        call_if_defined(self.processor, "init", context)

    def process(self, record: Record) -> None:
        self.processor.process(record)

    def close(self) -> None:
        call_if_defined(self.processor, "close")


class FixedKey(UserOperator):
    """A processor of process_values. It must keep the key of each record, because nothing is repartitioned."""

    key: Any = None

    def init(self, context: Context) -> None:
        self.in_columns = isinstance(self.processor, ForColumns)
        call_if_defined(self.processor, "init", FixedKeyContext(context, self))

    def process(self, record: Record) -> None:
        before, self.key = self.key, record.key
        self.processor.process(record)
        self.key = before

    def process_all(self, columns: Columns) -> Columns:
        return self.processor.process_all(columns)


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
