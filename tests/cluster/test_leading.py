"""A leader and its followers: what is committed when, who joins the ISR and who leaves it."""

from __future__ import annotations

from random import Random

import pytest

from moldau.cluster.leading import Leading

LAG = 30_000.0
EPOCHS = {1: 10, 2: 20, 3: 30}


def leading(isr: tuple[int, ...] = (1, 2, 3), epoch_start: int = 0, partition_epoch: int = 0) -> Leading:
    made = Leading(me=1, epoch=5, epoch_start=epoch_start)
    made.place((1, 2, 3), isr, partition_epoch, now_ms=0.0)
    return made


def commit(
    led: Leading, end: int, now: float = 0.0, min_insync: int = 1, epochs: dict[int, int] = EPOCHS
) -> int | None:
    return led.high_watermark(end, min_insync, LAG, epochs.get, now)


def fetch(led: Leading, who: int, offset: int, end: int, now: float = 0.0, epoch: int | None = None) -> bool:
    return led.fetched(who, EPOCHS[who] if epoch is None else epoch, offset, end, now)


def test_nothing_is_committed_before_all_in_sync_have_it():
    led = leading()
    assert commit(led, 10) is None, "nobody has fetched"
    fetch(led, 2, 10, 10)
    assert commit(led, 10) is None
    fetch(led, 3, 7, 10)
    assert commit(led, 10) == 7
    fetch(led, 3, 10, 10)
    assert commit(led, 10) == 10


def test_with_too_few_in_sync_nothing_more_is_committed():
    led = leading(isr=(1,))
    assert commit(led, 10, now=LAG + 1, min_insync=2) is None
    assert commit(led, 10, now=LAG + 1, min_insync=1) == 10


def test_a_topic_cannot_ask_for_more_replicas_than_it_has():
    led = Leading(1, 5, 0)
    led.place((1, 2), (1, 2), 0, 0.0)
    fetch(led, 2, 4, 4)
    assert commit(led, 4, min_insync=3) == 4


def test_a_follower_leaves_when_it_has_lagged_for_too_long():
    led = leading()
    fetch(led, 2, 10, 10, now=100)
    fetch(led, 3, 9, 10, now=100)
    assert not led.propose(9, 10, LAG, EPOCHS.get, LAG)
    assert led.propose(9, 10, LAG, EPOCHS.get, LAG + 50), "3 had all only at the start"
    assert led.proposal is not None and led.proposal.isr == (1, 2)
    assert commit(led, 10, now=LAG + 50) == 9, "it counts until the controller has agreed"
    led.place((1, 2, 3), (1, 2), 1, LAG + 60)
    assert commit(led, 10, now=LAG + 60) == 10


def test_a_follower_that_keeps_pace_with_a_busy_leader_stays():
    led = leading()
    for step in range(1, 100):
        end, now = step * 100, step * 1000.0
        fetch(led, 2, end - 100, end, now)  # it has what there was when it asked last
        fetch(led, 3, end - 100, end, now)
    assert not led.propose(0, 9900, LAG, EPOCHS.get, 99_000.0)


def test_a_follower_joins_when_it_is_level_and_counts_at_once():
    led = leading(isr=(1, 2))
    fetch(led, 2, 10, 10)
    fetch(led, 3, 8, 10)
    assert not led.propose(10, 10, LAG, EPOCHS.get, 0.0), "it lacks what is committed"
    fetch(led, 3, 10, 12)
    assert led.propose(10, 12, LAG, EPOCHS.get, 0.0)
    assert led.proposal is not None and set(led.proposal.isr) == {1, 2, 3}
    fetch(led, 2, 12, 12)
    assert commit(led, 12) == 10, "3 is asked for: what it lacks is not committed"


def test_a_follower_without_this_leaders_first_record_does_not_join():
    led = leading(isr=(1,), epoch_start=50)
    fetch(led, 2, 40, 60)
    assert not led.propose(40, 60, LAG, EPOCHS.get, 0.0)
    fetch(led, 2, 50, 60)
    assert led.propose(40, 60, LAG, EPOCHS.get, 0.0)


def test_who_is_fenced_or_another_process_by_now_does_not_join():
    for known in ({1: 10, 3: 30}, {1: 10, 2: 21, 3: 30}):
        led = leading(isr=(1,))
        fetch(led, 2, 10, 10)
        assert not led.propose(10, 10, LAG, known.get, 0.0)


def test_strangers_and_processes_that_were_replaced_are_not_heard():
    led = leading()
    assert not led.fetched(9, 1, 0, 10, 0.0)
    assert fetch(led, 2, 5, 10, epoch=22)
    assert not fetch(led, 2, 9, 10, epoch=20)
    assert led.followers[2].end_offset == 5


