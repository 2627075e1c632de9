"""What is known of transactions: what each has written, and whether its records may, must or must never be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tests.simulation.properties import Broken, Property


class Fate(Enum):
    """Until its commit is asked for nobody may see a transaction; until the answer nobody knows."""

    NEVER = "aborted, or never ended by its producer"
    DOUBT = "asked to commit, without an answer"
    COMMITTED = "told to be committed"


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction of a copier: the input offsets whose copies it has written, by partition."""

    number: int
    who: str
    fate: Fate = Fate.NEVER
    written: dict[int, list[int]] = field(default_factory=dict)
    seen: dict[int, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.who} ({self.fate.value})"


class Identity(NamedTuple):
    """A producer id with its epoch."""

    producer_id: int
    epoch: int


class Book:
    """All transactions of a world, and who owns which transactional id since when."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self.owners: dict[str, tuple[Identity, float]] = {}

    def begin(self, who: str) -> Transaction:
        one = Transaction(len(self.transactions), who)
        self.transactions.append(one)
        return one

    def owns(self, transactional_id: str, identity: Identity, now_ms: float) -> bool:
        """A producer was told who it is: all before it are fenced from now on. Whether its producer id is a new one."""
        known = self.owners.get(transactional_id)
        if known is None or identity > known[0]:
            self.owners[transactional_id] = identity, now_ms
        return known is None or identity.producer_id > known[0].producer_id

    def check_fencing(self, transactional_id: str, identity: Identity, sent_ms: float) -> None:
        """A request that was sent then was answered well."""
        newer, since_ms = self.owners[transactional_id]
        if newer > identity and since_ms < sent_ms:
            raise Broken(Property.FENCED, f"{transactional_id}: {identity} did something after {newer} had begun")

    def check_whole(self) -> None:
        """At the end: all of a transaction was seen, or nothing."""
        for one in self.transactions:
            if one.seen and one.seen != one.written:
                raise Broken(Property.ATOMIC, f"{one} has written {one.written}, of which {one.seen} is seen")
            if one.fate is Fate.COMMITTED and one.written and not one.seen:
                raise Broken(Property.ATOMIC, f"{one} has written {one.written}, and nothing is seen")
