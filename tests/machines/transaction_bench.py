"""A machine of transactions, the records it has committed, and a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from moldau.broker import coordinators
from moldau.machines.effects import Effects, Promise
from moldau.machines.transactions import Identity, Limits, Outcome, State, Transactions
from moldau.wire.errors import Error
from moldau.wire.records import Record

TOPIC = "__transaction_state"
T0, T1 = ("t", 0), ("t", 1)
MINUTE = 60_000
DEFAULTS = Limits()


@dataclass
class Bench:
    """A machine, the records it has committed, and a clock."""

    version: int = 2
    limits: Limits = DEFAULTS
    now_ms: int = 1_700_000_000_000
    ids: Any = field(default_factory=lambda: count(100))
    log: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = self.load()

    def load(self) -> Transactions:
        """A machine as a restart makes it."""
        machine = Transactions(self.limits, lambda: next(self.ids), lambda: self.version)
        for record in self.log:
            key, value = coordinators.decode(TOPIC, record)
            machine.replay(key, value, -1)
        machine.loaded(self.now_ms)
        return machine

    def run(self, effects: Effects) -> Any:
        """As the runtime does: commit, replay, answer."""
        for change in effects.changes:
            self.log.append(Record(0, self.now_ms, *coordinators.encode(change)))
        for change in effects.changes:
            self.machine.replay(change.key, change.value, -1)
        return effects.answers[0][1] if effects.answers else None

    def init(self, name: str = "x", expected: Identity | None = None, timeout_ms: int = MINUTE) -> Outcome:
        return self.run(self.machine.init_producer_id(Promise(Outcome), name, timeout_ms, expected, self.now_ms))

    def add(self, producer: Identity, *partitions: tuple[str, int], name: str = "x", client: int = 2) -> Error:
        return self.run(self.machine.add_partitions(Promise(Outcome), name, producer, partitions, client, self.now_ms))

    def end(self, producer: Identity, commit: bool = True, name: str = "x", client: int = 2) -> Outcome:
        return self.run(self.machine.end(Promise(Outcome), name, producer, commit, client, self.now_ms))

    def settle(self) -> None:
        """All markers are written."""
        for name in list(self.machine.unmarked):
            self.run(self.machine.marked(name, self.now_ms))

    def tick(self, ms: int) -> None:
        self.now_ms += ms
        self.run(self.machine.tick(self.now_ms))

    def state(self, name: str = "x") -> State:
        return self.machine.by_id[name].state
