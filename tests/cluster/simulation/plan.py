"""What kind of cluster a seed makes: how large, how slow, how hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from tests.cluster.simulation.fabric import CLIENT_PORT, CONTROLLER_PORT, host_name

DATA = "/disk1"
FACTOR = 3  # replicas of each partition
SYNCED = {"log.flush.interval.messages": "1"}
UNCLEAN = {"unclean.leader.election.enable": "true", "unclean.leader.election.interval.ms": "300"}


class Shape(NamedTuple):
    """How many nodes there are of each kind. Voters and spares are brokers too, apart from those that only vote."""

    voters: int  # when the cluster begins
    spares: int = 0  # controllers that may become voters
    brokers: int = 0  # that are not controllers
    silent: int = 0  # voters that are not brokers
    is_dynamic: bool = False  # the voters stand in the log

    @property
    def nodes(self) -> int:
        return self.voters + self.spares + self.brokers

    def controls(self, place: int) -> bool:
        return place <= self.voters + self.spares

    def serves(self, place: int) -> bool:
        return place > self.silent

    def roles(self, place: int) -> str:
        return ",".join(["broker"] * self.serves(place) + ["controller"] * self.controls(place))


SHAPES = (
    *(Shape(3),) * 4,
    Shape(3, brokers=1),
    Shape(3, brokers=2),
    Shape(3, brokers=3, silent=3),
    Shape(5),
    Shape(3, brokers=4),
    *(Shape(3, spares=1, is_dynamic=True),) * 2,
    Shape(1, spares=2, is_dynamic=True),
    Shape(3, is_dynamic=True),
    Shape(2, spares=2, silent=1, is_dynamic=True),
    Shape(5, spares=2, is_dynamic=True),
)


@dataclass(slots=True)
class Plan:
    """The choices that are made once for a world."""

    length_ms: float
    shape: Shape
    joins: bool  # controllers become voters by themselves
    latency_ms: float
    sync_ms: float  # how long the background thread takes for a job, at most
    threads: int
    producers: int
    consumers: int
    pace_ms: float  # between two batches of a producer
    is_synced: bool  # what is acknowledged is synced on all replicas: any number of machines may lose power
    is_unclean: bool  # whoever lives may lead: any number of machines may lose power, and records may be lost
    crashes: int
    power_losses: int
    blackouts: int  # all machines lose power at once
    stops: int
    rolls: int  # all machines are restarted, one after the other
    jumps: int  # of a wall clock
    fillings: int  # of a disk
    rots: int  # bits that flip in a log; where there are any, nothing else is lost
    pauses: int
    cuts: int
    resets: int
    coups: int  # a controller is left behind, and another has to lead
    spite: float  # how often a machine fails right after a vote; less often after a change of the metadata
    acts: int  # of the administrator
    voter_changes: float  # how many of them are changes of the voters
    lost_disks: float  # how many of the machines that lose power lose all that they have
    has_group: bool  # one that commits offsets
    has_transactions: bool
    has_shares: bool  # a share group
    topics: dict[str, tuple[int, int]]  # partitions and replicas
    fleeting: str | None  # the topic that is deleted and made anew
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, random: Random) -> Plan:
        shape, kind = random.choice(SHAPES), random.random()
        is_synced, is_unclean = kind < 0.2, kind > 0.9
        rots = random.choice((0, 0, 3)) if is_synced else 0
        topics = {f"t{number}": (random.choice((1, 2, 3)), FACTOR) for number in range(random.choice((1, 2)))}
        return cls(
            length_ms=random.choice((2500, 5000)),
            shape=shape,
            joins=shape.is_dynamic and random.random() < 0.5,
            latency_ms=random.choice((0.5, 2, 10)),
            sync_ms=random.choice((0.5, 5, 30)),
            threads=random.choice((1, 3)),
            producers=random.choice((1, 2, 3)),
            consumers=random.choice((0, 1, 1)),
            pace_ms=random.choice((20, 50, 100)),
            is_synced=is_synced,
            is_unclean=is_unclean,
            crashes=random.choice((0, 1, 2, 4)),
            power_losses=random.choice((0, 1, 2)),
            blackouts=random.choice((0, 1)) if is_synced or is_unclean else 0,
            stops=random.choice((0, 0, 1)),
            rolls=random.choice((0, 0, 0, 1)),
            jumps=random.choice((0, 0, 2)),
            fillings=random.choice((0, 0, 0, 2)),
            rots=rots,
            pauses=random.choice((0, 0, 1, 3)),
            cuts=random.choice((0, 1, 3)),
            resets=random.choice((0, 2, 10)),
            coups=random.choice((0, 0, 1, 2)),
            spite=random.choice((0, 0.1, 0.4)),
            acts=random.choice((0, 2, 6)),
            voter_changes=random.choice((0.3, 0.7)) if shape.is_dynamic else random.choice((0, 0, 0.1)),
            lost_disks=0 if rots else random.choice((0, 0.3)),
            has_group=random.random() < 0.4,
            has_transactions=random.random() < 0.3,
            has_shares=random.random() < 0.25,
            topics=topics,
            fleeting="t0" if len(topics) > 1 and random.random() < 0.3 else None,
            settings=settings(random) | (SYNCED if is_synced else UNCLEAN if is_unclean else {}),
        )


def settings(random: Random) -> dict[str, str]:
    """Choose settings with which things happen within the time of a world."""
    session = random.choice((800, 1500, 3000))
    return {
        "auto.create.topics.enable": "false",
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
        "transaction.state.log.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "share.coordinator.state.topic.replication.factor": "3",
        "share.coordinator.state.topic.min.isr": "2",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": "1000",
        "group.share.delivery.count.limit": "10",
        "group.share.initialize.retry.interval.ms": "500",
        "controller.quorum.election.timeout.ms": str(random.choice((50, 200, 1000))),
        "controller.quorum.election.backoff.max.ms": str(random.choice((100, 500))),
        "controller.quorum.fetch.timeout.ms": str(random.choice((700, 1200, 2000))),
        "controller.quorum.request.timeout.ms": str(random.choice((700, 2000))),
        "broker.session.timeout.ms": str(session),
        "broker.heartbeat.interval.ms": str(session // 5),
        "replica.lag.time.max.ms": str(random.choice((700, 2000, 10_000))),
        "replica.fetch.wait.max.ms": str(random.choice((100, 500))),
        "replica.fetch.backoff.ms": str(random.choice((50, 200))),
        "replica.fetch.max.bytes": str(random.choice((500, 1 << 20))),
        "replica.socket.timeout.ms": str(random.choice((1000, 3000))),
        "request.timeout.ms": str(random.choice((1500, 4000))),
        "log.flush.offset.checkpoint.interval.ms": str(random.choice((150, 600, 2000))),
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((500, 3000, 1 << 20))),
        "leader.imbalance.check.interval.seconds": str(random.choice((1, 3, 300))),
    }


def node_settings(plan: Plan, place: int) -> dict[str, str]:
    """Return the settings of one node."""
    shape, name = plan.shape, host_name(place)
    listeners = [f"PLAINTEXT://{name}:{CLIENT_PORT}"] * shape.serves(place)
    listeners += [f"CONTROLLER://{name}:{CONTROLLER_PORT}"] * shape.controls(place)
    return (
        plan.settings
        | quorum_settings(plan)
        | {
            "node.id": str(place),
            "process.roles": shape.roles(place),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": DATA,
            "broker.rack": f"r{place}",
        }
    )


def quorum_settings(plan: Plan) -> dict[str, str]:
    """Return how a node finds the quorum: by voters that are fixed, or by servers that know."""
    controllers = [place for place in range(1, plan.shape.nodes + 1) if plan.shape.controls(place)]
    addresses = {place: f"{host_name(place)}:{CONTROLLER_PORT}" for place in controllers}
    if not plan.shape.is_dynamic:
        return {"controller.quorum.voters": ",".join(f"{place}@{where}" for place, where in addresses.items())}
    return {
        "controller.quorum.bootstrap.servers": ",".join(addresses.values()),
        "controller.quorum.auto.join.enable": str(plan.joins).lower(),
    }
