"""Stores and operators opened for tests: over bytes in memory, which outlive them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.operators.context import Context, Shard
from moldau.operators.record import Raw, Record
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.stores.spec import Opening, StoreSpec

Log = list[tuple[bytes, bytes | None, int]]


def open_store(spec: StoreSpec, content: MemoryBytes, log: Log | None = None, shard: Shard | None = None) -> Any:
    on_change = None if log is None else lambda key, value, timestamp: log.append((key, value, timestamp))
    return spec.open(spec, Opening("changelog", content, on_change, shard or Shard()))


class Bench:
    """Operators of one shard, fed by hand. With `restart` all of them, and their stores, are made anew."""

    def __init__(self, specs: list[StoreSpec], operators: dict[str, Callable[[], Any]]) -> None:
        self.specs, self.operators = specs, operators
        self.content = {spec.name: MemoryBytes() for spec in specs}
        self.emitted: list[Record] = []
        self.offset = 0
        self.restart()

    def restart(self) -> None:
        self.shard = Shard()
        self.shard.stores = {
            spec.name: open_store(spec, self.content[spec.name], None, self.shard) for spec in self.specs
        }
        self.running = {}
        for name, make in self.operators.items():
            context = Context(name, self.shard, frozenset(self.content), {})
            context.emit = context.forward = self.emitted.append
            self.running[name] = make()
            self.running[name].init(context)

    def feed(self, name: str, record: Record) -> list[Record]:
        self.emitted.clear()
        self.shard.source = Raw("in", 0, self.offset, None, None, record.timestamp, record.headers)
        self.shard.record = record
        self.offset += 1
        self.running[name].process(record)
        return list(self.emitted)

    @property
    def dropped(self) -> dict[tuple[str, str], int]:
        return self.shard.dropped
