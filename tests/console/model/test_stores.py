"""Questions to stores, and what is refused before anybody is asked."""

from __future__ import annotations

import pytest

from moldau.console.model.problems import Refused
from moldau.console.model.stores import KEY, MOST_ROWS, RANGE, SQL, Question, table


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (Question("counts"), "Write a key"),
        (Question("counts", SQL), "Write a query"),
        (Question("counts", "Guess", "a"), "Choose how"),
        (Question("counts", KEY, "a", kind="heap"), "Choose how"),
        (Question("counts", KEY, "a", address="file:///etc/passwd"), "http://"),
        (Question("counts", KEY, "a", kind="window"), "Give the window size"),
        (Question("counts", KEY, "a" * 100_000), "at most"),
    ],
)
def test_what_cannot_be_asked_is_told(asked: Question, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        asked.check()


def test_bounds_go_with_ranges_alone() -> None:
    assert "from" not in Question("counts", KEY, "a", low="b").parameters
    ranged = Question("counts", RANGE, low="b", prefix="c")
    ranged.check()
    assert (ranged.parameters["from"], ranged.parameters["prefix"]) == ("b", "c") and "to" not in ranged.parameters


def test_an_answer_is_a_table_of_text() -> None:
    columns, rows = table([{"key": "a", "value": {"n": 1}}, {"key": "b", "timestamp": 5}, 7])
    assert columns == ["key", "value", "timestamp"]
    assert rows == [
        {"#": 0, "key": "a", "value": '{"n": 1}'},
        {"#": 1, "key": "b", "timestamp": "5"},
        {"#": 2, "value": "7"},
    ]
    assert len(table([{"key": "x" * 9999}] * 999)[1]) == MOST_ROWS
    assert len(table({"key": "x" * 9999})[1][0]["key"]) < 3000
