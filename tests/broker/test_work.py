"""Long work goes in turns, within its slice, and does not spin while it waits."""

from moldau.broker.work import BUSY, IDLE, Workshop


def counted(name, steps, trace, what=BUSY):
    for _ in range(steps):
        trace.append(name)
        yield what


def test_pieces_take_turns_until_they_are_done():
    shop, trace = Workshop(), []
    shop.add(counted("a", 2, trace))
    shop.add(counted("b", 3, trace))
    shop.advance(lambda: False)
    assert trace == ["a", "b", "a", "b", "b"]
    assert not shop


def test_the_slice_ends_the_round():
    shop, trace = Workshop(), []
    shop.add(counted("a", 100, trace))
    shop.advance(lambda: len(trace) >= 3)
    assert len(trace) == 3 and shop


def test_work_that_waits_is_asked_once_a_slice():
    shop, trace = Workshop(), []
    shop.add(counted("a", 100, trace, IDLE))
    shop.add(counted("b", 100, trace, IDLE))
    shop.advance(lambda: False)
    assert trace == ["a", "b"]
