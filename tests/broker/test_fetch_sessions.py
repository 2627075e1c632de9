"""Fetch sessions (KIP-227): epochs, what is folded in, and who is evicted."""

import random

import pytest

from moldau.broker.fetch_sessions import FetchSessions, Wanted
from moldau.broker.partition import Partition
from moldau.broker.wait import Waits
from moldau.cluster.following import LAST_EPOCH
from moldau.log.answers import Isolation
from moldau.machines.metadata.cluster import Partition as Placement
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.log.logs import TOPIC_ID, create

IDLE = 120_000


def sessions(slots=3):
    return FetchSessions(slots, random.Random(1), Waits(), IDLE)


def wanted(*indexes, offset=0):
    return [Wanted("t", index, offset, 1000) for index in indexes]


def opened(cache, *indexes, now=0.0):
    return cache.open(0, 0, wanted(*indexes), [], by_id=False, now=now).session


def go_on(cache, session, items=(), forgotten=(), now=0.0, epoch=None, by_id=False):
    epoch = session.epoch if epoch is None else epoch
    return cache.open(session.id, epoch, list(items), list(forgotten), by_id=by_id, now=now)


def refusal(call, *args, **options):
    with pytest.raises(Refused) as caught:
        call(*args, **options)
    return caught.value.error


def test_a_session_remembers_and_is_changed_by_differences():
    cache = sessions()
    session = opened(cache, 0, 1)
    context = go_on(cache, session, wanted(1, offset=7), [("t", 0)])
    assert [(one.index, one.offset) for one in context.wanted] == [(1, 7)]
    assert context.incremental and context.session_id == session.id and session.epoch == 2


def test_wrong_epochs_and_unknown_sessions_are_refused():
    cache = sessions()
    session = opened(cache, 0)
    assert refusal(go_on, cache, session, epoch=5) == Error.INVALID_FETCH_SESSION_EPOCH
    assert refusal(go_on, cache, session, wanted(0), by_id=True) == Error.FETCH_SESSION_TOPIC_ID_ERROR
    go_on(cache, session, epoch=-1)
    assert refusal(go_on, cache, session, epoch=1) == Error.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_ends():
    cache = sessions()
    session = opened(cache, 0)
    assert go_on(cache, session, forgotten=[("t", 0)]).session_id == 0
    assert not cache.sessions


def test_epochs_wrap_past_zero():
    cache = sessions()
    session = opened(cache, 0)
    session.epoch = LAST_EPOCH
    go_on(cache, session)
    assert session.epoch == 1


def test_a_full_cache_gives_no_session_until_one_is_idle():
    cache = sessions(slots=2)
    first, second = opened(cache, 0), opened(cache, 0)
    assert opened(cache, 0, now=1.0) is None
    go_on(cache, second, now=IDLE)
    third = opened(cache, 0, now=IDLE + 1.0)
    assert third is not None and first.id not in cache.sessions and second.id in cache.sessions
    assert cache.evicted == 1


def test_a_larger_session_takes_the_place_of_a_settled_smaller_one():
    cache = sessions(slots=2)
    small, large = opened(cache, 0), opened(cache, 0, 1, 2)
    for session in (small, large):
        go_on(cache, session, now=IDLE)
    assert opened(cache, 5, now=IDLE + 1.0) is None
    assert opened(cache, 5, 6, now=IDLE + 1.0) is not None
    assert small.id not in cache.sessions and large.id in cache.sessions


@pytest.mark.parametrize(("isr", "end"), [((1, 2), 9), ((1,), -1)])
def test_what_a_follower_had_counts_only_while_it_is_in_sync(tmp_path, isr, end):
    """A follower whose log is damaged leaves the ISR, and then the session: it must not come back by what it had."""
    home = Partition("t", TOPIC_ID, 0, create(tmp_path), 1)
    home.lead(Placement(0, (1, 2), (1, 2), 1, 0, 0), 0.0)
    session = opened(sessions(), 0)
    session.begin(Isolation.LOG_END, (2, 5), 0.0)
    item = session.partitions["t", 0]
    item.offset, item.leader_epoch = 9, 0
    session.watch(item, home)
    session.rest(item)
    home.lead(Placement(0, (1, 2), isr, 1, 0, 1), 0.0)
    session.forget(("t", 0))
    assert home.led.followers[2].end_offset == end
