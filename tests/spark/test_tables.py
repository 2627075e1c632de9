"""Tables in pages: what a run did not make again stays, and sums are of all rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark import tables

HEAD = ("seed", "kills", "rows")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    made = tmp_path / "page.md"
    made.write_text("before\n<!-- it -->\n<!-- end of it -->\nafter\n")
    return made


def test_rows_of_other_runs_stay_and_newer_ones_take_the_place_of_older_ones(page: Path) -> None:
    tables.put(page, "it", HEAD, [[2, 5, "1,000"]], sums=True)
    tables.put(page, "it", HEAD, [[1, 4, "20"]], sums=True)
    tables.put(page, "it", HEAD, [[2, 6, "2,000"]], sums=True)
    rows = "| 1 | 4 | 20 |\n| 2 | 6 | 2,000 |\n| all | 10 | 2,020 |"
    table = f"| seed | kills | rows |\n|---|---|---|\n{rows}"
    assert page.read_text() == f"before\n<!-- it -->\n{table}\n<!-- end of it -->\nafter\n"


def test_a_table_with_other_columns_begins_anew(page: Path) -> None:
    tables.put(page, "it", HEAD, [["a", 1, 2]])
    tables.put(page, "it", ("name", "x"), [["b", ""], ["c", "y"]])
    assert "| name | x |\n|---|---|\n| b |  |\n| c | y |\n<!--" in page.read_text()
