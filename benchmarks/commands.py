"""`python -m benchmarks.commands`: `moldau produce` and `moldau consume` beside kcat, whole processes, start included.

Needs kcat. Writes docs/benchmarks-commands.md.
"""

import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from benchmarks.places import PROJECT
from moldau.testing import broker

PAGE = PROJECT / "docs" / "benchmarks-commands.md"
HALF = 0.5
MOLDAU = (sys.executable, "-m", "moldau")
REMARK = """\
Thousands of records a second of processor time, of the whole process with its start; the median of the runs, and their
range. Runs alternate. {count:,} lines of 100 characters, one partition, Moldau's broker on the same machine; the
broker's time is not counted. At least half of kcat's speed is expected. A Python process takes a quarter of a second to
start, so longer streams come out better. Templates are filled in record by record.
"""


@dataclass(slots=True)
class Row:
    """Two commands that do the same, and what they read from stdin; samples are records a second of processor time."""

    title: str
    commands: dict[str, Sequence[str]]
    source: Path | None
    count: int
    samples: dict[str, list[float]] = field(default_factory=dict)

    def run(self, name: str) -> None:
        """One process, from its start to its end."""
        with open(self.source or os.devnull, "rb") as given:
            process = subprocess.Popen(self.commands[name], stdin=given, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"{' '.join(self.commands[name])} ended with {process.returncode}"
        self.samples.setdefault(name, []).append(self.count / (used.ru_utime + used.ru_stime))

    @property
    def ratio(self) -> float:
        return statistics.median(self.samples["moldau"]) / statistics.median(self.samples["kcat"])


def rows(servers: str, home: Path, count: int) -> Iterator[Row]:
    """The table."""
    plain, keyed = home / "plain", home / "keyed"
    plain.write_text("".join(f"{number:0100}\n" for number in range(count)))
    keyed.write_text("".join(f"{number % 1000}:{number:0100}\n" for number in range(count)))
    for topic in ("plain", "keyed"):
        subprocess.run([*MOLDAU, "topic", "create", topic, "-b", servers], check=True, capture_output=True)
    kcat, produce, consume = ["kcat", "-q", "-b", servers], [*MOLDAU, "produce", "-q"], [*MOLDAU, "consume", "-q"]
    to, of = ["-b", servers], ["-b", servers, "-c", str(count)]
    yield Row("produce lines", {"kcat": [*kcat, "-P", "-t", "plain"], "moldau": [*produce, "plain", *to]}, plain, count)
    keys = {"kcat": [*kcat, "-P", "-t", "keyed", "-K", ":"], "moldau": [*produce, "keyed", "-K", ":", *to]}
    yield Row("produce keys and values", keys, keyed, count)
    for title, topic, more in (
        ("consume values", "plain", []),
        ("consume by a template", "plain", ["-f", "%o %T %s\\n"]),
        ("consume keys and values", "keyed", ["-K", ":"]),
        ("consume as JSON", "keyed", ["-J"]),
    ):
        theirs = [*kcat, "-C", "-t", topic, "-c", str(count), *more]
        yield Row(title, {"kcat": theirs, "moldau": [*consume, topic, *of, *more]}, None, count)


def page(measured: Sequence[Row], count: int) -> str:
    """The whole page."""
    lines = [
        "# Benchmarks: commands",
        "",
        _machine(),
        "",
        "| what | kcat | moldau | ratio |  |",
        "|---|---:|---:|---:|---|",
    ]
    for row in measured:
        verdict = "PASS" if row.ratio >= HALF else "MISS"
        lines.append(
            f"| {row.title} | {_figure(row, 'kcat')} | {_figure(row, 'moldau')} | {row.ratio:.2f} | {verdict} |"
        )
    return "\n".join((*lines, "", REMARK.format(count=count)))


def _figure(row: Row, name: str) -> str:
    found = sorted(sample / 1000 for sample in row.samples[name])
    return f"{statistics.median(found):,.0f} ({found[0]:,.0f}–{found[-1]:,.0f})"


def _machine() -> str:
    cores = f"{os.cpu_count()} cores, {platform.machine()}"
    version = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"Version ([\d.]+)", version)
    number, today = found[1] if found else "?", time.strftime("%Y-%m-%d", time.gmtime())
    return f"{cores}, Python {platform.python_version()}, kcat {number}, {today}."


def main(
    count: Annotated[int, typer.Option(help="Lines.")] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Of each command.")] = 5,
) -> None:
    """Measure, and write the page."""
    if not shutil.which("kcat"):
        print("These commands are measured beside kcat, which is not here: apt install kcat.", file=sys.stderr)
        raise typer.Exit(1)
    measured = []
    with tempfile.TemporaryDirectory() as home, broker() as kafka:
        for row in rows(kafka.bootstrap_servers, Path(home), count):
            for _ in track(range(runs), row.title):
                for name in row.commands:
                    row.run(name)
            measured.append(row)
    text = page(measured, count)
    PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    typer.run(main)
