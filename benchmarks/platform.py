"""`python -m benchmarks.platform`: how soon `moldau up` and `--help` are there, what memory the platform takes, and the
console with many topics and many records. Needs Chromium. Writes docs/benchmarks-platform.md."""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.places import PROJECT
from benchmarks.report import machine, memory_mb
from moldau.admin import topics
from moldau.client import Client
from moldau.records.partitioners import PARTITIONERS
from moldau.records.writing import Writer

PAGE = PROJECT / "docs" / "benchmarks-platform.md"
MOLDAU = (sys.executable, "-m", "moldau")
OFFSET = 23_000  # added to the usual ports
SERVERS, CONSOLE = f"127.0.0.1:{9092 + OFFSET}", f"http://127.0.0.1:{9021 + OFFSET}"
PATIENCE_S = 120.0
NEEDLE = b"needle"
REMARK = """\
Medians and ranges by the clock. `moldau up` is from exec until it prints `ready`; the console answers later. Memory is
the proportional set size of all processes of `moldau up`, broker, registry, REST Proxy and console, after the console
has shown its pages. The list of topics is from the request to the first row on the screen of Chromium. The search goes
over all records of a topic in one partition, by a condition on values of 200 bytes; while it runs, another page is
opened again and again, and the longest of these is shown.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, and the one that is expected of it."""

    title: str
    samples: tuple[float, ...]
    unit: str
    goal: float
    at_least: bool = False

    @property
    def figure(self) -> float:
        return statistics.median(self.samples)

    @property
    def verdict(self) -> str:
        return "PASS" if (self.figure >= self.goal if self.at_least else self.figure <= self.goal) else "MISS"

    def line(self) -> str:
        low, high, sign = min(self.samples), max(self.samples), "≥" if self.at_least else "≤"
        digits = ",.0f" if self.goal >= 10 else ".2f"
        spread = f" ({low:{digits}}–{high:{digits}})" if len(self.samples) > 1 else ""
        goal = f"{sign} {self.goal:{',.0f' if self.goal >= 10 else 'g'}}"
        return f"| {self.title} | {self.unit} | {self.figure:{digits}}{spread} | {goal} | {self.verdict} |"


@contextmanager
def platform(home: Path) -> Iterator[tuple[subprocess.Popen[str], float]]:
    """`moldau up`, and how many seconds it took to be ready."""
    began = time.perf_counter()
    command = [*MOLDAU, "up", "--data-dir", str(home), "--port-offset", str(OFFSET)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        if not any(line.strip() == "ready" for line in process.stdout):
            raise SystemExit("moldau up did not start; its own words are above.")
        yield process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def answers(url: str, began: float) -> float:
    """Seconds since then until something answers."""
    while time.perf_counter() - began < PATIENCE_S:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return time.perf_counter() - began
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f"{url} does not answer.")


def help_s() -> float:
    began = time.perf_counter()
    subprocess.run([*MOLDAU, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("The console is measured in Chromium, which is not here: apt install chromium.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


def many_topics(count: int) -> None:
    with Client({"bootstrap.servers": SERVERS, "default.api.timeout.ms": "120000"}) as client:
        for first in range(0, count, 500):
            last = min(count, first + 500)
            topics.create(client, [topics.NewTopic(f"many-{number:05}", 1) for number in range(first, last)])


def many_records(count: int) -> None:
    """Of 200 bytes; the last one has the needle."""
    with Client({"bootstrap.servers": SERVERS}) as client:
        topics.create(client, [topics.NewTopic("records", 1)])
        writer = Writer(client, "records", 1, PARTITIONERS["murmur2"])
        for first in range(0, count, 10_000):
            writer.values([b"%0200d" % number for number in range(first, min(count, first + 10_000))])
        writer.values([NEEDLE])
        writer.close()


def list_s(page: Any) -> float:
    """Until the first topics are seen."""
    began = time.perf_counter()
    page.goto(f"{CONSOLE}/topics", wait_until="commit")
    page.get_by_role("link", name="many-00000").wait_for()
    return time.perf_counter() - began


def search(page: Any, other: Any) -> tuple[float, float]:
    """Records a second as the console tells it, and the longest that another page took meanwhile."""
    page.goto(f"{CONSOLE}/topics/records/messages")
    page.get_by_text("50 records").wait_for()
    box = page.get_by_label("Search key, value and headers")
    box.fill(f"value like '%{NEEDLE.decode()}%'")
    box.press("Enter")
    longest, status = 0.0, page.get_by_role("status")
    while "1 found" not in (text := status.inner_text()):
        began = time.perf_counter()
        other.goto(f"{CONSOLE}/brokers")
        other.get_by_role("link", name="1", exact=True).wait_for()
        longest = max(longest, time.perf_counter() - began)
    rate = re.search(r"([\d,]+) a second", text)
    assert rate is not None, text
    return float(rate[1].replace(",", "")), longest


def starts(runs: int) -> tuple[list[float], list[float]]:
    """Seconds to `ready`, and to a console that answers."""
    ready, shown = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as home, platform(Path(home) / "data") as (_, taken):
            ready.append(taken)
            shown.append(answers(CONSOLE, time.perf_counter() - taken))
    return ready, shown


def measured(runs: int, topics_count: int, records: int) -> list[Row]:
    repeat: Callable[[Callable[[], float]], tuple[float, ...]] = lambda act: tuple(act() for _ in range(runs))  # noqa: E731
    helped = repeat(help_s)
    ready, shown = starts(runs)
    with tempfile.TemporaryDirectory() as home, platform(Path(home) / "data") as (process, _), browser() as chromium:
        answers(CONSOLE, time.perf_counter())
        page, other = chromium.new_page(), chromium.new_page()
        for path in ("/", "/topics", "/groups", "/schemas", "/brokers", "/lineage"):
            page.goto(CONSOLE + path)
            page.get_by_role("heading").first.wait_for()
        taken = memory_mb(process.pid)
        many_records(records)
        found = [search(page, other) for _ in range(runs)]
        many_topics(topics_count)
        listed = repeat(lambda: list_s(page))
    return [
        Row("`moldau --help`", helped, "s", 0.3),
        Row("`moldau up` until ready", tuple(ready), "s", 2.0),
        Row("the same until the console answers", tuple(shown), "s", 10.0),
        Row("memory of `moldau up`", (taken,), "MB", 400),
        Row(f"console: list of {topics_count:,} topics", listed, "s", 1.0),
        Row(f"console: search over {records:,} records", tuple(rate for rate, _ in found), "records/s", 200_000, True),
        Row("another page while it searches", tuple(longest for _, longest in found), "s", 2.0),
    ]


def main(
    runs: Annotated[int, typer.Option(help="Of each.")] = 3,
    topics_count: Annotated[int, typer.Option("--topics", help="In the list.")] = 10_000,
    records: Annotated[int, typer.Option(help="To search.")] = 1_000_000,
    write: Annotated[bool, typer.Option(help="Write the page.")] = True,
) -> None:
    """Measure, and write the page."""
    rows = measured(runs, topics_count, records)
    head = ("| what | unit | measured | goal |  |", "|---|---|---:|---:|---|")
    here = machine()
    where = f"{here['machine']}, Python {here['Python']}, {here['date']}."
    text = "\n".join(("# Benchmarks: the platform", "", where, "", *head, *(row.line() for row in rows), "", REMARK))
    print(text)
    if write:
        PAGE.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(PROJECT / "src"))
    typer.run(main)
