"""Transactional ids: who owns them, what they may do, what is written of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from moldau.machines.transactions import LAST_EPOCH, Identity, Limits, State
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.machines.transaction_bench import T0, T1, Bench


def set_epoch(bench: Bench, epoch: int) -> Identity:
    """As if the producer had lived through that many epochs."""
    bench.machine.by_id["x"] = replace(bench.machine.by_id["x"], epoch=epoch)
    return Identity(bench.machine.by_id["x"].producer_id, epoch)


def test_a_new_id_begins_with_epoch_0_and_each_new_producer_raises_it():
    bench = Bench()
    assert bench.init() == (Error.NONE, (100, 0))
    assert bench.init() == (Error.NONE, (100, 1))
    assert bench.init("y") == (Error.NONE, (101, 0))
    assert bench.state() is State.EMPTY


def test_an_empty_id_is_refused_everywhere():
    bench = Bench()
    assert bench.add(Identity(1, 0), T0, name="") is Error.INVALID_REQUEST
    assert bench.end(Identity(1, 0), name="").error is Error.INVALID_REQUEST
    assert bench.machine.verify("", Identity(1, 0), [T0]) == {T0: Error.INVALID_REQUEST}


def test_a_transaction_of_version_2_raises_the_epoch_when_it_ends():
    bench = Bench()
    first = bench.init().identity
    assert bench.add(first, T0, T1) is Error.NONE
    assert bench.end(first) == (Error.NONE, (100, 1))
    assert bench.state() is State.PREPARE_COMMIT and bench.machine.unmarked == {"x": {T0, T1}}
    bench.settle()
    assert bench.state() is State.COMPLETE_COMMIT and not bench.machine.unmarked
    assert bench.add(first, T0) is Error.PRODUCER_FENCED
    assert bench.add(Identity(100, 1), T0) is Error.NONE


@pytest.mark.parametrize("commit", [True, False])
def test_a_late_end_of_version_2_does_not_end_the_next_transaction(commit: bool):
    bench = Bench()
    first = bench.init().identity
    bench.add(first, T0)
    second = bench.end(first).identity
    bench.settle()
    bench.add(second, T1)
    assert bench.end(first, commit=commit).error is Error.PRODUCER_FENCED
    assert bench.state() is State.ONGOING and not bench.machine.unmarked


def test_a_late_end_of_version_1_cannot_be_told_from_one_of_the_next_transaction():
    """It is Kafka's weakness before transaction.version 2, and docs/durability.md says so."""
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0, client=0)
    bench.end(producer, client=0)
    bench.settle()
    bench.add(producer, T1, client=0)
    assert bench.end(producer, client=0).error is Error.NONE
    assert bench.state() is State.PREPARE_COMMIT


def test_a_transaction_of_version_1_keeps_its_epoch():
    bench = Bench()
    first = bench.init().identity
    bench.add(first, T0, client=0)
    assert bench.end(first, client=0) == (Error.NONE, (-1, -1))
    bench.settle()
    assert bench.end(first, client=0).error is Error.NONE
    assert bench.end(first, commit=False, client=0).error is Error.INVALID_TXN_STATE
    assert bench.add(first, T0, client=0) is Error.NONE
    assert bench.machine.by_id["x"].epoch == 0


# Kafka's table for an end that finds no open transaction, by state, by whether it is a retry, and by what is wanted.
AFTER_END = [
    ("empty", False, "abort", Error.NONE, 1),
    ("empty", False, "commit", Error.INVALID_TXN_STATE, None),
    ("aborted", True, "abort", Error.NONE, 0),
    ("aborted", False, "abort", Error.NONE, 1),
    ("aborted", True, "commit", Error.INVALID_TXN_STATE, None),
    ("aborted", False, "commit", Error.INVALID_TXN_STATE, None),
    ("committed", True, "abort", Error.INVALID_TXN_STATE, None),
    ("committed", False, "abort", Error.NONE, 1),
    ("committed", True, "commit", Error.NONE, 0),
    ("committed", False, "commit", Error.INVALID_TXN_STATE, None),
]


