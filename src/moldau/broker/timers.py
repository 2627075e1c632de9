"""What the node does by the clock: retention, flushes, checkpoints, deletion. A row each."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau import logs
from moldau.broker.share.state import prune, refresh_cold
from moldau.broker.work import BUSY, Work
from moldau.log.retention import retain
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.controller import Controller
    from moldau.broker.node import Node

log = logs.get(__name__)


class Timer(NamedTuple):
    """How often (a setting, or milliseconds where Kafka has no setting for it), and what."""

    interval: str | int
    run: Callable[[Node], object]


def interval_ms(node: Node, timer: Timer) -> float:
    """Return how often something is done, as it is set now; 0 means never."""
    interval = timer.interval
    if isinstance(interval, int):
        return interval
    return node.settings[interval] * (1000 if interval.endswith(".seconds") else 1) or inf


def flush_due(node: Node) -> None:
    """Sync what is due by flush.ms, and segments that were rolled, in the background.

    Also what somebody waits for although a sync could not be prepared: the disk may have room again, or be gone.
    """
    now = node.clock.wall_ms()
    for partition in (node.metadata.home, *node.replicas):
        if partition.log.flush_due(now):
            node.replicas.flush(partition)
        if partition.uncommitted:
            node.replicas.advanced(partition)


def retain_all(node: Node) -> Work:
    """Delete segments that are too old, too many, or before the start of their log; a log at a time."""
    for partition in list(node.replicas):
        if partition.log.offline is None:
            try:
                for segment, why in retain(partition.log, node.clock.wall_ms()):
                    log.info("deleted a segment", partition=str(partition), base_offset=segment.base_offset, why=why)
                    node.replication.touch(partition)
            except Refused as refused:
                log.error("retention failed", partition=str(partition), reason=refused.message)
            yield BUSY


def sweep(node: Node) -> None:
    """Remove files whose delete delay is over, in the background: a large one takes its time."""
    for directory in node.replicas.directories:
        directory.sweep(node.clock.wall_ms(), lambda work: node.background.submit(work, report_removal))


def report_removal(outcome: Any) -> None:
    if isinstance(outcome, BaseException):
        log.warning("a deleted file cannot be removed, and is left to the next start", reason=str(outcome))


def expire_producers(node: Node) -> None:
    now = node.clock.wall_ms()
    for partition in node.replicas:
        if partition.log.active is not None:
            partition.log.producers.expire(now, partition.log.config.producer_id_expiration_ms)


def snapshot_metadata(node: Node) -> None:
    """Keep the metadata log short: a snapshot when enough was written since the last one, or it is old."""
    metadata, settings = node.metadata, node.settings
    interval_ms = settings["metadata.log.max.snapshot.interval.ms"] or inf
    is_old = node.clock.monotonic_ms() - metadata.snapshot_ms >= interval_ms and metadata.bytes_since_snapshot > 0
    if is_old or metadata.bytes_since_snapshot >= settings["metadata.log.max.record.bytes.between.snapshots"]:
        metadata.write_snapshot()


def compact(node: Node) -> None:
    """Look for a log that wants compaction, unless one is being compacted."""
    if node.settings["log.cleaner.enable"] and node.cleaner.current is None:
        from moldau.broker.compacting import compact_all

        node.work.add(compact_all(node))


def expire_tokens(node: Node) -> None:
    """Remove delegation tokens that have ended, where the metadata is decided."""
    if not node.cluster.tokens or (node.quorum is not None and node.controller is None):
        return
    from moldau.machines.metadata.tokens import removals

    proposal = node.metadata.propose()
    ended = removals(proposal.image.tokens, node.clock.wall_ms())
    if ended:
        proposal.add(ended)
        proposal.commit()


TIMERS = (
    Timer(1000, flush_due),
    Timer(1000, sweep),
    Timer(1000, lambda node: node.replicas.open_missing()),
    Timer("log.retention.check.interval.ms", lambda node: node.work.add(retain_all(node))),
    Timer("log.flush.offset.checkpoint.interval.ms", lambda node: node.replicas.checkpoint()),
    Timer("log.cleaner.backoff.ms", compact),
    Timer(1000, snapshot_metadata),
    Timer("producer.id.expiration.check.interval.ms", expire_producers),
    # Coordinators that have lost their log come back by themselves: transactions time out though nobody asks.
    Timer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        lambda node: node.work.add(node.transactions.load_all()),
    ),
    Timer("share.coordinator.cold.partition.snapshot.interval.ms", refresh_cold),
    Timer("share.coordinator.state.topic.prune.interval.ms", prune),
    Timer(1000, lambda node: node.replication.check_all()),
    Timer(1000, lambda node: node.healing.look()),
    Timer(1000, lambda node: node.assignments.tell()),
    Timer("delegation.token.expiry.check.interval.ms", expire_tokens),
)

# What the active controller does besides; the first one as soon as it begins.
CONTROLLER_TIMERS = (
    Timer("metadata.max.idle.interval.ms", lambda node: active(node).beat()),
    Timer("leader.imbalance.check.interval.seconds", lambda node: active(node).balance()),
    Timer("unclean.leader.election.interval.ms", lambda node: active(node).help_out()),
)


def active(node: Node) -> Controller:
    assert node.controller is not None
    return node.controller
