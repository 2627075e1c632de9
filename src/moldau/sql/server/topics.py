"""What the server needs of a Kafka cluster, and a cluster in memory."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from moldau.operators.record import Produced, Raw
from moldau.wire.numbers import murmur2

Positions = dict[int, int]  # partition -> offset
LOOK_S = 0.005  # between two looks at topics in memory


class Topics(Protocol):
    """Topics by name. A topic that does not exist has no partitions."""

    def partitions(self, topic: str) -> int: ...

    def replicas(self, topic: str) -> int: ...

    def names(self) -> list[str]: ...

    def readers(self) -> dict[str, dict[str, int]]:
        """Return for each topic the consumer groups that read it, with how many members of each do."""
        ...

    def create(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None: ...

    def delete(self, topic: str) -> None: ...

    def append(self, written: Iterable[Produced]) -> None:
        """Write records; return when they are committed."""
        ...

    def read(self, topic: str, positions: Positions) -> list[Raw]:
        """Return some of the records from the positions on; none if there are no more at the moment.

        Positions move on only past what holds no records, such as markers of transactions.
        """
        ...

    def read_closely(self, topic: str, positions: Positions) -> tuple[list[Raw], Positions]:
        """Read as `read` does; return also the first offset of each partition whose record was removed from the log."""
        ...

    def wait(self, positions: Mapping[str, Positions], timeout_s: float) -> set[str]:
        """Wait for records from the positions on; return the topics that have any, none when the time is up."""
        ...

    def uncompacted_ms(self, topic: str) -> int:
        """Return how young a record must be to stay even if a later one has its key."""
        ...

    def starts(self, topic: str) -> Positions: ...

    def ends(self, topic: str) -> Positions: ...


class Checkpoints(Protocol):
    """Where it is noted how far queries have come."""

    def load(self, application: str) -> tuple[dict[str, Positions], dict[str, Positions]]:
        """Return where the query began in each topic, and up to where its results were written."""
        ...

    def save(self, application: str, origins: Mapping[str, Positions], done: Mapping[str, Positions]) -> None: ...


def place(record: Produced, count: int) -> int:
    """Return the partition of a record: the one it names, or the key's."""
    if record.partition is not None:
        return record.partition
    return 0 if record.key is None else place_of_key(record.key, count)


def place_of_key(key: bytes, count: int) -> int:
    return 0 if count == 1 else (murmur2(key) & 0x7FFFFFFF) % count


@dataclass(slots=True)
class MemoryTopics:
    """Topics in memory, for test cases and for `--ephemeral`. A topic that is written first is made with `default`."""

    default: int = 1
    logs: dict[str, list[list[Raw]]] = field(default_factory=dict)
    turn: dict[str, int] = field(default_factory=dict)  # where the next record without a key goes

    def partitions(self, topic: str) -> int:
        return len(self.logs.get(topic, ()))

    def replicas(self, topic: str) -> int:
        return 1

    def names(self) -> list[str]:
        return sorted(self.logs)

    def readers(self) -> dict[str, dict[str, int]]:
        return {}

    def create(self, topic: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        self.logs.setdefault(topic, [[] for _ in range(partitions)])

    def delete(self, topic: str) -> None:
        self.logs.pop(topic, None)

    def append(self, written: Iterable[Produced]) -> None:
        for record in written:
            logs = self.logs.setdefault(record.topic, [[] for _ in range(self.default)])
            partition = self._place(record, len(logs))
            log = logs[partition]
            log.append(
                Raw(
                    record.topic,
                    partition,
                    len(log),
                    record.key,
                    record.value,
                    record.timestamp,
                    record.headers,
                )
            )

    def _place(self, record: Produced, count: int) -> int:
        if record.key is None and record.partition is None:
            self.turn[record.topic] = (self.turn.get(record.topic, -1) + 1) % count
            return self.turn[record.topic]
        return place(record, count)

    def read(self, topic: str, positions: Positions) -> list[Raw]:
        found: list[Raw] = []
        for partition, log in enumerate(self.logs.get(topic, ())):
            found += log[positions.get(partition, 0) :]
        return found

    def read_closely(self, topic: str, positions: Positions) -> tuple[list[Raw], Positions]:
        return self.read(topic, positions), {}

    def wait(self, positions: Mapping[str, Positions], timeout_s: float) -> set[str]:
        deadline = time.monotonic() + timeout_s
        while not (found := {topic for topic, reached in positions.items() if self._goes_on(topic, reached)}):
            if time.monotonic() >= deadline:
                break
            time.sleep(LOOK_S)
        return found

    def _goes_on(self, topic: str, reached: Positions) -> bool:
        return any(end > reached.get(partition, 0) for partition, end in self.ends(topic).items())

    def uncompacted_ms(self, topic: str) -> int:
        return 0

    def starts(self, topic: str) -> Positions:
        return dict.fromkeys(range(self.partitions(topic)), 0)

    def ends(self, topic: str) -> Positions:
        return {partition: len(log) for partition, log in enumerate(self.logs.get(topic, ()))}
