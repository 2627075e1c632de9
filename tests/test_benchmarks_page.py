"""The page of the benchmarks: rows that are not measured again stay, also where their results are not at hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks import report
from benchmarks.pages import PAGES
from benchmarks.report import Page

SAMPLE = {"per_second": 1e6, "cpu_per_gb": 1.0, "cpu_us": 1.0}


def test_a_row_that_is_measured_alone_leaves_the_others(tmp_path: Path) -> None:
    page = at(tmp_path)
    kept = report.load(page)
    assert report.markdown_table(page, kept) in page.file.read_text()
    before = report.markdown_table(page, kept).splitlines()
    row = next(row for row in page.rows if row.name == "produce-1kb-1p")
    kept.add(row, {"kafka": [SAMPLE], "moldau": [SAMPLE]})
    after = report.markdown_table(page, kept).splitlines()
    assert [number for number, line in enumerate(after) if line != before[number]] == lines_of(before, row.title)


def test_the_commits_of_rows_are_read_as_they_are_written() -> None:
    for commits in ({"a": "1", "b": "1"}, {"a": "1", "b": "2", "c": "1"}):
        written = report.commits(report.Kept({}, commits, {}))
        assert report.commits_of(written, commits) == commits


def at(folder: Path) -> Page:
    """The page of one broker, in a folder of its own and without results."""
    page = PAGES[1]._replace(results=folder / "results.json", file=folder / "page.md")
    page.file.write_text(PAGES[1].file.read_text())
    return page


def lines_of(written: list[str], title: str) -> list[int]:
    """The numbers of a row's lines, both of them."""
    first = next(number for number, line in enumerate(written) if line.startswith(f"| {title} |"))
    return [first, first + 1]
