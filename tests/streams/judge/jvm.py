"""The JVM with Kafka Streams: a case goes in as a line of JSON, what Kafka makes of it comes out as one."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from tests import needs
from tests.streams.judge.case import Advance, Answer, Case, Headers, Made, Step

SECONDS = 120  # for one answer
FLAGS = ["-XX:+UseSerialGC", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
BRIEF = ["-XX:TieredStopAtLevel=1"]  # for runs of seconds: no time is spent on the best code


@dataclass(slots=True)
class Kafka:
    """The running judge."""

    process: subprocess.Popen[str]

    def topologies(self) -> list[str]:
        return self._asked({})

    def answer(self, case: Case) -> Answer:
        asked = {"topology": case.topology, "settings": dict(case.settings), "steps": [_step(s) for s in case.steps]}
        given = self._asked(asked)
        return Answer(
            given.get("describe", ""),
            [[_made(row) for row in step] for step in given["steps"]],
            {name: [tuple(map(_cell, row)) for row in rows] for name, rows in given.get("stores", {}).items()},
            given["seen"],
            given.get("error", ""),
        )

    def _asked(self, request: dict[str, Any]) -> Any:
        assert self.process.stdin and self.process.stdout
        watch = Timer(SECONDS, self.process.kill)
        watch.start()
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        finally:
            watch.cancel()
        assert answer, f"the JVM ended: exit {self.process.wait(5)}, {request}"
        return json.loads(answer)


@contextmanager
def kafka_streams(flags: Sequence[str] = ()) -> Iterator[Kafka]:
    """Start the JVM, in a folder for its stores; ended whatever happens."""
    classes, jars = needs.find("streams-judge").path, needs.find("streams-jars").path
    shared = Path("/dev/shm")  # stores on disk are opened for each case: memory makes that fast where there is some
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        command = ["java", *FLAGS, *flags, "-cp", f"{classes}:{jars}/*", "Judge", folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Kafka(process)
            finally:
                process.kill()


def _step(step: Step) -> dict[str, Any]:
    if isinstance(step, Advance):
        return {"advance": step.milliseconds}
    headers = [[name, _coded(value)] for name, value in step.headers]
    key, value = _coded(step.key), _coded(step.value)
    return {"topic": step.topic, "key": key, "value": value, "timestamp": step.timestamp, "headers": headers}


def _made(row: list[Any]) -> Made:
    topic, key, value, timestamp, given = row
    headers: Headers = tuple((name, _decoded(header)) for name, header in given)
    return Made(topic, _decoded(key), _decoded(value), timestamp, headers)


def _coded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _cell(cell: str | int | None) -> bytes | int | None:
    return cell if isinstance(cell, int) else _decoded(cell)
