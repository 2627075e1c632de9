"""Window, session and versioned stores against models that keep everything and look at all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from moldau.operators.record import Stamped
from moldau.operators.stores.ordered import MemoryBytes
from moldau.operators.stores.session import session
from moldau.operators.stores.spec import LATEST, NOT_PUT
from moldau.operators.stores.versioned import VersionedRecord, versioned
from moldau.operators.stores.window import window
from moldau.operators.windowed import Windowed
from moldau.serdes.primitive import LONG, STRING
from tests.operators.opening import open_store

KEYS = some.sampled_from(["", "a", "a\0", "a\0\0\0\0\0\0\0\0", "ab", "b"])
TIMES = some.integers(0, 400_000)
RETENTION = 130_000  # segments of 65,000
INTERVAL = 65_000


@given(
    some.lists(some.tuples(KEYS, TIMES, some.integers(0, 9) | some.none()), max_size=25),
    some.sampled_from(["key", "time", "indexed", "memory"]),
    KEYS,
    TIMES,
    TIMES,
)
@settings(max_examples=100, deadline=None)
def test_windows_are_seen_by_observed_time_and_in_their_order(
    puts: list[tuple[str, int, int | None]], order: str, key: str, one: int, other: int
) -> None:
    spec = window(
        "w", 10, RETENTION, STRING, LONG,
        stamped=True, final=order in ("time", "indexed"), indexed=order == "indexed", persistent=order != "memory",
    )  # fmt: skip
    content, model, observed = MemoryBytes(), dict[tuple[str, int], int](), -1
    for at, start, value in puts:
        observed = max(observed, start)
        open_store(spec, content).put(at, None if value is None else Stamped(value, start + 1), start)
        if value is None:
            model.pop((at, start), None)
        else:
            model[at, start] = value
    oldest = observed - RETENTION + (0 if order in ("time", "indexed") else 1)
    seen = {place: value for place, value in model.items() if place[1] >= oldest}
    store, first, last = open_store(spec, content), min(one, other), max(one, other)

    def rank(place: tuple[str, int]) -> Any:
        by_segment = (place[1] // INTERVAL, place[0].encode() + place[1].to_bytes(8, "big"))
        return by_segment if order == "key" else (place[1], place[0].encode())

    everything = [
        (Windowed(at, start, start + 10), Stamped(seen[at, start], start + 1)) for at, start in sorted(seen, key=rank)
    ]
    assert list(store.all()) == everything
    assert list(store.all(reverse=True)) == everything[::-1]
    assert list(store.fetch_all(first, last)) == [entry for entry in everything if first <= entry[0].start <= last]
    mine = sorted((start, Stamped(seen[at, start], start + 1)) for at, start in seen if at == key)
    assert list(store.fetch_range(key, first, last)) == [entry for entry in mine if first <= entry[0] <= last]
    assert list(store.fetch_range(key, 0, reverse=True)) == mine[::-1]
    assert all(
        store.fetch(at, start) == (Stamped(model[at, start], start + 1) if start >= oldest else None)
        for at, start in model
    )
    ranged = [entry for entry in everything if "a" <= entry[0].key <= key]
    assert list(store.fetch_keys("a", key, 0)) == ranged


@given(some.lists(some.tuples(KEYS, some.integers(0, 30), some.integers(0, 9)), max_size=20), some.booleans())
@settings(max_examples=60, deadline=None)
def test_duplicates_are_kept_in_the_order_in_which_they_came(
    puts: list[tuple[str, int, int]], persistent: bool
) -> None:
    spec = window("w", 10, 20, STRING, LONG, duplicates=True, persistent=persistent)
    content, kept, observed = MemoryBytes(), list[tuple[str, int, int]](), -1
    for key, start, value in puts:
        store = open_store(spec, content)
        store.put(key, value, start)
        store.put(key, None, start)
        observed = max(observed, start)
        kept.append((key, start, value))
    seen = [entry for entry in kept if entry[1] > observed - 20]
    for key in {key for key, _, _ in kept}:
        mine = sorted(((start, value) for at, start, value in seen if at == key), key=lambda entry: entry[0])
        assert list(open_store(spec, content).fetch_range(key, 0)) == mine


def test_bytes_of_expired_windows_go() -> None:
    for order in ({}, {"final": True, "indexed": True}, {"persistent": False}):
        spec, content = window("w", 10, RETENTION, STRING, LONG, **order), MemoryBytes()
        store = open_store(spec, content)
        for start in range(0, 3_000_000, 10_000):
            store.put("k", 1, start)
        assert content.approximate_count() < 2 * (RETENTION + INTERVAL) // 10_000 + 5


def test_a_changelog_has_kafkas_keys() -> None:
    log: list[tuple[bytes, bytes | None, int]] = []
    store = open_store(window("w", 10, 100, STRING, LONG, stamped=True), MemoryBytes(), log)
    store.put("k", Stamped(7, 25), 20)
    sessions = open_store(session("s", 100, STRING, LONG), MemoryBytes(), log)
    sessions.put(Windowed("k", 5, 9), 3)
    assert log[0] == (b"k" + (20).to_bytes(8, "big") + bytes(4), (7).to_bytes(8, "big"), 25)
    assert log[1][0] == b"k" + (9).to_bytes(8, "big") + (5).to_bytes(8, "big")


SPANS = some.tuples(TIMES, some.integers(0, 20_000)).map(lambda span: (span[0], span[0] + span[1]))


@given(
    some.lists(some.tuples(KEYS, SPANS, some.integers(0, 9) | some.none()), max_size=25),
    some.sampled_from(["key", "time", "memory"]),
    KEYS,
    TIMES,
    TIMES,
)
@settings(max_examples=80, deadline=None)
def test_sessions_are_seen_by_their_ends(
    puts: list[tuple[str, tuple[int, int], int | None]], order: str, key: str, one: int, other: int
) -> None:
    spec = session("s", RETENTION, STRING, LONG, final=order == "time", persistent=order != "memory")
    content, model, observed = MemoryBytes(), dict[Windowed, int](), -1
    for at, (start, end), value in puts:
        observed, place = max(observed, end), Windowed(at, start, end)
        open_store(spec, content).put(place, value)
        if value is None:
            model.pop(place, None)
        else:
            model[place] = value
    seen = {place: value for place, value in model.items() if place.end > observed - RETENTION}
    store = open_store(spec, content)
    mine = sorted((place for place in seen if place.key == key), key=lambda place: (place.end, place.start))
    found = [(place, seen[place]) for place in mine if place.end >= one and place.start <= other]
    assert list(store.find_sessions(key, one, other)) == found
    assert list(store.find_sessions(key, one, other, reverse=True)) == found[::-1]
    assert dict(store.all()) == seen
    for place in model:
        assert store.fetch_session(*place) == seen.get(place)
    if order != "key":
        live = (observed - RETENTION) // INTERVAL * INTERVAL if order == "time" else observed - RETENTION + 1
        ended = {place for place in model if max(live, min(one, other)) <= place.end <= max(one, other)}
        assert {place for place, _ in store.find_ended(min(one, other), max(one, other))} == ended


@given(
    some.lists(
        some.tuples(some.sampled_from("ab"), some.integers(0, 60), some.integers(0, 9) | some.none()), max_size=25
    ),
    some.integers(0, 60),
)
@settings(max_examples=100, deadline=None)
def test_a_versioned_store_knows_what_was_valid_when(puts: list[tuple[str, int, int | None]], time: int) -> None:
    spec, content, retention = versioned("v", 20, STRING, LONG, segment_interval_ms=7), MemoryBytes(), 20
    model: dict[str, dict[int, int | None]] = {"a": {}, "b": {}}
    observed = -1
    for key, timestamp, value in puts:
        if value is None and timestamp == max(model[key], default=None):
            continue  # leaves no trace: a test of its own
        put = open_store(spec, content).put(key, value, timestamp)
        if timestamp < observed - retention:
            assert put == NOT_PUT
            continue
        observed = max(observed, timestamp)
        model[key][timestamp] = value
        later = [known for known in model[key] if known > timestamp]
        assert put == (min(later) if later else LATEST)
    store = open_store(spec, content)
    for key, versions in model.items():
        latest = max(versions, default=None)
        value = None if latest is None else versions[latest]
        assert store.get(key) == (None if value is None else Stamped(value, latest))
        valid = max((known for known in versions if known <= time), default=None)
        found = None if valid is None or versions[valid] is None else versions[valid]
        if time < observed - retention and valid != latest:
            found = None
        until = min((known for known in versions if valid is not None and known > valid), default=None)
        expected = None if found is None or valid is None else VersionedRecord(found, valid, until)
        assert store.as_of(key, time) == expected


def test_a_versioned_store_forgets_its_history() -> None:
    content = MemoryBytes()
    store = open_store(versioned("v", 60_000, STRING, LONG), content)
    for time in range(0, 1_000_000, 1_000):
        store.put("a", time, time)
        store.put("b", None if time % 2_000 else time, time)
    assert content.approximate_count() < 400
    store.put("a", None, 1_000_000)
    store.put("b", None, 1_000_000)
    store.put("c", 1, 2_000_000)
    assert content.approximate_count() == 2  # the value, and the observed time
    assert [record.value for record in store.get_range("c", 0, 3_000_000)] == [1]


def test_a_tombstone_in_the_place_of_the_latest_version_leaves_no_trace() -> None:
    store = open_store(versioned("v", 100, STRING, LONG), MemoryBytes())
    assert store.put("a", 1, 50) == LATEST
    assert store.put("a", None, 50) == LATEST
    assert store.put("a", 2, 40) == LATEST
    assert store.get("a") == Stamped(2, 40)
    assert store.put("b", 1, 30) == store.put("b", 2, 50) == store.put("b", None, 50) == LATEST
    assert store.put("b", 3, 40) == 50  # the version before ended there
    assert store.get("b") is None


def test_a_key_must_not_be_none() -> None:
    for spec in (window("w", 10, 20, STRING, LONG), versioned("v", 20, STRING, LONG)):
        with pytest.raises(ValueError, match="must not be None"):
            open_store(spec, MemoryBytes()).put(None, 1, 0)


def test_a_changelog_counts_duplicates_with_those_of_none() -> None:
    log: list[tuple[bytes, bytes | None, int]] = []
    content, spec = MemoryBytes(), window("w", 10, 100, STRING, LONG, duplicates=True)
    for value in (1, None, 2):
        open_store(spec, content, log).put("k", value, 20)
    assert [(int.from_bytes(key[-4:], "big"), value is None) for key, value, _ in log] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    assert list(open_store(spec, content).fetch_range("k", 0)) == [(20, 1), (20, 2)]
