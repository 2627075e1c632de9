"""What came out: the results kept between runs, the table on the terminal, and docs/benchmarks.md."""

import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from rich.table import Table

from benchmarks import client, kafka
from benchmarks.places import CACHE, PROJECT
from benchmarks.table import Metric, Row
from benchmarks.workloads import Sample

Results = dict[str, dict[str, list[Sample]]]  # by row, by broker


class Line(NamedTuple):
    """One line of the table: texts."""

    title: str
    metric: str
    kafka: str
    before: str
    moldau: str
    ratio: str
    change: str
    expected: str
    verdict: str


class Kept(NamedTuple):
    """What outlives a run. A row that is measured alone may be of another commit than the others.

    `written` has the lines of rows whose results are not here: the page is in the repository, the results are not.
    """

    results: Results
    commits: dict[str, str]
    written: dict[str, list[Line]]

    def add(self, row: Row, samples: dict[str, list[Sample]]) -> None:
        self.results[row.name] = samples
        self.written.pop(row.name, None)
        self.commits[row.name] = said("git", "rev-parse", "--short", "HEAD")


class Page(NamedTuple):
    """A table of rows, and where it is kept and shown."""

    title: str
    rows: tuple[Row, ...]
    method: str
    results: Path
    file: Path
    remarks: Path


HEADINGS = Line("workload", "figure", "Kafka", "before", "Moldau", "ratio", "now : before", "expected", "")
ALIGNED: tuple[Literal["left", "right"], ...] = ("left", "left", *["right"] * 5, "left", "left")
EARLIER = ("before", "change")  # columns that are shown where an earlier Moldau was measured


def figure(value: float) -> str:
    """Three significant digits, thousands with a comma."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def spread(values: list[float]) -> str:
    """The median, and the range where there were several runs."""
    middle = figure(statistics.median(values))
    return f"{middle} ({figure(min(values))}–{figure(max(values))})" if len(values) > 1 else middle


def line(row: Row, metric: Metric, samples: dict[str, list[Sample]]) -> Line:
    values = {broker: [run[metric.key] * metric.scale for run in runs] for broker, runs in samples.items() if runs}
    shown = {broker: spread(figures) for broker, figures in values.items()}
    middle = {broker: statistics.median(figures) for broker, figures in values.items()}
    own = middle.get("moldau")
    ratio, change = (own / middle[other] if own and middle.get(other) else None for other in ("kafka", "before"))
    return Line(
        row.title,
        f"{metric.title}, {metric.unit}" if metric.unit else metric.title,
        *(shown.get(broker, "") for broker in ("kafka", "before", "moldau")),
        *("" if r is None else f"{r:.2f}" if r >= 0.1 else f"{r:.3f}" for r in (ratio, change)),
        metric.expected,
        metric.verdict(ratio, own),
    )


def lines(page: Page, results: Results, written: dict[str, list[Line]]) -> Iterator[Line]:
    """In the order of the table; a title only on its first line."""
    for row in page.rows:
        if row.name in written:
            yield from written[row.name]
        elif row.name in results:
            for number, metric in enumerate(row.metrics):
                made = line(row, metric, results[row.name])
                yield made if number == 0 else made._replace(title="")


def columns(shown: list[Line]) -> list[int]:
    """The numbers of the columns that have something to show."""
    has_before = any(each.before for each in shown)
    return [number for number, name in enumerate(Line._fields) if has_before or name not in EARLIER]


def terminal_table(page: Page, results: Results) -> Table:
    rows = list(lines(page, results, {}))
    shown = columns(rows)
    table = Table(title=page.title)
    for number in shown:
        table.add_column(HEADINGS[number], justify=ALIGNED[number])
    colours = {"PASS": "[green]PASS[/]", "MISS": "[red]MISS[/]"}
    for each in rows:
        coloured = each._replace(verdict=colours.get(each.verdict, ""))
        table.add_row(*(coloured[number] for number in shown))
    return table


def markdown_table(page: Page, kept: Kept) -> str:
    rules = ["---:" if side == "right" else "---" for side in ALIGNED]
    rows = list(lines(page, kept.results, kept.written))
    shown = columns(rows)
    return "\n".join("| " + " | ".join(row[number] for number in shown) + " |" for row in (HEADINGS, rules, *rows))


def said(*command: str) -> str:
    """The first line that a tool prints, on either stream."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)
    return next(iter((done.stdout + done.stderr).strip().splitlines()), "unknown")


