"""How a broker deals with its controllers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from moldau.broker.membership import Membership
from moldau.broker.outbox import Ask, Line, Lost, Outbox, Peer
from moldau.wire import messages as m


class Silence:
    """A network on which nobody ever answers."""

    def connect(self, line: Line) -> None: ...

    def write(self, line: Line) -> None: ...

    def close(self, line: Line) -> None: ...


@pytest.mark.parametrize("later", [("10.0.0.2", 9093), ("10.0.0.1", 9093)])
def test_a_controller_of_an_earlier_epoch_is_not_waited_for(later: tuple[str, int]) -> None:
    """It may have lost its power: nothing but the time-out would end the request, and others wait behind it."""
    outbox, answers = Outbox(Silence(), "test"), list[Any]()
    member = cast("Any", object.__new__(Membership))
    first = ("10.0.0.1", 9093)
    member.node, member.controller = SimpleNamespace(outbox=outbox), (first, 4)
    hurried: list[str] = []
    member.lifecycle = SimpleNamespace(hurry=lambda: hurried.append("hurry"))
    member.quorum = SimpleNamespace(leader=first, leader_id=1, epoch=4)
    outbox.put(Peer(*first), Ask(m.AlterPartitionRequest(), answers.append), 30_000.0)
    member.note_controller()
    assert not answers and not hurried
    member.quorum = SimpleNamespace(leader=later, leader_id=2, epoch=5)
    member.note_controller()
    assert answers == [Lost("10.0.0.1:9093: a controller of a later epoch is active")]
    assert member.controller == (later, 5)
    assert hurried, "the new one knows of no broker yet how far it is"


def test_a_process_registers_as_the_one_before_that_did_not_live_to_know_its_epoch() -> None:
    """Otherwise its replicas would count as lost: the epoch that it names is not the last one any more."""

    def incarnation(*left: str) -> tuple[bytes, list[str]]:
        noted = list[str]()
        directories = [SimpleNamespace(incarnation=one, note_incarnation=noted.append, path="") for one in left]
        member = cast("Any", object.__new__(Membership))
        random = SimpleNamespace(randbytes=lambda size: b"n" * size)
        member.node = SimpleNamespace(replicas=SimpleNamespace(directories=directories), random=random)
        return member.begin_incarnation(), noted

    new, old = b"n" * 16, b"o" * 16
    assert incarnation("", "") == (new, [new.hex()] * 2)
    assert incarnation(old.hex(), old.hex()) == (old, [old.hex()] * 2)
    assert incarnation(old.hex(), "")[0] == new, "a directory has been replaced"