@pytest.mark.parametrize(("before", "retry", "wanted", "error", "bump"), AFTER_END)
def test_an_end_without_an_open_transaction(before, retry, wanted, error, bump):
    bench = Bench()
    producer = bench.init().identity
    if before != "empty":
        bench.add(producer, T0)
        bench.end(producer, commit=before == "committed")
        bench.settle()
    now = bench.machine.by_id["x"].epoch
    outcome = bench.end(Identity(100, now - retry), commit=wanted == "commit")
    assert outcome.error is error
    assert outcome.identity == ((-1, -1) if bump is None else (100, now + bump))


def test_while_markers_are_missing_everybody_waits():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0)
    after = bench.end(producer).identity
    assert bench.init().error is Error.CONCURRENT_TRANSACTIONS
    assert bench.add(after, T0) is Error.CONCURRENT_TRANSACTIONS
    assert bench.machine.verify("x", after, [T0]) == {T0: Error.CONCURRENT_TRANSACTIONS}
    assert bench.end(producer).error is Error.CONCURRENT_TRANSACTIONS
    assert bench.end(producer, commit=False).error is Error.INVALID_TXN_STATE
    assert bench.end(after).error is Error.CONCURRENT_TRANSACTIONS
    assert bench.end(after, commit=False).error is Error.CONCURRENT_TRANSACTIONS
    assert bench.end(Identity(after.producer_id, after.epoch + 1)).error is Error.PRODUCER_FENCED


def test_a_new_producer_aborts_the_open_transaction_first():
    bench = Bench()
    old = bench.init().identity
    bench.add(old, T0)
    assert bench.init().error is Error.CONCURRENT_TRANSACTIONS
    assert bench.state() is State.PREPARE_ABORT
    bench.settle()
    new = bench.init()
    assert new == (Error.NONE, (100, 2))
    assert bench.end(old).error is Error.PRODUCER_FENCED
    assert bench.add(old, T0) is Error.PRODUCER_FENCED
    assert bench.init(expected=old).error is Error.PRODUCER_FENCED


def test_with_transactions_version_1_a_new_producer_gets_the_epoch_after_the_fence():
    bench = Bench(version=1)
    old = bench.init().identity
    bench.add(old, T0, client=0)
    bench.init()
    bench.settle()
    assert bench.init() == (Error.NONE, (100, 2))
    assert bench.end(old, client=0).error is Error.PRODUCER_FENCED


def test_a_producer_that_says_who_it_is_goes_on_and_may_ask_twice():
    bench = Bench()
    bench.init()
    assert bench.init(expected=Identity(100, 0)) == (Error.NONE, (100, 1))
    assert bench.init(expected=Identity(100, 0)) == (Error.NONE, (100, 1))
    assert bench.init(expected=Identity(100, 1)) == (Error.NONE, (100, 2))
    assert bench.init(expected=Identity(100, 0)).error is Error.PRODUCER_FENCED
    assert bench.init(expected=Identity(99, 2)).error is Error.PRODUCER_FENCED


def test_after_a_new_producer_the_old_one_cannot_go_on():
    bench = Bench()
    bench.init()
    bench.init()
    assert bench.init(expected=Identity(100, 0)).error is Error.PRODUCER_FENCED


def test_a_forgotten_id_accepts_whoever_says_it_had_it():
    assert Bench().init(expected=Identity(7, 3)) == (Error.NONE, (100, 0))


def test_when_epochs_run_out_there_is_a_new_producer_id():
    bench = Bench()
    bench.init()
    old = set_epoch(bench, LAST_EPOCH - 1)
    assert bench.init(expected=old) == (Error.NONE, (101, 0))
    assert bench.init(expected=old) == (Error.NONE, (101, 0)), "the answer may have been lost"
    assert bench.machine.by_id["x"].previous_producer_id == 101


