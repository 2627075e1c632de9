"""When replication has something to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.replication import Replication


def test_the_controller_is_asked_again_in_time_by_who_also_follows() -> None:
    replication = cast("Any", object.__new__(Replication))
    replication.fetchers, replication.ask_ms, replication.sync_ms = {}, 50.0, 1000.0
    assert replication.next_ms() == 50.0
    replication.fetchers[2] = SimpleNamespace(next_ms=lambda: 500.0)
    assert replication.next_ms() == 50.0
    replication.ask_ms = 900.0
    assert replication.next_ms() == 500.0
