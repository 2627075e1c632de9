"""The state of the keys: what the records of their topic say. It changes by `replay` alone."""

from __future__ import annotations

from moldau.registry.keys.records import Dek, Kek, Record
from moldau.serdes.encryption.ciphers import ALGORITHMS

Place = tuple[str, str, str, int]  # KEK, subject, algorithm, version
ORDER = {name: number for number, name in enumerate(ALGORITHMS)}


def place_of(dek: Dek) -> Place:
    return dek.kek, dek.subject, dek.algorithm, dek.version


def order(dek: Dek) -> tuple[str, str, int, int]:
    return dek.kek, dek.subject, ORDER.get(dek.algorithm, len(ORDER)), dek.version


class KeyStore:
    """All keys. The thread that reads the topic replays while others read: readers copy what they walk over."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: the topic was made again, and is read from its start."""
        self._keks: dict[str, Kek] = {}
        self._deks: dict[str, dict[Place, Dek]] = {}  # by the name of the KEK

    def replay(self, record: Record) -> None:
        """Take in a record: nothing else changes the store."""
        key = record.key
        if isinstance(key, Kek):
            self._keks.pop(key.name, None)
            if not record.gone:
                self._keks[key.name] = key
        elif isinstance(key, Dek):
            among = self._deks.setdefault(key.kek, {})
            among.pop(place_of(key), None)
            if not record.gone:
                among[place_of(key)] = key

    def count(self, kind: type[Kek] | type[Dek]) -> int:
        return len(self._keks) if kind is Kek else sum(len(among) for among in list(self._deks.values()))

    def kek(self, name: str, *, deleted: bool = False) -> Kek | None:
        found = self._keks.get(name)
        return found if found and (deleted or not found.deleted) else None

    def keks(self, *, deleted: bool = False) -> list[Kek]:
        every = [kek for kek in list(self._keks.values()) if deleted or not kek.deleted]
        return sorted(every, key=lambda kek: kek.name)

    def dek(self, kek: str, subject: str, algorithm: str, version: int, *, deleted: bool = False) -> Dek | None:
        found = self._deks.get(kek, {}).get((kek, subject, algorithm, version))
        return found if found and (deleted or not found.deleted) else None

    def deks(self, kek: str | None = None, *, deleted: bool = False) -> list[Dek]:
        """Return the data keys of a KEK, or of all, in the order of subjects, algorithms and versions."""
        tables = list(self._deks.values()) if kek is None else [self._deks.get(kek, {})]
        every = [dek for table in tables for dek in list(table.values()) if deleted or not dek.deleted]
        return sorted(every, key=order)

    def versions(self, kek: str, subject: str, algorithm: str, *, deleted: bool = False) -> list[Dek]:
        every = self.deks(kek, deleted=deleted)
        return [dek for dek in every if (dek.subject, dek.algorithm) == (subject, algorithm)]
