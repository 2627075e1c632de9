"""What may become of a definition, and that its record says it all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.client import Record
from moldau.flows.definition import (
    LONGEST_SETTING,
    MOST_FLOWS,
    Definition,
    FlowError,
    Foreign,
    Wanted,
    changed,
    deployed,
    rolled_back,
    settled,
    versions,
)
from moldau.flows.records import Gone, decode, encode
from moldau.plan.hashing import spark_hash, spread

FLOW = Definition("counts", "streams", "v1", {"file": "app.py"}, {"a": "b"}, serial=7, revision=3, changed_ms=5)


def new(name: str = "counts", version: str = "v2", **more: object) -> Definition:
    return replace(Definition(name, "streams", version, {"file": "app.py"}), **more)  # type: ignore[arg-type]


def test_a_new_flow_gets_the_offset_of_its_first_record_as_its_serial_number() -> None:
    made = deployed({}, new())
    key, value = encode(made)
    found = decode(Record(41, 0, key, value))
    assert isinstance(found, Definition) and found == replace(made, serial=41)
    key, value = encode(changed({"counts": found}, "counts", Wanted.PAUSED, 9))
    later = decode(Record(99, 0, key, value))
    assert isinstance(later, Definition) and (later.serial, later.revision, later.wanted) == (41, 2, Wanted.PAUSED)


def test_an_upgrade_keeps_the_serial_number_and_remembers_what_was_before() -> None:
    made = deployed({"counts": FLOW}, new(wanted=Wanted.RUNNING))
    assert (made.serial, made.revision, made.version, made.previous) == (7, 4, "v2", ("v1", {"file": "app.py"}))
    assert made.identity != FLOW.identity
    back = rolled_back({"counts": made}, "counts", 9)
    assert (back.version, back.previous, back.serial) == ("v1", ("v2", {"file": "app.py"}), 7)


def test_the_same_code_with_other_settings_is_made_anew_and_can_still_be_rolled_back() -> None:
    before = replace(FLOW, previous=("v0", {}))
    made = deployed({"counts": before}, new(version="v1", settings={"a": "c"}))
    assert made.identity != before.identity and made.previous == ("v0", {})


def test_internal_topics_of_all_versions_are_remembered() -> None:
    made = deployed({"counts": replace(FLOW, topics=("a", "b"))}, new(topics=("b", "c")))
    assert made.topics == ("a", "b", "c") == rolled_back({"counts": made}, "counts", 9).topics


def test_versions_are_those_that_can_run_now_or_after_a_rollback() -> None:
    known = {
        "a": replace(FLOW, previous=("v0", {"size": 1})),
        "b": replace(FLOW, version="v9", wanted=Wanted.REMOVED),
        "c": Foreign("c", 2),
    }
    assert versions(known) == {"v1": {"file": "app.py"}, "v0": {"size": 1}}


def test_going_back_by_itself_is_about_one_revision_and_happens_once() -> None:
    made = deployed({"counts": FLOW}, new(rollback=True))
    with pytest.raises(FlowError, match="changed meanwhile"):
        rolled_back({"counts": made}, "counts", 9, revision=made.revision - 1)
    back = rolled_back({"counts": made}, "counts", 9, made.revision, "because")
    assert (back.version, back.note, back.rollback) == ("v1", "because", False)
    assert settled({"counts": made}, "counts", made.revision) == replace(made, rollback=False)
    assert settled({"counts": made}, "counts", made.revision + 1) is settled({}, "counts", 1) is None
    assert deployed({"counts": back}, new(version="v3")).note is None


@pytest.mark.parametrize(
    ("known", "made", "match"),
    [
        ({}, new("a/b"), "characters"),
        ({}, new(".."), "characters"),
        ({}, new(""), "characters"),
        ({}, new("x" * 201), "characters"),
        ({}, new(settings={"a": "x" * LONGEST_SETTING}), "longer than"),
        ({}, new(settings={str(number): "" for number in range(201)}), "201 settings"),
        ({"counts": FLOW}, new(kind="connector"), "is a streams"),
        ({"counts": replace(FLOW, wanted=Wanted.REMOVED)}, new(), "being removed"),
        ({"counts": Foreign("counts", 2)}, new(), "later release"),
        ({str(number): FLOW for number in range(MOST_FLOWS)}, new(), "undeploy some"),
    ],
)
def test_what_cannot_be_deployed_is_refused(known: dict[str, Definition], made: Definition, match: str) -> None:
    with pytest.raises(FlowError, match=match):
        deployed(known, made)


def test_what_cannot_be_changed_is_refused() -> None:
    with pytest.raises(FlowError, match="no flow"):
        changed({}, "counts", Wanted.PAUSED, 0)
    with pytest.raises(FlowError, match="being removed"):
        changed({"counts": replace(FLOW, wanted=Wanted.REMOVED)}, "counts", Wanted.RUNNING, 0)
    with pytest.raises(FlowError, match="no earlier version"):
        rolled_back({"counts": FLOW}, "counts", 0)


def test_a_record_says_all_of_a_definition() -> None:
    whole = replace(FLOW, previous=("v0", {"file": "old.py"}), wanted=Wanted.STOPPED, attempt=4)
    whole = replace(whole, topics=("a", "b"), rollback=True, note="because")
    key, value = encode(whole)
    assert decode(Record(1000, 0, key, value)) == whole


def test_a_definition_of_a_later_release_is_left_alone_and_a_tombstone_is_its_end() -> None:
    assert decode(Record(1, 0, b"x", b'{"format":2,"other":1}')) == Foreign("x", 2)
    assert decode(Record(1, 0, b"x", None)) == Gone("x")
    with pytest.raises((ValueError, KeyError)):
        decode(Record(1, 0, b"x", b'{"format":1}'))


Address = tuple[int, int]  # of a shard's state in a lane: the serial number of its flow, and Spark's key


def addresses(flow: Definition, shards: int = 3, partitions: int = 2) -> frozenset[Address]:
    assert flow.serial is not None
    return frozenset((flow.serial, key) for key in spread(shards, partitions, spark_hash(flow.serial)))


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["deploy", "pause", "remove"])), max_size=30)
)
def test_no_newcomer_moves_or_meets_the_state_of_another(steps: list[tuple[str, str]]) -> None:
    """Whatever is deployed and removed, in any order: a flow keeps its addresses, and no other ever has one of them."""
    known: dict[str, Definition] = {}
    had: dict[Address, tuple[str, int]] = {}  # by whom: a name, and which of its lives
    lives = dict.fromkeys("abc", 0)
    for offset, (name, what) in enumerate(steps):
        before = {other: addresses(flow) for other, flow in known.items()}
        if what == "deploy":
            lives[name] += name not in known
            made = deployed(known, new(name, version=f"v{offset}"))
        elif name in known:
            made = changed(known, name, Wanted.PAUSED if what == "pause" else Wanted.REMOVED, offset)
        else:
            continue
        written = decode(Record(offset, 0, *encode(made)))
        assert isinstance(written, Definition)
        known[name] = written
        assert all(addresses(known[other]) == found for other, found in before.items())
        assert len(addresses(written)) == 3
        assert all(had.setdefault(one, (name, lives[name])) == (name, lives[name]) for one in addresses(written))
        if what == "remove":
            del known[name]  # its worker has cleared its state, and written a tombstone
