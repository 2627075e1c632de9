"""Share partitions that a node leads, and when what was read of them counts no longer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.share import partitions
from moldau.broker.share.partitions import Shared, SharePartitions
from moldau.machines.share.state import Key
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

KEY = Key("g", b"t" * 16, 0)


def test_what_was_read_for_an_earlier_epoch_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load whose members had gone was taken up when this node led again: accepted records came again (seed 3074)."""
    loads: list[Any] = []

    def start(_node: Any, load: Any) -> Any:
        load.close()
        loads.append(SimpleNamespace(answer=None, then=None))
        return loads[-1]

    monkeypatch.setattr(partitions, "start", start)
    placement = SimpleNamespace(leader_epoch=1)
    home = cast("Any", SimpleNamespace(placement=placement, log=SimpleNamespace(start_offset=0)))
    machine = cast("Any", SimpleNamespace(cut=lambda offset: None))
    shared = SharePartitions(cast("Any", SimpleNamespace(signal=lambda key: None)))
    with pytest.raises(Refused):
        shared.open(KEY, home)
    loads[0].answer = Shared(KEY, home, machine, state_epoch=0, leader_epoch=1)
    placement.leader_epoch = 3
    with pytest.raises(Refused) as refused:
        shared.open(KEY, home)
    assert (refused.value.error, len(loads)) == (Error.COORDINATOR_LOAD_IN_PROGRESS, 2)
    loads[1].answer = Shared(KEY, home, machine, state_epoch=0, leader_epoch=3)
    assert shared.open(KEY, home) is loads[1].answer
