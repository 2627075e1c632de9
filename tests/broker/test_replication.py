"""When replication has something to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.replication import Replication
from moldau.cluster.leading import Leading


def test_the_controller_is_asked_again_in_time_by_who_also_follows() -> None:
    replication = cast("Any", object.__new__(Replication))
    replication.fetchers, replication.ask_ms, replication.sync_ms = {}, 50.0, 1000.0
    assert replication.next_ms() == 50.0
    replication.fetchers[2] = SimpleNamespace(next_ms=lambda: 500.0)
    assert replication.next_ms() == 50.0
    replication.ask_ms = 900.0
    assert replication.next_ms() == 500.0


def test_nobody_has_caught_up_with_a_log_that_is_offline() -> None:
    """It has no end. A follower that joined the ISR for that came to lead, with nothing (seed 1937)."""
    led = Leading(1, epoch=3, epoch_start=0)
    led.place((1, 2), (1,), partition_epoch=5, now_ms=0.0)
    led.fetched(2, broker_epoch=7, offset=0, leader_end=0, now_ms=1.0)
    log = SimpleNamespace(offline="damaged", high_watermark=0, end_offset=0)
    partition = SimpleNamespace(led=led, log=log, topic_id=b"t", index=0, count_members=lambda: None)
    brokers = {2: SimpleNamespace(epoch=7, fenced=False, in_controlled_shutdown=False)}
    replication = cast("Any", object.__new__(Replication))
    replication.node = SimpleNamespace(
        membership=object(),
        clock=SimpleNamespace(monotonic_ms=lambda: 2.0),
        settings={"replica.lag.time.max.ms": 3000},
        cluster=SimpleNamespace(brokers=brokers),
    )
    replication.proposed, replication.is_asking = {}, True
    replication.propose(partition)
    assert led.proposal is None
    log.offline = None
    replication.propose(partition)
    assert led.proposal is not None and led.proposal.isr == (1, 2)