def test_one_question_at_a_time_and_old_news_change_nothing():
    led = leading(isr=(1,), partition_epoch=7)
    fetch(led, 2, 10, 10)
    assert led.propose(10, 10, LAG, EPOCHS.get, 0.0)
    assert not led.propose(10, 10, LAG, EPOCHS.get, 0.0)
    led.place((1, 2, 3), (1, 2, 3), 6, 0.0)
    assert led.isr == (1,) and led.proposal is not None
    led.withdraw()
    assert led.propose(10, 10, LAG, EPOCHS.get, 0.0)


def test_a_reader_is_sent_to_the_follower_in_its_rack_that_has_most():
    led = leading()
    led.fetched(2, EPOCHS[2], 8, 10, 0.0, start_offset=3)
    led.fetched(3, EPOCHS[3], 9, 10, 0.0, start_offset=5)
    racks = {1: "a", 2: "b", 3: "b"}
    assert led.nearest("b", racks, 6) == 3
    assert led.nearest("b", racks, 4) == 2, "the other one's log begins later"
    assert led.nearest("b", racks, 9) == 3
    assert led.nearest("b", racks, 10) is None, "only the leader has come so far"
    assert led.nearest("b", {1: "b"} | {2: "b"}, 6) is None, "the leader is in that rack too"
    assert led.nearest("c", racks, 6) is None
    assert led.nearest("b", {1: "a"}, 6) is None, "nobody there is alive"


def test_a_reader_is_not_sent_to_a_follower_that_is_not_in_sync():
    led = leading(isr=(1, 3))
    led.fetched(2, EPOCHS[2], 8, 10, 0.0, start_offset=0)
    assert led.nearest("b", {1: "a", 2: "b", 3: "c"}, 6) is None


def test_a_follower_that_has_left_must_show_anew_how_far_it_is():
    """Its log may be damaged: what it had is not what it will have."""
    led = leading()
    fetch(led, 2, 10, 10, now=100)
    fetch(led, 3, 10, 10, now=100)
    led.place((1, 2, 3), (1, 2), 1, 100)
    assert not led.propose(10, 10, LAG, EPOCHS.get, 100), "it would join with what it had before"
    fetch(led, 3, 0, 10, now=200)
    assert commit(led, 10, now=200) == 10, "nobody waits for it"
    fetch(led, 3, 10, 10, now=300)
    assert led.propose(10, 10, LAG, EPOCHS.get, 300)


def test_a_follower_is_stuck_that_asks_for_the_same_records_again_and_again():
    led = leading()
    looks = []
    for _ in range(7):
        fetch(led, 2, 4, 10)
        looks.append(led.followers[2].is_stuck())
    assert looks == [False, False, True, False, False, True, False]
    for _ in range(4):
        fetch(led, 2, 10, 10)
        assert not led.followers[2].is_stuck(), "it has all, and waits for more"


def test_the_low_watermark_is_that_of_the_live_replica_that_begins_first():
    led = leading()
    assert led.low_watermark(7, (1, 2, 3)) == -1, "nobody has said it"
    led.fetched(2, EPOCHS[2], 10, 10, 0.0, start_offset=5)
    assert led.low_watermark(7, (1, 2, 3)) == -1
    assert led.low_watermark(7, (1, 2)) == 5, "3 is fenced"
    led.fetched(3, EPOCHS[3], 10, 10, 0.0, start_offset=9)
    assert led.low_watermark(7, (1, 2, 3)) == 5
    assert led.low_watermark(4, (1, 2, 3)) == 4


@pytest.mark.parametrize("seed", range(300))
def test_where_all_is_settled_there_is_nothing_to_decide(seed: int):
    random = Random(seed)
    led = leading(isr=random.choice([(1, 2, 3), (1, 2, 3), (1, 2)]))
    for _ in range(random.randrange(6)):
        fetch(led, random.choice((2, 3)), random.choice((9, 10, 10)), 10, now=random.choice((0, LAG, 2 * LAG)))
    high = random.choice((9, 10, 10))
    if led.is_settled(10, high):
        now = random.choice((0.0, LAG, 9 * LAG))
        assert commit(led, 10, now=now) in (None, high)
        assert not led.propose(high, 10, LAG, EPOCHS.get, now)


def test_a_partition_is_settled_when_all_replicas_have_all():
    led = leading()
    fetch(led, 2, 10, 10)
    assert not led.is_settled(10, 10)
    fetch(led, 3, 10, 10)
    assert led.is_settled(10, 10) and not led.is_settled(11, 10) and not led.is_settled(10, 9)
