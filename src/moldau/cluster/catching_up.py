"""How a controller that does not lead gets the log: it fetches from the leader, or asks anybody who that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.cluster.lines import METADATA, Want
from moldau.cluster.observing import Snapshot, fetch_request, fork_of, snapshot_request, take_records
from moldau.cluster.quorum_messages import Told
from moldau.cluster.voters import Address
from moldau.wire.errors import Error, WireError
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.cluster.raft import Raft

GONE = Error.SNAPSHOT_NOT_FOUND, Error.POSITION_OUT_OF_RANGE


class Diverged(Exception):
    """The leader has other records than this node knows to be committed. The text is a sentence."""


def want_fetch(raft: Raft) -> list[Want]:
    """Return the fetch that is due. It says that everything before it is on disk, and so waits for the sync."""
    if not raft.is_synced:
        return []
    whom = raft.leader if raft.is_follower and not raft.is_lost else any_server(raft)
    return [] if whom is None else [Want(METADATA, whom, lambda: next_request(raft), METADATA)]


def any_server(raft: Raft) -> Address | None:
    """Return the next one to ask who leads."""
    own = raft.self_description.address(raft.listener)
    listed = raft.servers or [one.address(raft.listener) for one in raft.voters.members]
    servers = [address for address in listed if address is not None and address != own]
    return servers[raft.turn % len(servers)] if servers else None


def next_request(raft: Raft) -> Any:
    raft.turn += 1
    raft.is_lost = False
    if raft.fetching is not None:
        return snapshot_request(raft.cluster_id, raft.mine, raft.fetching, raft.epoch, raft.limits)
    return fetch_request(raft.cluster_id, raft.mine, raft.log, raft.epoch, raft.last_epoch, raft.limits)


def take_answer(raft: Raft, told: Told, now_ms: float, wall_ms: int) -> Snapshot | None:
    """Take over what the leader that is followed has answered; returns a snapshot that is complete by it."""
    if told.error in GONE:
        raft.fetching = None
    if told.error:
        return None
    try:
        whole = take_row(raft, told.row, wall_ms)
    except (Refused, WireError):  # bytes that are damaged, or a disk that is full
        if raft.log.offline is not None:
            raise
        raft.lines.delay(METADATA, now_ms + raft.limits.retry_backoff_ms)
        return None
    raft.deadline_ms = now_ms + raft.limits.fetch_timeout_ms
    raft.has_fetched = True
    return whole


def take_row(raft: Raft, row: Any, wall_ms: int) -> Snapshot | None:
    """Take over records, the place where the logs part, or a piece of a snapshot."""
    log = raft.log
    if raft.fetching is not None:
        return take_piece(raft, raft.fetching, row)
    if (end := fork_of(log, row)) is not None:
        check_committed(raft, end)
        log.truncate_to(end, wall_ms)
        raft.history.truncate(log.end_offset)
        return None
    before = log.end_offset
    raft.fetching = take_records(log, row, raft.epoch, wall_ms)
    if log.end_offset > before:
        raft.history.replay_all(row.records, log.end_offset)
    return None


def take_piece(raft: Raft, snapshot: Snapshot, row: Any) -> Snapshot | None:
    if not snapshot.add(row):
        raft.fetching = None
    if not snapshot.is_complete:
        return None
    raft.fetching = None
    check_committed(raft, snapshot.end_offset)
    raft.history.begin(snapshot.data, snapshot.end_offset)
    return snapshot


def check_committed(raft: Raft, end_offset: int) -> None:
    """Raise Diverged if a log that ends at `end_offset` lacks what is committed."""
    if end_offset < raft.log.high_watermark:
        text = f"The leader {raft.leader_id} has other records from offset {end_offset} on"
        raise Diverged(f"{text}; here all before {raft.log.high_watermark} is committed.")
