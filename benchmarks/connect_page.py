"""Rows of a worker of Connect beside Apache's: measured, shown, and written as a page."""

import contextlib
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.places import BenchError
from benchmarks.report import machine, said, spread
from benchmarks.table import Metric

Sample = dict[str, float]
CONNECT = "Connect"


@dataclass(frozen=True)
class Row:
    """A workload. The last of `workers` is ours, whose figures stand beside those of the first."""

    title: str
    run: Callable[[Any, Any], Sample]
    metrics: tuple[Metric, ...]
    is_rehearsed: bool = False
    workers: tuple[str, ...] = ("kafka", "moldau")
    found: dict[str, list[Sample]] = field(default_factory=dict)


def measure(rows: Sequence[Row], here: Any, workers: Sequence[Any], runs: int) -> None:
    """Run all rows, one worker after the other."""
    for row in rows:
        for number in track(range(runs + row.is_rehearsed), row.title, console=Console()):
            for one in workers:
                if one.name in row.workers:
                    sample = row.run(here, one)
                    if number >= row.is_rehearsed:
                        row.found.setdefault(one.name, []).append(sample)


Runs = Annotated[int, typer.Option(min=1)]
Scale = Annotated[float, typer.Option(min=0.01, help="Of the number of records.")]
Only = Annotated[list[str] | None, typer.Option(help="Rows whose title contains this; nothing is kept.")]
Keep = Annotated[bool, typer.Option(help="Write the page.")]


@dataclass(frozen=True)
class Page:
    """Rows, where they are measured, and what is written about them; `method` has a place for the load, and `theirs`
    is the heading of what ours stands beside.
    """

    file: Path
    title: str
    rows: tuple[Row, ...]
    place: Callable[[float], contextlib.AbstractContextManager[tuple[Any, Sequence[Any]]]]
    method: str
    theirs: str = CONNECT

    def make(self, runs: int, scale: float, only: Sequence[str] | None, keep: bool, worker: str = "") -> None:
        """Measure the rows, show them, and keep the page if it is whole."""
        load = f"{os.getloadavg()[0]:.1f}"
        chosen = [row for row in self.rows if not only or any(word in row.title for word in only)]
        try:
            with self.place(scale) as (here, workers):
                measure(chosen, here, [one for one in workers if worker in ("", one.name)], runs)
        except BenchError as error:
            Console().print(f"[red]{error}[/]", highlight=False)
            raise typer.Exit(1) from None
        show(chosen, self.theirs)
        if keep and not only and not worker:
            self.file.write_text(page(self.title, self.rows, self.method.replace("LOAD", load), self.theirs))


def lines(row: Row) -> Iterator[tuple[str, ...]]:
    for number, metric in enumerate(row.metrics):
        values = {name: [one[metric.key] * metric.scale for one in found] for name, found in row.found.items()}
        middle = {name: statistics.median(each) for name, each in values.items() if each}
        ours = row.workers[-1]
        other = row.workers[0] if len(row.workers) > 1 else ""
        own, theirs = middle.get(ours), middle.get(other)
        ratio = own / theirs if own and theirs else None
        shown = [spread(values[name]) if values.get(name) else "" for name in (other, ours)]
        text = "" if ratio is None else f"{ratio:.2f}"
        yield (
            row.title if number == 0 else "",
            f"{metric.title}, {metric.unit}" if metric.unit else metric.title,
            *shown,
            text,
            metric.expected,
            (metric.verdict(ratio, own)),
        )


def headings(theirs: str) -> tuple[str, ...]:
    return "what", "figure", theirs, "Moldau", "ratio", "expected", ""


def show(rows: Sequence[Row], theirs: str = CONNECT) -> None:
    table = Table(*headings(theirs))
    for row in rows:
        for line in lines(row):
            table.add_row(*line)
    Console().print(table)


def page(title: str, rows: Sequence[Row], method: str, theirs: str = CONNECT) -> str:
    facts = machine() | {"Java": said("java", "-version"), "commit": said("git", "rev-parse", "--short", "HEAD")}
    where = "\n".join(f"| {name} | {text} |" for name, text in facts.items())
    shown = [
        headings(theirs),
        ("---", "---", "---:", "---:", "---:", "---", "---"),
        *(one for row in rows for one in lines(row)),
    ]
    table = "\n".join("| " + " | ".join(row) + " |" for row in shown)
    return f"# Benchmarks: {title}\n\n| | |\n|---|---|\n{where}\n\n{table}\n\n{method}"
