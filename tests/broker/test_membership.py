"""How a broker deals with its controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from moldau.broker.membership import Membership
from moldau.broker.outbox import Ask, Line, Lost, Outbox, Peer
from moldau.wire import messages as m


class Silence:
    """A network on which nobody ever answers."""

    def connect(self, line: Line) -> None: ...

    def write(self, line: Line) -> None: ...

    def close(self, line: Line) -> None: ...


def test_a_controller_of_an_earlier_epoch_is_not_waited_for() -> None:
    """It may have lost its power: nothing but the time-out would end the request, and others wait behind it."""
    outbox, answers = Outbox(Silence(), "test"), list[Any]()
    member = cast("Any", object.__new__(Membership))
    first, second = ("10.0.0.1", 9093), ("10.0.0.2", 9093)
    member.node, member.controller = SimpleNamespace(outbox=outbox), (first, 4)
    member.quorum = SimpleNamespace(leader=first, leader_id=1, epoch=4)
    outbox.put(Peer(*first), Ask(m.AlterPartitionRequest(), answers.append), 30_000.0)
    member.note_controller()
    assert not answers
    member.quorum = SimpleNamespace(leader=second, leader_id=2, epoch=5)
    member.note_controller()
    assert answers == [Lost("10.0.0.1:9093: another controller is active")]
    assert member.controller == (second, 5)
