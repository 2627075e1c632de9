"""Records: equality, copies, immutability."""

from __future__ import annotations

import pytest

from moldau.connect.data import STRING, Record


def test_a_copy_differs_in_what_was_changed_alone() -> None:
    record = Record("t", 1, None, None, STRING, "x", 5, offset=7, original_topic="o")
    made = record.but(topic="u", value="y")
    assert (made.topic, made.value, made.partition, made.offset, made.original_topic) == ("u", "y", 1, 7, "o")
    assert record.topic == "t" and record.value == "x"


def test_records_are_equal_wherever_they_were_read_from() -> None:
    one, other = Record("t", value="x", original_topic="a"), Record("t", value="x", original_topic="b")
    assert one == other and hash(one) == hash(other)
    assert one != Record("t", value="y", original_topic="a") and one != "t"
    assert "value='x'" in repr(one)


def test_a_record_is_immutable_and_has_no_other_parts() -> None:
    record = Record("t")
    with pytest.raises(AttributeError, match="immutable"):
        record.topic = "u"  # type: ignore[misc]
    with pytest.raises(TypeError, match="tpoic"):
        record.but(tpoic="u")
