"""librdkafka's own test suite, the tests that need a broker, each number in a process of its own.

The runner is built outside this project by librdkafka's instructions and named by LIBRDKAFKA_RUNNER. A dozen tests
call kafka-topics.sh and kafka-acls.sh, and some compile programs in Java and run them by kafka-run-class.sh; where
Kafka's jars are to be had, small scripts stand in for those.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests import needs
from tests.conformance.java_tools import FLAGS
from tests.conformance.outcome import Expected, Outcome, Verdict
from tests.conformance.secured import Login

SUITE = "librdkafka"
FULL = ("-L",)  # without the tests that need no broker
QUICK = (*FULL, "-Q", "-E")  # its quick mode, without the tests that emulate a slow socket
SECONDS = 300
SLOW_FIRST = ("0184", "0081", "0091", "0103", "0139", "0033", "0093", "0123")
SCRIPTS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
    "kafka-run-class.sh": "",  # the class is the first argument
}
PROGRAMS = "java"  # the folder of librdkafka's programs, beside the runner
FIXTURES = "fixtures"  # the folder of its keys

ROW = re.compile(r"^\|\s*(\d{4}_\w+)\s*\|\s*(\w+)\s*\|[^|\n]*\|?(.*)$", re.MULTILINE)
REASON = re.compile(r'^### Test "(?!<MAIN>)(\w+)[^"]*" failed at .*###\n(.*)', re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
NAMED = re.compile(r"Skipping test (\d{4})_(\w+)")


@dataclass(frozen=True, slots=True)
class Runner:
    path: Path
    work: Path
    environment: Mapping[str, str]
    flags: Sequence[str] = QUICK
    seconds: int = SECONDS
    processors: frozenset[int] = frozenset()  # on which it runs; none: on any

    def run(self, number: str, seconds: int = 0, level: int = 2) -> tuple[str, int | None]:
        """What one number printed, without colours, and its exit code: None if it did not end in time."""
        folder = self.work / number
        folder.mkdir()
        if (self.path.parent / FIXTURES).exists():
            (folder / FIXTURES).symlink_to(self.path.parent / FIXTURES)
        if (self.work / PROGRAMS).exists():
            (folder / PROGRAMS).symlink_to(self.work / PROGRAMS)
            (folder / "Makefile").write_text(f".PHONY: {PROGRAMS}\n{PROGRAMS}:\n\t$(MAKE) -C {PROGRAMS}\n")
        environment = {**self.environment, "TESTS": number, "TEST_LEVEL": str(level)}
        command = [str(self.path), "-p1", *self.flags]
        log = self.work / f"{number}.log"
        with open(log, "wb") as out:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
            if self.processors:
                os.sched_setaffinity(process.pid, self.processors)
            try:
                code = process.wait(seconds or self.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
        return COLOUR.sub("", log.read_text(errors="replace")), code


def runner(
    path: Path,
    bootstrap: str,
    work: Path,
    flags: Sequence[str] = QUICK,
    login: Login | None = None,
    seconds: int = SECONDS,
    processors: frozenset[int] = frozenset(),
) -> Runner:
    work.mkdir(parents=True)
    conf = work / "test.conf"
    lines = {"bootstrap.servers": bootstrap, "test.topic.random": "true", "test.timeout.multiplier": "2"}
    lines |= login.librdkafka if login else {}
    conf.write_text("".join(f"{name}={text}\n" for name, text in lines.items()))
    environment = {**os.environ, "RDKAFKA_TEST_CONF": str(conf), "TEST_KAFKA_VERSION": needs.KAFKA_VERSION}
    environment |= login.environment if login else {}
    beside = [str(path.parent.parent / name) for name in ("src", "src-cpp")]  # not the system's library, if built there
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [*beside, os.environ.get("LD_LIBRARY_PATH")]))
    if (libs := needs.find("kafka-jars").path) and needs.find("java").path:
        environment |= {"KAFKA_PATH": str(scripts(libs, work / "kafka", login)), "BROKERS": bootstrap}
        if (path.parent / PROGRAMS).exists():
            shutil.copytree(path.parent / PROGRAMS, work / PROGRAMS)
    for source in (path.parent / "src", path.parent.parent / "src"):
        if (source / "statistics_schema.json").exists():  # one test reads it at ../src
            (work / "src").symlink_to(source)
            break
    return Runner(path, work, environment, flags, seconds, processors)


def scripts(libs: Path, home: Path, login: Login | None = None) -> Path:
    """Stand-ins for the scripts of a Kafka installation."""
    (home / "bin").mkdir(parents=True)
    (home / "libs").symlink_to(libs)
    if login:
        (home / "client.properties").write_text(login.java)
    for name, main in SCRIPTS.items():
        script = home / "bin" / name
        more = f" --command-config {home}/client.properties" if login and main else ""
        script.write_text(f'#!/bin/sh\nexec java {" ".join(FLAGS)} -cp "$CLASSPATH:{libs}/*" {main} "$@"{more}\n')
        script.chmod(0o755)
    return home


def names(using: Runner) -> dict[str, list[str]]:
    """All tests by number: the runner names every one of them when it is asked for none."""
    text, _ = using.run("none", 30, level=3)
    found: dict[str, list[str]] = {}
    for number, rest in NAMED.findall(text):
        if not number.startswith("8"):  # those are for use by hand
            found.setdefault(number, []).append(f"{number}_{rest}")
    return found


def outcomes(number: str, text: str, code: int | None) -> Iterator[Outcome]:
    """The runner's summary table, read. It ends without one when a test has failed hard, crashed or hung."""
    rows = ROW.findall(text)
    failures = REASON.findall(text)
    reasons = [line.strip()[:160] for _, line in failures] or [how_it_ended(code)]
    if not rows or code is None:
        running = [name for name, _ in failures] or re.findall(r"Running test (\w+)", text)[-1:] or [number]
        yield Outcome(running[0], Verdict.FAILED, reasons[0])
        rows = [row for row in rows if row[1] == "PASSED"]
    for name, state, remark in rows:
        if not name.startswith(number) or "negative test flags" in remark:
            continue  # needs no broker
        if state == "PASSED":
            yield Outcome(name, Verdict.PASSED)
        elif state == "SKIPPED":
            yield Outcome(name, Verdict.SKIPPED, remark.strip())
        else:
            yield Outcome(name, Verdict.FAILED, reasons[0])


def how_it_ended(code: int | None) -> str:
    return "did not end in time" if code is None else f"ended with exit code {code}"


def run(
    using: Runner, wanted: Iterable[str], everything: bool, jobs: int, told: Callable[[str], None], brokers: int = 1
) -> Iterator[Outcome]:
    """Run the wanted numbers (none: all), several at a time. Those that wait for a later part run only if asked."""
    listed, expected = names(using), Expected.of(SUITE, brokers)
    numbers = sorted(set(wanted) or listed, key=lambda number: (number not in SLOW_FIRST, number))
    waiting = [] if everything else [n for n in numbers if n not in set(wanted) and n in expected.waits]
    for number in waiting:
        remote = [name for name in listed[number] if not name.endswith(("_local", "_mock"))]
        yield from (Outcome(name, Verdict.WAITS, expected.waits[number]) for name in remote)

    def one(number: str) -> list[Outcome]:
        found = list(outcomes(number, *using.run(number)))
        for outcome in map(expected.judge, found):
            told(f"{outcome.test} {outcome.verdict} {outcome.why}".strip())
        return found

    with ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(one, [number for number in numbers if number not in waiting]):
            yield from found
