"""A broker that follows the quorum's log without a vote."""

from __future__ import annotations

from pathlib import Path

from moldau.cluster.observing import Limits, Observer
from moldau.cluster.voters import VoterHistory, Voters
from tests.log.logs import NOW, batch, create

LIMITS = Limits(20, 1 << 20, 1 << 20)


def test_a_log_that_is_cut_to_its_snapshot_ends_with_the_snapshots_epoch(tmp_path: Path) -> None:
    """Otherwise the leader would find no common epoch, and let the broker drop all that is committed."""
    log = create(tmp_path / "log")
    log.truncate_fully(32, NOW)
    log.append(batch(b"a"), 7, NOW)
    observer = Observer(1, "cluster", bytes(16), log, [("host", 1)], {}, LIMITS, VoterHistory(Voters()), (32, 7))
    assert asked_epoch(observer) == 7
    log.truncate_to(32, NOW)
    assert log.leader_epochs.latest < 0
    assert asked_epoch(observer) == 7


def asked_epoch(observer: Observer) -> int:
    observer.is_busy = False
    asked = observer.request(0.0)
    assert asked is not None
    return asked[1].topics[0].partitions[0].last_fetched_epoch
