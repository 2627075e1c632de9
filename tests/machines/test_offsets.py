"""Committed offsets: plain and transactional commits in any order, expiry, deletion."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from moldau.broker.coordinators import decode, encode
from moldau.machines import offsets
from moldau.machines.effects import Change, Effects, Producer
from moldau.machines.offset_records import NO_TOPIC_ID, TopicCommit, tombstone
from moldau.machines.offsets import Offsets, Row, read
from moldau.wire import messages as m
from moldau.wire.errors import Error, WireError
from moldau.wire.records import Record
from moldau.wire.refusal import Refused

from .groups_home import Home

ANYBODY = "", None, -1
MINUTE = 60_000


def row(partition: int = 0, offset: int = 5, metadata: str | None = "", topic: str = "t") -> Row:
    return Row(topic, NO_TOPIC_ID, partition, offset, -1, metadata)


def commit(home: Home, *rows: Row, group: str = "g", retention_ms: int = -1) -> list[Error]:
    result = offsets.commit(home.machine, group, ANYBODY, rows, home.now_ms, version=9, retention_ms=retention_ms)
    home.run(Effects(result.changes))
    return result.errors


def commit_in_transaction(home: Home, producer: int, *rows: Row) -> None:
    result = offsets.commit_transactional(home.machine, "g", ANYBODY, rows, home.now_ms, version=5)
    home.run(Effects(result.changes, producer=Producer(producer, 0)))


def committed(home: Home, partition: int = 0) -> int | None:
    found = home.machine.offsets.get("g", "t", partition)
    return None if found is None else found.offset


plain = st.tuples(st.just("plain"), st.just(-1))
written = st.tuples(st.just("written"), st.integers(0, 2))
ended = st.tuples(st.sampled_from(["commit", "abort"]), st.integers(0, 2))
deleted = st.tuples(st.just("deleted"), st.just(-1))


@given(st.lists(st.one_of(plain, written, ended, deleted), max_size=25))
def test_of_several_commits_the_last_written_that_counts_wins(steps: list[tuple[str, int]]) -> None:
    """The model knows the place of each commit in the log, as Kafka does."""
    home = Home()
    current: int | None = None
    pending: dict[int, int] = {}
    for count, (what, producer) in enumerate(steps):
        if what == "plain":
            commit(home, row(offset=count))
            current = count
        elif what == "written":
            commit_in_transaction(home, producer, row(offset=count))
            pending[producer] = count
        elif what == "deleted":
            home.run(Effects(offsets.delete_all(home.machine, "g")))
            current, pending = None, {}
        else:
            home.end_transaction(producer, what == "commit")
            place = pending.pop(producer, None)
            if what == "commit" and place is not None and (current is None or place > current):
                current = place
        assert committed(home) == current
        assert home.machine.offsets.is_pending("g", "t", 0) == bool(pending)
    again = home.load().offsets
    assert (again.committed, again.pending) == (home.machine.offsets.committed, home.machine.offsets.pending)


def test_nothing_is_left_of_transactions_that_ended() -> None:
    home = Home()
    for producer in range(10):
        commit_in_transaction(home, producer, row(producer % 3))
        home.end_transaction(producer, producer % 2 == 0)
    assert home.machine.offsets.pending == home.machine.offsets.by_producer == {}


def test_commit_without_members_makes_a_group_and_one_with_a_generation_does_not() -> None:
    home = Home()
    for version, error in ((8, Error.ILLEGAL_GENERATION), (9, Error.GROUP_ID_NOT_FOUND)):
        try:
            offsets.commit(home.machine, "g", ("x", None, 1), [row()], home.now_ms, version=version)
        except Refused as refused:
            assert refused.error == error
    assert not home.machine.groups
    commit(home, row())
    assert home.machine.groups["g"].state_name() == "Empty"


def test_metadata_has_a_limit_for_each_partition() -> None:
    home = Home()
    errors = commit(home, row(0, metadata="x" * 17), row(1, metadata="x" * 16))
    assert errors == [Error.OFFSET_METADATA_TOO_LARGE, Error.NONE]
    assert committed(home, 0) is None and committed(home, 1) == 5


def test_offsets_of_a_group_without_members_expire_after_their_commit() -> None:
    home = Home()
    home.run(home.machine.loaded(home.now_ms))
    commit(home, row(0))
    home.advance(5 * MINUTE)
    commit(home, row(1))
    home.advance(6 * MINUTE)
    assert committed(home, 0) is None and committed(home, 1) == 5
    home.advance(5 * MINUTE)
    assert not home.machine.groups and not home.machine.offsets.committed
    assert not home.load().groups


def test_offsets_of_a_group_with_members_expire_after_it_emptied() -> None:
    home = Home()
    home.run(home.machine.loaded(home.now_ms))
    commit(home, row(0))
    member, _ = home.enter(session_timeout_ms=60 * MINUTE)
    home.advance(3000)
    home.sync(member, 1, {})
    home.advance(30 * MINUTE)
    assert committed(home) == 5
    home.leave((member, None))
    home.advance(9 * MINUTE)
    assert committed(home) == 5
    home.advance(2 * MINUTE)
    assert committed(home) is None


def test_stable_group_keeps_the_offsets_of_what_it_is_subscribed_to() -> None:
    home = Home()
    home.run(home.machine.loaded(home.now_ms))
    commit(home, row(0), row(0, topic="other"))
    member, _ = home.enter(session_timeout_ms=60 * MINUTE)
    home.advance(3000)
    home.sync(member, 1, {})
    home.advance(11 * MINUTE)
    assert home.machine.offsets.committed["g"].keys() == {"t"}
    result = offsets.delete(home.machine, "g", [("t", 0)])
    assert result.errors == [Error.GROUP_SUBSCRIBED_TO_TOPIC] and not result.changes


def test_pending_offsets_do_not_expire() -> None:
    home = Home()
    home.run(home.machine.loaded(home.now_ms))
    commit(home, row(0))
    commit_in_transaction(home, 1, row(0, 6))
    home.advance(30 * MINUTE)
    assert committed(home) == 5
    home.end_transaction(1, True)
    assert committed(home) == 6


def test_old_clients_say_how_long_their_offsets_are_kept() -> None:
    home = Home()
    home.run(home.machine.loaded(home.now_ms))
    commit(home, row(0), retention_ms=2 * MINUTE)
    assert home.log[-1][1].expire_timestamp == home.now_ms + 2 * MINUTE
    home.advance(3 * MINUTE)
    assert committed(home) is None


def test_group_is_deleted_with_committed_and_pending_offsets() -> None:
    home = Home()
    commit(home, row(0))
    commit_in_transaction(home, 1, row(1))
    home.run(Effects(home.machine.delete("g")))
    home.end_transaction(1, True)
    for known in (home.machine, home.load()):
        assert not known.groups and known.offsets.committed == {}


def test_offsets_of_a_deleted_topic_go_and_those_of_its_namesake_stay() -> None:
    home = Home()
    old, new = b"o" * 16, b"n" * 16
    commit(home, Row("t", old, 0, 1, -1, ""), Row("t", new, 1, 2, -1, ""), row(2))
    home.run(Effects(offsets.of_deleted_topic(home.machine, "t", old)))
    assert [committed(home, partition) for partition in range(3)] == [None, 2, None]


@given(
    st.text(max_size=200),
    st.integers(-1, 1 << 62),
    st.integers(-1, 1 << 30),
    st.one_of(st.just(-1), st.integers(0, 1 << 60)),
    st.one_of(st.just(NO_TOPIC_ID), st.binary(min_size=16, max_size=16)),
)
def test_records_are_written_as_the_codec_writes_them(
    text: str, offset: int, leader_epoch: int, expires_ms: int, topic_id: bytes
) -> None:
    """Without an expiry in version 4, with one in version 1, as Kafka does."""
    change = TopicCommit(text, text, topic_id, 7, expires_ms).change(3, offset, leader_epoch, text)
    key = m.OffsetCommitKey(text, text, 3)
    value = m.OffsetCommitValue(offset, leader_epoch, text, 7, expires_ms, topic_id)
    assert change.encoded == encode(Change(key, value, 4 if expires_ms == -1 else 1))
    assert tombstone(text, text, 3).encoded == encode(Change(key, None))
    for made in (change, tombstone(text, text, 3)):
        assert made.encoded is not None
        again, found = decode("__consumer_offsets", Record(0, 0, made.encoded[0], made.encoded[1]))
        assert (None if found is None else read(found)) == made.value
        assert (again.group, again.topic, again.partition) == (text, text, 3)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_damaged_records_are_not_believed(key: bytes, value: bytes) -> None:
    known = TopicCommit("g", "t", NO_TOPIC_ID, 7, -1).change(3, 1, 2, "m").encoded
    assert known is not None and known[1] is not None
    for first, second in (
        (b"\0\1" + key, value),
        (known[0], value),
        (known[0], known[1][:-1] + value),
        (known[0] + key, value),
    ):
        with suppress(WireError):
            decode("__consumer_offsets", Record(0, 0, first, second))


def test_topic_names_are_kept_once() -> None:
    known = Offsets()
    for group in range(3):
        name = "".join(["a", "b"])
        value = m.OffsetCommitValue()
        known.replay(m.OffsetCommitKey(str(group), name, 0), value, -1)
    assert len({id(topic) for topics in known.committed.values() for topic in topics}) == 1
