"""What kind of cluster a seed makes: how large, how slow, how hostile."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.cluster.simulation.fabric import CLIENT_PORT, CONTROLLER_PORT, host_name

VOTERS = 3


@dataclass(slots=True)
class Plan:
    """The choices that are made once for a world."""

    length_ms: float
    brokers: int  # that have no vote
    latency_ms: float
    sync_ms: float  # how long the background thread takes for a job, at most
    threads: int
    producers: int
    consumers: int
    pace_ms: float  # between two batches of a producer
    crashes: int
    power_losses: int
    stops: int
    pauses: int
    cuts: int
    resets: int
    spite: float  # how often a machine fails right after a vote; less often after a change of the metadata
    acts: int  # of the administrator
    has_group: bool  # one that commits offsets
    has_transactions: bool
    topics: dict[str, tuple[int, int]]  # partitions and replicas
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, random: Random) -> Plan:
        brokers = random.choice((0, 0, 1, 2))
        topics = {f"t{number}": (random.choice((1, 2, 3)), 3) for number in range(random.choice((1, 2)))}
        return cls(
            length_ms=random.choice((2500, 5000)),
            brokers=brokers,
            latency_ms=random.choice((0.5, 2, 10)),
            sync_ms=random.choice((0.5, 5, 30)),
            threads=random.choice((1, 3)),
            producers=random.choice((1, 2, 3)),
            consumers=random.choice((0, 1, 1)),
            pace_ms=random.choice((20, 50, 100)),
            crashes=random.choice((0, 1, 2, 4)),
            power_losses=random.choice((0, 1, 2)),
            stops=random.choice((0, 0, 1)),
            pauses=random.choice((0, 0, 1, 3)),
            cuts=random.choice((0, 1, 3)),
            resets=random.choice((0, 2, 10)),
            spite=random.choice((0, 0.1, 0.4)),
            acts=random.choice((0, 2, 6)),
            has_group=random.random() < 0.4,
            has_transactions=random.random() < 0.3,
            topics=topics,
            settings=settings(random),
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
    votes, name = place <= VOTERS, host_name(place)
    listeners = [f"PLAINTEXT://{name}:{CLIENT_PORT}"] + [f"CONTROLLER://{name}:{CONTROLLER_PORT}"] * votes
    voters = ",".join(f"{voter}@{host_name(voter)}:{CONTROLLER_PORT}" for voter in range(1, VOTERS + 1))
    return plan.settings | {
        "node.id": str(place),
        "process.roles": "broker,controller" if votes else "broker",
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.quorum.voters": voters,
        "log.dirs": "/disk1",
        "broker.rack": f"r{place}",
    }
