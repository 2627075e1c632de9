"""What kind of world a seed makes: how large, how fast, how hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.simulation.topics import lasting_configs, random_configs

DIRECTORIES = ("/disk1", "/disk2")
INPUT, OUTPUT, COPY, SHARE = "in", "out", "copy", "share"
OUTPUT_PARTITIONS = 3
"""As many as an administrator makes of the input's."""
FORGETFUL = {
    "transactional.id.expiration.ms": "3000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
}
KINDS = ("eager", "cooperative", "consumer")
STREAMS = "streams"
CHANGELOG = "-store-changelog"
MADE_AGAIN_MS = 1100
"""By then a partition that a full disk has prevented is made, if there is room again."""


@dataclass(slots=True)
class Plan:
    """The choices that are made once for a world."""

    length_ms: float
    latency_ms: float
    sync_ms: float  # how long the background thread takes for a job, at most
    threads: int  # that do background jobs; with several, a job may overtake another
    sync_failures: float  # how many of the background syncs fail
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
    groups: tuple[str, ...] = ()  # the protocols of groups that read the input
    copies: str | None = None  # the protocol of the group that copies the input to the output
    stateful: bool = False  # whether streams groups have a topic of their own, which fits the input as it is
    shares: bool = False  # whether a share group reads the input
    deliveries: int = 5  # of a record to the share group, at most
    transactions: int = 2  # the version of the copiers' transactions
    members: int = 2  # of each group
    static: bool = False
    crowd_acts: int = 1  # how often something happens to clients
    session_ms: int = 300
    rebalance_ms: int = 1000
    pause_ms: float = 10  # between two things that a client of a group does
    spite: float = 0.0  # how often a crash is laid in the way of a transaction
    small_internal: bool = False  # internal topics have small segments, which are compacted
    synced: bool = False  # whatever groups and transactions are told is synced first, and so is what they read
    strikes: int = 0  # how often the power goes right after an answer, while something is not synced yet
    settings: dict[str, str] = field(default_factory=dict)
    topics: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, random: Random, synced: bool = False) -> Plan:
        """Throw the dice; with `synced` for a world in which every promise is synced first."""
        plan = cls(
            length_ms=random.choice((400, 1500, 3000)),
            latency_ms=random.choice((0.5, 3, 15)),
            sync_ms=random.choice((0.5, 5, 40)),
            threads=random.choice((1, 3)),
            sync_failures=random.choice((0, 0, 0, 0.01, 0.05)),
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
        if random.random() < 0.6 or synced:
            plan.invite(random, synced)
        for number in range(random.choice((1, 2, 3)) if INPUT not in plan.topics else 1):
            plan.topics[f"t{number}"] = (random.choice((1, 1, 2)), random_configs(random))
        return plan

    def invite(self, random: Random, synced: bool) -> None:
        """Clients that read in groups, or copy, or both."""
        kind = random.choice(("groups", "copies", "copies", "both", "shares", "shares"))
        self.shares = kind == "shares"
        if kind in ("groups", "both") or (self.shares and random.random() < 0.2):
            self.groups = tuple(random.choice((*KINDS, STREAMS)) for _ in range(random.choice((1, 1, 2))))
        if kind in ("copies", "both"):
            self.copies = random.choice(KINDS)
        self.stateful = STREAMS in self.groups and random.random() < 0.5
        self.length_ms = random.choice((800, 1500, 3000))
        self.power = random.choice((0, 0, 0, 0.3))
        self.transactions = random.choice((1, 2, 2))
        self.members = random.choice((1, 2, 3))
        self.static = random.random() < 0.3
        self.crowd_acts = random.choice((1, 8, 25))
        if random.random() < 0.3 or synced:
            self.synced, self.power = True, 0.5
            self.strikes = random.choice((4, 12) if synced else (0, 2, 6))
            self.sync_ms = min(self.sync_ms, 5)  # a heartbeat must be answered well within a session
        self.session_ms = 400 if self.synced else random.choice((150, 400))
        self.rebalance_ms = random.choice((100, 300, 1000))
        self.pause_ms = random.choice((4, 10, 25))
        self.spite = random.choice((0, 0.02, 0.15))
        self.small_internal = random.random() < 0.6
        self.producers, self.batches = min(self.producers, 3), min(self.batches, 60)
        self.consumers = min(self.consumers, 1)
        self.topics[INPUT] = (random.choice((1, 2, 3)), lasting_configs(random))
        self.deliveries = random.choice((2, 5, 10))
        self.settings |= coordinator_settings(random, self.session_ms) | self.share_settings(random)
        if random.random() < 0.2:
            self.settings |= FORGETFUL
        if self.synced:
            self.settings["log.flush.interval.messages"] = "1"

    def share_settings(self, random: Random) -> dict[str, str]:
        """Locks end as soon as Kafka allows it, and the state is pruned within the time of a world."""
        return {
            "share.coordinator.state.topic.num.partitions": str(random.choice((1, 2))),
            "share.coordinator.snapshot.update.records.per.snapshot": str(random.choice((0, 3, 100))),
            "share.coordinator.state.topic.prune.interval.ms": str(random.choice((200, 1000))),
            "group.share.min.session.timeout.ms": "1",
            "group.share.session.timeout.ms": str(self.session_ms),
            "group.share.min.heartbeat.interval.ms": "1",
            "group.share.heartbeat.interval.ms": str(self.session_ms // 5),
            "group.share.assignment.interval.ms": str(random.choice((0, 50, 1000))),
            "group.share.min.record.lock.duration.ms": "1000",
            "group.share.record.lock.duration.ms": "1000",
            "group.share.delivery.count.limit": str(self.deliveries),
            "group.share.partition.max.record.locks": str(random.choice((100, 2000))),
        }


def coordinator_settings(random: Random, session_ms: int) -> dict[str, str]:
    """Small and fast: sessions and transactions end within the time of a world."""
    return {
        "offsets.topic.num.partitions": str(random.choice((1, 2))),
        "transaction.state.log.num.partitions": str(random.choice((1, 2))),
        "group.initial.rebalance.delay.ms": str(random.choice((0, 20, 100))),
        "group.min.session.timeout.ms": "1",
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.session.timeout.ms": str(session_ms),
        "group.consumer.min.heartbeat.interval.ms": "1",
        "group.consumer.heartbeat.interval.ms": str(session_ms // 5),
        "group.consumer.assignment.interval.ms": str(random.choice((0, 50, 1000))),
        "group.streams.min.session.timeout.ms": "1",
        "group.streams.session.timeout.ms": str(session_ms),
        "group.streams.min.heartbeat.interval.ms": "1",
        "group.streams.heartbeat.interval.ms": str(session_ms // 5),
        "group.streams.assignment.interval.ms": str(random.choice((0, 50, 1000))),
        "group.streams.initial.rebalance.delay.ms": str(random.choice((0, 20, 100))),
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(random.choice((30, 200))),
    }


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
