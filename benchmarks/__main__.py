"""`python -m benchmarks`: choose rows, run them, show and keep what came out."""

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from benchmarks import client, cluster_loads, kafka, report, workloads
from benchmarks.brokers import Peer, peers
from benchmarks.clusters import clusters
from benchmarks.pages import PAGES
from benchmarks.places import CACHE, BenchError
from benchmarks.report import Page, Results
from benchmarks.table import BOTH, Row
from benchmarks.workloads import Effort, Sample

WARM_SECONDS = {1: 60.0, 3: 300.0}  # three JVMs share what one had
QUICK = Effort(scale=0.1, runs=2, warm_seconds=8)
MOLDAU_WARM_SECONDS = 10  # it has no JIT; this only fills caches
PEERS = {1: peers, 3: clusters}
WARM_UPS = {1: workloads.warm_up, 3: cluster_loads.warm_up}

console = Console(width=max(Console().width, 130))


class Run:
    """One invocation: the brokers it may use, the effort, and the bar it moves."""

    def __init__(
        self,
        brokers: Sequence[Peer],
        warm_up: Callable[..., None],
        effort: Effort,
        progress: Progress,
        task: TaskID,
    ) -> None:
        self.brokers = brokers
        self.warm_up = warm_up
        self.effort = effort
        self.progress = progress
        self.task = task
        self.failures: list[str] = []

    def rows(self, rows: Sequence[Row]) -> Iterator[tuple[Row, dict[str, list[Sample]]]]:
        """The rows that need their brokers alone, then those that share warm ones."""
        for row in sorted(rows, key=lambda row: row.warm):
            if row.warm and not self.succeeds("the warm-up", self.ensure_warm):
                return  # no warm row can be measured
            found: dict[str, list[Sample]] = {}
            if self.succeeds(row.name, lambda row=row, found=found: self.fill(row, found)):
                yield row, found

    def succeeds(self, what: str, step: Callable[[], None]) -> bool:
        """A row that fails is told and remembered, and does not stop the others."""
        try:
            step()
        except BenchError as error:
            self.failures.append(what)
            self.progress.console.print(f"[red]{what} failed:[/] {error}", highlight=False)
            return False
        return True

    def fill(self, row: Row, found: dict[str, list[Sample]]) -> None:
        """The samples of a row: runs that alternate between the brokers."""
        brokers = [broker for broker in self.brokers if row.has(broker.name)]
        with contextlib.ExitStack() as closing:
            if not row.warm:
                for broker in brokers:  # whatever happens, the next row begins without it
                    closing.callback(broker.wipe)
            loads = {broker.name: row.samples(broker, self.effort) for broker in brokers}
            for generator in loads.values():
                closing.callback(generator.close)
            if row.rehearsed:
                for name, generator in loads.items():
                    self.show(f"{row.name} · {name} · rehearsal")
                    next(generator)
            for number in range(min(row.runs, self.effort.runs)):
                for name, generator in loads.items():
                    self.show(f"{row.name} · {name} · run {number + 1}")
                    found.setdefault(name, []).append(next(generator))
                    self.progress.advance(self.task)

    def ensure_warm(self) -> None:
        """Start and warm what does not run: before the first warm row, and after a broker was lost."""
        for broker in self.brokers:
            if not broker.alive:
                broker.wipe()
                broker.start_warm()
                seconds = self.effort.warm_seconds
                self.show(f"warming up {broker.name}")
                self.warm_up(broker, seconds if broker.name == "kafka" else min(seconds, MOLDAU_WARM_SECONDS))

    def show(self, what: str) -> None:
        self.progress.update(self.task, description=what)


def chosen(page: Page, only: Sequence[str], names: Sequence[str]) -> list[Row]:
    """Rows whose name contains one of the words, all without words; those that have a broker here."""
    rows = [row for row in page.rows if not only or any(word in row.name for word in only)]
    rows = [row for row in rows if any(map(row.has, names))]
    if not rows:
        raise BenchError(f"No row is named like {' or '.join(only)}; see --list.")
    return rows


@contextlib.contextmanager
def brokers(nodes: int, names: Sequence[str], before: Path | None) -> Iterator[list[Peer]]:
    """The brokers of this run, stopped and their data removed at the end, whatever the end is."""
    CACHE.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    made: list[Peer] = [broker for broker in PEERS[nodes](home, before) if broker.name in names]
    try:
        yield made
    finally:
        for broker in made:
            broker.wipe()
        shutil.rmtree(home, ignore_errors=True)


def count_runs(rows: Sequence[Row], effort: Effort, names: Sequence[str]) -> int:
    return sum(min(row.runs, effort.runs) * sum(map(row.has, names)) for row in rows)


def measure(
    nodes: int, rows: Sequence[Row], names: Sequence[str], effort: Effort, keep: bool, before: Path | None = None
) -> list[str]:
    """Run, show, and keep each row as soon as it is done; the failures come back."""
    page = PAGES[nodes]
    kept = report.load(page)
    fresh: Results = {}
    columns = (TextColumn("{task.description:<40}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with brokers(nodes, names, before) as made, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=count_runs(rows, effort, names))
        run = Run(made, WARM_UPS[nodes], effort, progress, task)
        for row, samples in run.rows(rows):
            fresh[row.name] = samples
            if keep:
                kept.add(row, samples)
                report.save(page, kept)
    console.print(report.terminal_table(page, fresh))
    return run.failures


def main(
    only: Annotated[list[str] | None, typer.Option(help="Rows whose name contains this; repeatable.")] = None,
    broker: Annotated[list[str] | None, typer.Option(help="kafka or moldau alone; nothing is kept then.")] = None,
    quick: Annotated[bool, typer.Option(help="A tenth of the work, two runs; nothing is kept.")] = False,
    before: Annotated[
        Path | None, typer.Option(help="A checkout of an earlier Moldau, set up; it is measured in the same run.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs of each row, at most.", min=1)] = 5,
    nodes: Annotated[int, typer.Option(help="1: a broker beside a broker. 3: three nodes beside three.")] = 1,
    show_list: Annotated[bool, typer.Option("--list", help="Name the rows and stop.")] = False,
) -> None:
    """Measure Moldau beside Apache Kafka and write docs/benchmarks.md, or docs/benchmarks-cluster.md."""
    if nodes not in PAGES:
        raise typer.BadParameter("1 or 3", param_hint="--nodes")
    if show_list:
        for row in PAGES[nodes].rows:
            console.print(f"{row.name:18} {row.title}", highlight=False)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything started is stopped
    names = [*(broker or BOTH), *(["before"] if before else [])]
    effort = QUICK if quick else Effort(runs=runs, warm_seconds=WARM_SECONDS[nodes])
    keep = not quick and not broker
    try:
        rows = chosen(PAGES[nodes], only or [], names)
        client.build()
        if "kafka" in names:
            kafka.libs()
        failures = measure(nodes, rows, names, effort, keep, before)
    except BenchError as error:
        console.print(f"[red]{error}[/]", highlight=False)
        raise typer.Exit(1) from None
    if keep:
        console.print(f"Written to {PAGES[nodes].file.name}.")
    if failures:
        console.print(f"[red]Not measured:[/] {', '.join(failures)}.", highlight=False)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
