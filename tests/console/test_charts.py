"""What charts show, and what they say to who cannot see them."""

from __future__ import annotations

from moldau.console.charts import NOTHING, describe, options


def test_a_chart_without_points_says_so() -> None:
    empty, full = options([("lag", [])], "Lag"), options([("lag", [(1.0, 5), (2.0, 7)])], "Lag")
    assert empty["title"]["show"] and empty["title"]["text"] == NOTHING and not empty["xAxis"]["show"]
    assert not full["title"]["show"] and full["series"][0]["data"] == [[1000, 5], [2000, 7]]


def test_the_last_points_are_told_in_words() -> None:
    assert describe([("a", [(1.0, 5), (2.0, 7000)]), ("b", [])], "Lag") == "Lag. Now: a 7,000."
    assert describe([], "Lag") == f"Lag. {NOTHING}."


def test_lines_have_names_only_where_there_are_several() -> None:
    one, two = [("a", [(1.0, 1)])], [("a", [(1.0, 1)]), ("b", [(1.0, 2)])]
    assert not options(one, "x")["legend"]["show"] and options(two, "x")["legend"]["show"]
