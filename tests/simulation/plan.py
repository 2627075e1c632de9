"""What kind of world a seed makes: how large, how fast, how hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.topics import random_configs

DIRECTORIES = ("/disk1", "/disk2")


@dataclass(slots=True)
class Plan:
    """The choices that are made once for a world."""

    length_ms: float
    latency_ms: float
    sync_ms: float  # how long the background thread takes for a job, at most
    slow_reader: float
    power: float  # how many of the crashes take the power
    crashes: int
    cuts: int
    producers: int
    consumers: int
    admin_acts: int
    fillings: int
    failures: int
    rots: int
    rushes: bool  # the producers all send at the same times, and rest between them
    batches: int  # how many are sent, about
    reuse_names: bool  # topics get the names of deleted ones; then they are written to and read by id alone
    settings: dict[str, str] = field(default_factory=dict)
    topics: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, random: Random) -> Plan:
        plan = cls(
            length_ms=random.choice((400, 1500, 3000)),
            latency_ms=random.choice((0.5, 3, 15)),
            sync_ms=random.choice((0.5, 5, 40)),
            slow_reader=random.choice((0, 0.02, 0.2)),
            power=random.choice((0, 0.5, 1)),
            crashes=random.choice((1, 2, 4)),
            cuts=random.choice((0, 3, 12)),
            producers=random.choice((1, 2, 3, 6)),
            consumers=random.choice((0, 1, 2)),
            admin_acts=random.choice((1, 6, 15)),
            fillings=random.choice((0, 0, 1, 3)),
            failures=random.choice((0, 0, 0, 1, 2)),
            rots=random.choice((0, 0, 0, 1, 3)),
            reuse_names=random.random() < 0.5,
            rushes=random.random() < 0.4,
            batches=random.choice((20, 60, 120)),
        )
        plan.settings = settings(random)
        for number in range(random.choice((1, 2, 3))):
            plan.topics[f"t{number}"] = (random.choice((1, 1, 2)), random_configs(random))
        return plan


def settings(random: Random) -> dict[str, str]:
    return {
        "node.id": "1",
        "log.dirs": ",".join(DIRECTORIES),
        "auto.create.topics.enable": "false",
        "log.retention.check.interval.ms": str(random.choice((200, 700))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((150, 600, 2000))),
        "log.cleaner.backoff.ms": str(random.choice((100, 500))),
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((500, 4000, 1 << 20))),
    }