def test_an_end_in_the_last_epoch_gives_a_new_producer_id():
    bench = Bench()
    bench.init()
    last = set_epoch(bench, LAST_EPOCH - 1)
    bench.add(last, T0)
    assert bench.end(last) == (Error.NONE, (101, 0))
    prepared = bench.machine.by_id["x"]
    assert (prepared.producer_id, prepared.epoch, prepared.next_producer_id) == (100, LAST_EPOCH, 101)
    bench.settle()
    assert bench.end(last) == (Error.NONE, (101, 0)), "a retry is recognised by the producer id before"
    assert bench.add(Identity(101, 0), T0) is Error.NONE


def test_only_partitions_of_the_transaction_are_verified():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0, client=0)
    assert bench.machine.verify("x", producer, [T0, T1]) == {T0: Error.NONE, T1: Error.TRANSACTION_ABORTABLE}
    assert bench.machine.verify("x", Identity(100, 1), [T0]) == {T0: Error.PRODUCER_FENCED}
    assert bench.machine.verify("y", producer, [T0]) == {T0: Error.INVALID_PRODUCER_ID_MAPPING}


def test_to_add_what_is_there_writes_nothing():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0)
    written = len(bench.log)
    assert bench.add(producer, T0) is Error.NONE
    assert len(bench.log) == written


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(version):
    bench = Bench(version=version)
    producer = bench.init(timeout_ms=30_000).identity
    client = 2 if version == 2 else 0
    bench.add(producer, T0, client=client)
    bench.tick(20_000)
    assert bench.state() is State.ONGOING
    bench.tick(20_000)
    assert bench.state() is State.PREPARE_ABORT
    bench.settle()
    assert bench.add(producer, T0, client=client) is Error.PRODUCER_FENCED
    assert bench.end(producer, client=client).error in (Error.PRODUCER_FENCED, Error.INVALID_TXN_STATE)
    if version == 2:
        assert bench.init(expected=producer) == (Error.NONE, (100, 1)), "it may go on after an abort (KIP-890)"


def test_many_late_transactions_are_aborted_in_turns():
    bench = Bench()
    for n in range(50):
        name = f"{n:010000}"
        bench.add(bench.init(name, timeout_ms=1000).identity, T0, name=name)
    left = []
    for _ in range(3):
        bench.tick(15_000 if not left else 0)
        left.append(len(bench.machine.ongoing))
    assert left == [26, 2, 0]
    assert bench.machine.abort_due_ms > bench.now_ms
    assert bench.machine.next_deadline_ms() <= bench.now_ms + 1000, "their markers are missing"


def test_without_a_producer_id_to_give_only_what_needs_one_must_wait():
    bench = Bench()
    for name in "x", "y":
        bench.add(bench.init(name, timeout_ms=1000).identity, T0, name=name)
    last = set_epoch(bench, LAST_EPOCH - 1)
    bench.machine.next_producer_id = no_producer_id
    with pytest.raises(Refused):
        bench.end(last)
    bench.tick(15_000)
    assert (bench.state("x"), bench.state("y")) == (State.ONGOING, State.PREPARE_ABORT)
    assert bench.machine.abort_due_ms > bench.now_ms


def no_producer_id() -> int:
    raise Refused(Error.KAFKA_STORAGE_ERROR, "the metadata log cannot be written")


def test_an_id_that_nobody_uses_is_forgotten_but_not_while_it_is_in_use():
    bench = Bench(limits=Limits(expiration_ms=1000, expiration_interval_ms=100, abort_interval_ms=10**9))
    bench.init("idle")
    bench.add(bench.init("busy").identity, T0, name="busy")
    bench.tick(1500)
    assert set(bench.machine.by_id) == {"busy"}
    assert set(bench.load().by_id) == {"busy"}
    assert bench.init("idle") == (Error.NONE, (102, 0))


