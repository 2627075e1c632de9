"""The topics of a world as the model knows them, and the random settings that they get."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.simulation.ledger import FOREVER, Ledger

SEGMENT_BYTES = (500, 700, 1000, 2000, 6000)
CODECS = ("producer", "producer", "gzip", "snappy", "lz4", "zstd", "uncompressed")


@dataclass(slots=True, eq=False)
class Topic:
    """A topic that was created, with its ledgers. Settings are text, as in a request."""

    name: str
    configs: dict[str, str]
    id: bytes = bytes(16)
    ledgers: list[Ledger] = field(default_factory=list)
    shortest_retention_ms: int = FOREVER
    smallest_retention_bytes: int = FOREVER
    was_compacted: bool = False
    doomed: bool = False  # its deletion was asked for
    lasting: bool = False  # all of it is kept, because groups read it

    def __post_init__(self) -> None:
        self.note_retention()

    def note_retention(self) -> None:
        """Remember the strictest retention that ever held: what has gone under it may be gone."""
        self.may_become("", "")

    def may_become(self, name: str, value: str) -> None:
        """This setting may hold from now on, or not."""
        configs = self.configs | {name: value}
        policy = configs.get("cleanup.policy", "delete")
        self.was_compacted = self.was_compacted or "compact" in policy
        if "delete" in policy:
            ms, size = int(configs.get("retention.ms", "604800000")), int(configs.get("retention.bytes", -1))
            self.shortest_retention_ms = min(self.shortest_retention_ms, ms if ms >= 0 else FOREVER)
            self.smallest_retention_bytes = min(self.smallest_retention_bytes, size if size >= 0 else FOREVER)

    @property
    def flush_messages(self) -> int:
        return int(self.configs.get("flush.messages", FOREVER))

    @property
    def flush_ms(self) -> int:
        return int(self.configs.get("flush.ms", FOREVER))

    @property
    def compacted(self) -> bool:
        return self.was_compacted

    @property
    def append_time(self) -> bool:
        return self.configs.get("message.timestamp.type") == "LogAppendTime"

    def is_in(self, image: dict[str, Any]) -> bool:
        return self.name in image and image[self.name].id == self.id

    def extend(self, partitions: int) -> None:
        self.ledgers += [Ledger(self, index) for index in range(len(self.ledgers), partitions)]


def random_configs(random: Random) -> dict[str, str]:
    """Small segments and indexes, so that a few dozen batches roll, flush and expire."""
    configs = {"internal.segment.bytes": str(random.choice(SEGMENT_BYTES))}
    some = random.random
    if some() < 0.45:
        configs["flush.messages"] = str(random.choice((1, 1, 1, 4)))
    if some() < 0.3:
        configs["flush.ms"] = str(random.choice((100, 500, 1500)))
    if some() < 0.6:
        configs["index.interval.bytes"] = str(random.choice((0, 100, 400)))
    if some() < 0.2:
        configs["retention.ms"] = str(random.choice((500, 2000, 4000)))
    if some() < 0.2:
        configs["retention.bytes"] = str(random.choice((0, 1000, 4000)))
    if some() < 0.25:
        configs["cleanup.policy"] = random.choice(("compact", "compact", "compact,delete"))
        configs["min.cleanable.dirty.ratio"] = random.choice(("0.0", "0.3"))
        configs["delete.retention.ms"] = str(random.choice((0, 500, 86400000)))
    if some() < 0.2:
        configs["message.timestamp.type"] = "LogAppendTime"
    if some() < 0.3:
        configs["segment.ms"] = str(random.choice((300, 2000)))
    configs["file.delete.delay.ms"] = str(random.choice((0, 300, 2000)))
    codec = random.choice(CODECS)
    return configs if codec == "producer" else {**configs, "compression.type": codec}


def lasting_configs(random: Random) -> dict[str, str]:
    """The same, for topics from which nothing may go."""
    configs = {"internal.segment.bytes": str(random.choice(SEGMENT_BYTES)), "retention.ms": "-1"}
    if random.random() < 0.3:
        configs["index.interval.bytes"] = str(random.choice((0, 100, 400)))
    if random.random() < 0.2:
        configs["flush.messages"] = "1"
    if random.random() < 0.2:
        configs["message.timestamp.type"] = "LogAppendTime"
    return configs


CHANGES = {
    "internal.segment.bytes": ("700", "1500", "5000"),
    "retention.ms": ("500", "3000", "604800000"),
    "retention.bytes": ("-1", "2000"),
    "index.interval.bytes": ("0", "150", "4096"),
    "segment.ms": ("200", "604800000"),
    "file.delete.delay.ms": ("0", "1000"),
    "compression.type": CODECS,
    "min.cleanable.dirty.ratio": ("0.0", "0.9"),
}


def changed_config(random: Random, lasting: bool) -> tuple[str, str]:
    name = random.choice([name for name in CHANGES if not (lasting and name.startswith("retention"))])
    return name, random.choice(CHANGES[name])
