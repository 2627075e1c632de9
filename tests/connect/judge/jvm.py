"""The JVM with Connect: a request goes in as a line of JSON, and a line with the answers comes out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Any

from tests import needs

SECONDS = 120  # for one answer
FLAGS = ["-XX:+UseSerialGC", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
PLACE = ["-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"]
BRIEF = ["-XX:TieredStopAtLevel=1"]  # for runs of seconds: no time is spent on the best code


@dataclass(slots=True)
class Connect:
    """The running judge."""

    process: subprocess.Popen[str]

    def answer(self, request: dict[str, Any]) -> Any:
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
def connect(flags: Sequence[str] = ()) -> Iterator[Connect]:
    """Start the JVM; it is ended whatever happens."""
    classes, jars = needs.find("connect-judge").path, needs.find("kafka-jars").path
    more = needs.find("debezium-jars").path  # Debezium's transforms; what they share with Connect is Connect's
    places = [f"{classes}", f"{jars}/*", *([f"{more}/*"] if more else [])]
    command = ["java", *FLAGS, *PLACE, *flags, "-cp", ":".join(places), "Judge"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Connect(process)
        finally:
            process.kill()