def test_records_before_version_1_of_the_feature_have_no_tagged_fields():
    bench = Bench(version=0)
    bench.add(bench.init().identity, T0, client=0)
    assert [record.value[:2] for record in bench.log] == [b"\0\0", b"\0\0"]
    assert bench.load().by_id["x"].partitions == {T0}


def test_a_loaded_machine_goes_on_with_what_was_decided():
    bench = Bench()
    producer = bench.init().identity
    bench.add(producer, T0, T1)
    bench.end(producer)
    bench.machine = bench.load()
    assert bench.machine.unmarked == {"x": {T0, T1}}
    assert bench.machine.next_deadline_ms() <= bench.now_ms
    bench.settle()
    assert bench.state() is State.COMPLETE_COMMIT


# What Apache Kafka 4.3.1 wrote to `__transaction_state` when it was asked the same: the time, the command, the value.
OFFSETS = "__consumer_offsets"
KAFKA_WROTE = [
    (
        1794723679410,
        lambda bench, producer: bench.init(),
        "0001 0000000000000004 0000 0000ea60 00 00 000001a1ddde0cb2 ffffffffffffffff 01 00080000000000000004",
    ),
    (
        1794723679428,
        lambda bench, producer: bench.add(producer, client=0),
        "0001 0000000000000004 0000 0000ea60 01 01 000001a1ddde0cc4 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679436,
        lambda bench, producer: bench.end(producer, client=0),
        "0001 0000000000000004 0000 0000ea60 02 01 000001a1ddde0ccc 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679437,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0000 0000ea60 04 01 000001a1ddde0ccd 000001a1ddde0cc4 01 00080000000000000004",
    ),
    (
        1794723679641,
        lambda bench, producer: bench.end(producer, commit=False),
        "0001 0000000000000004 0001 0000ea60 03 01 000001a1ddde0d99 000001a1ddde0d99 02 00080000000000000004 02020002",
    ),
    (
        1794723679642,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0001 0000ea60 05 01 000001a1ddde0d9a 000001a1ddde0d99 02 00080000000000000004 02020002",
    ),
    (
        1794723679854,
        lambda bench, producer: bench.add(producer, (OFFSETS, 0), client=0),
        "0001 0000000000000004 0001 0000ea60 01 02 135f5f636f6e73756d65725f6f666673657473 02 00000000 00"
        "000001a1ddde0e6e 000001a1ddde0e6e 01 00080000000000000004",
    ),
    (
        1794723679857,
        lambda bench, producer: bench.add(producer, (OFFSETS, 3), client=0),
        "0001 0000000000000004 0001 0000ea60 01 02 135f5f636f6e73756d65725f6f666673657473 03 00000000 00000003 00"
        "000001a1ddde0e71 000001a1ddde0e6e 01 00080000000000000004",
    ),
    (
        1794723748337,
        lambda bench, producer: bench.tick(0),
        "0001 0000000000000004 0002 0000ea60 03 02 135f5f636f6e73756d65725f6f666673657473 03 00000000 00000003 00"
        "000001a1dddf19f1 000001a1ddde0e6e 02 00080000000000000004 02020002",
    ),
    (
        1794723748337,
        lambda bench, producer: bench.settle(),
        "0001 0000000000000004 0002 0000ea60 05 01 000001a1dddf19f1 000001a1ddde0e6e 02 00080000000000000004 02020002",
    ),
]


def test_records_are_those_of_kafka():
    bench = Bench(now_ms=KAFKA_WROTE[0][0], ids=count(4))
    for now_ms, command, value in KAFKA_WROTE:
        known = bench.machine.by_id.get("x")
        bench.now_ms = now_ms
        command(bench, known and Identity(known.producer_id, known.epoch))
        assert bench.log[-1].key == b"\0\0" + b"\0\1x"
        assert bench.log[-1].value.hex() == value.replace(" ", "")
    assert len(bench.log) == len(KAFKA_WROTE)