def field_of(path: str, name: str) -> str:
    """A value of /proc/cpuinfo and the like."""
    found = (line.partition(":")[2].strip() for line in Path(path).read_text().splitlines() if line.startswith(name))
    return next(found, "unknown")


def machine() -> dict[str, str]:
    """Nothing that names the host."""
    memory_gb = int(field_of("/proc/meminfo", "MemTotal").split()[0]) / 1024**2
    return {
        "machine": f"{os.cpu_count()} cores, {field_of('/proc/cpuinfo', 'model name')}, {memory_gb:.0f} GB",
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def facts() -> dict[str, str]:
    """The machine and the versions."""
    return {
        **machine(),
        "file system": said("findmnt", "-no", "FSTYPE", "-T", str(CACHE)),
        "Java": said("java", "-version"),
        "Apache Kafka": kafka.VERSION,
        "librdkafka": client.version(),
    }


def commits(kept: Kept) -> str:
    """The commit that was measured; where there were several, which rows belong to which."""
    rows: dict[str, list[str]] = {}
    for row, commit in kept.commits.items():
        rows.setdefault(commit, []).append(row)
    return next(iter(rows)) if len(rows) == 1 else "; ".join(f"{commit}: {', '.join(rows[commit])}" for commit in rows)


def text(page: Page, kept: Kept) -> str:
    where = "\n".join(f"| {name} | {value} |" for name, value in (facts() | {"Moldau": commits(kept)}).items())
    remarks = page.remarks.read_text().strip() if page.remarks.exists() else ""
    parts = [
        f"# Benchmarks: {page.title}",
        f"| | |\n|---|---|\n{where}",
        "## Figures",
        markdown_table(page, kept),
        "The ratio is Moldau : Kafka; an aim is what we would like, a bound is what we promise.",
        f"## Method\n\n{page.method.format(kafka=kafka.VERSION).strip()}",
        remarks,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def load(page: Page) -> Kept:
    """Of earlier runs: their results, and what the page has of others."""
    kept = Kept(**json.loads(page.results.read_text()), written={}) if page.results.exists() else Kept({}, {}, {})
    if page.file.exists():
        written, commits = read(page, page.file.read_text().splitlines())
        for name in written.keys() - kept.results.keys():
            kept.written[name] = written[name]
            kept.commits[name] = commits.get(name, "unknown")
    return kept


def read(page: Page, written: list[str]) -> tuple[dict[str, list[Line]], dict[str, str]]:
    """The rows of a page as they stand there, and the commits of those rows that have one, by their names."""
    names = {row.title: row.name for row in page.rows}
    found: dict[str, list[Line]] = {}
    fields: list[str] = []
    measured, row = "", ""
    for cells in ([cell.strip() for cell in line.split("|")[1:-1]] for line in written if line.startswith("|")):
        if cells[:1] == [HEADINGS.title]:
            fields = [Line._fields[HEADINGS.index(heading)] for heading in cells]
        elif fields and not cells[0].startswith("---"):
            row = names.get(cells[0], "") if cells[0] else row
            if row:
                line = Line(*[""] * len(Line._fields))._replace(**dict(zip(fields, cells, strict=True)))
                found.setdefault(row, []).append(line)
        elif cells[0] == "Moldau":
            measured = cells[1]
    return found, commits_of(measured, found)


def commits_of(measured: str, rows: Iterable[str]) -> dict[str, str]:
    """The reverse of `commits`."""
    if ":" not in measured:
        return dict.fromkeys(rows, measured)
    several = (part.partition(": ") for part in measured.split("; "))
    return {name: commit for commit, _, names in several for name in names.split(", ")}


def save(page: Page, kept: Kept) -> None:
    """Keep the figures and write the page."""
    page.results.parent.mkdir(parents=True, exist_ok=True)
    ours = {name: kept.commits[name] for name in kept.results}
    page.results.write_text(json.dumps({"results": kept.results, "commits": ours}, indent=1))
    page.file.write_text(text(page, kept))


def memory_mb(pid: int) -> float:
    """What a process and all below it have in memory; what several share is counted once."""
    try:
        fields = Path(f"/proc/{pid}/smaps_rollup").read_text().partition("Pss:")[2].split()
        below = [text for task in Path(f"/proc/{pid}/task").glob("*/children") for text in task.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it has just ended
    return (int(fields[0]) / 1024 if fields else 0.0) + sum(memory_mb(int(text)) for text in below)
