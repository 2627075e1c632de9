"""Parked requests: retried when signalled, answered at the latest at their deadline, and not kept for ever."""

from moldau.broker.wait import HEAP_SLACK, Wait, Waits


def park(waits, deadline_ms, answers, watches=("a",)):
    """A request that is answered by the first of `answers` that is not None, or by "late"."""
    released = []
    pending = iter(answers)
    wait = Wait(deadline_ms, lambda expired: next(pending, None) or ("late" if expired else None), watches)
    waits.park(wait, released.append)
    return wait, released


def test_a_signal_retries_only_those_who_watch():
    waits = Waits()
    _, first = park(waits, 10, [None, "now"])
    _, second = park(waits, 10, ["now"], watches=("b",))
    waits.signal("a")
    assert (first, second) == ([], [])
    waits.signal("a")
    assert (first, second) == (["now"], [])


def test_the_deadline_answers_once():
    waits = Waits()
    _, released = park(waits, 10, [])
    waits.expire(9)
    assert released == []
    waits.expire(10)
    waits.expire(11)
    waits.signal("a")
    assert released == ["late"]
    assert waits.live == 0 and not waits.watched and waits.next_deadline_ms() is None


def test_a_watch_may_be_named_twice():
    waits = Waits()
    _, released = park(waits, 10, ["now"], watches=("a", "a"))
    waits.signal("a")
    assert released == ["now"] and not waits.watched


def test_who_is_gone_is_forgotten():
    waits = Waits()
    wait, released = park(waits, 10, ["now"])
    waits.forget(wait)
    waits.signal("a")
    waits.expire(20)
    assert released == []


def test_answered_requests_with_far_deadlines_do_not_pile_up():
    waits = Waits()
    for _ in range(10_000):
        park(waits, 1e12, ["now"])
        waits.signal("a")
    assert len(waits.deadlines) <= HEAP_SLACK + 1


def test_an_answer_may_signal_again():
    waits = Waits()
    order = []
    waits.park(Wait(10, lambda _: "outer", ("a",)), lambda answer: (order.append(answer), waits.signal("b")))
    waits.park(Wait(10, lambda _: "inner", ("b",)), order.append)
    waits.signal("a")
    assert order == ["outer", "inner"]
