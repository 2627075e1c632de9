"""`python -m benchmarks.platform`: how soon `moldau up` and `--help` are there, what a platform takes at rest, and the
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.brokers import cpu_clock, tree
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
SETTLE_S, REST_S = 2.0, 10.0
NEEDLE = b"needle"
REMARK = """\
Medians and ranges by the clock. `moldau up` is from exec until it prints `ready`; the console answers later. Memory is
the proportional set size of all processes of `moldau up`. At rest nobody has connected yet, so that Connect, the SQL
server and the worker wait for their first use. The list of topics is from the request to the first row on the screen
of Chromium. The search goes over all records of a topic in one partition, by a condition on values of 200 bytes; while
it runs, another page is opened again and again, and the longest of these is shown.
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
def platform(home: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], float]]:
    """`moldau up`, and how many seconds it took to be ready."""
    began = time.perf_counter()
    command = [*MOLDAU, "up", "--data-dir", str(home), "--port-offset", str(OFFSET), *options]
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


@dataclass(slots=True)
class Starts:
    """Samples of starts: seconds to `ready` and to a console that answers, and what it all takes at rest."""

    ready_s: list[float] = field(default_factory=list)
    console_s: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)

    def add(self, *options: str) -> None:
        with tempfile.TemporaryDirectory() as home, platform(Path(home) / "data", *options) as (process, taken):
            self.ready_s.append(taken)
            self.console_s.append(answers(CONSOLE, time.perf_counter() - taken))
            time.sleep(SETTLE_S)
            before = sum(map(cpu_clock, tree(process.pid)))
            time.sleep(REST_S)
            self.cpu_s.append(sum(map(cpu_clock, tree(process.pid))) - before)
            self.memory_mb.append(memory_mb(process.pid))


def starts(runs: int, *options: str) -> Starts:
    samples = Starts()
    for _ in range(runs):
        samples.add(*options)
    return samples


def measured(runs: int, topics_count: int, records: int) -> list[Row]:
    repeat: Callable[[Callable[[], float]], tuple[float, ...]] = lambda act: tuple(act() for _ in range(runs))  # noqa: E731
    helped = repeat(help_s)
    one, three = starts(runs), starts(runs, "--brokers", "3")
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
        Row("`moldau up` until ready", tuple(one.ready_s), "s", 1.2),
        Row("the same until the console answers", tuple(one.console_s), "s", 10.0),
        Row("its memory at rest", tuple(one.memory_mb), "MB", 350),
        Row(f"its CPU time at rest, in {REST_S:.0f} s", tuple(one.cpu_s), "s", 0.5),
        Row("its memory after the console has been used", (taken,), "MB", 400),
        Row("`moldau up --brokers 3` until ready", tuple(three.ready_s), "s", 2.0),
        Row("its memory at rest", tuple(three.memory_mb), "MB", 450),
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
