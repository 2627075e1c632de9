"""Kafka's command lines in this process, as the shell would run them."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from typing import NamedTuple
from unittest.mock import patch

from moldau.cli import kafka

WITHOUT_BROKER = {"kafka-dump-log", "kafka-storage", "kafka-run-class"}


class Done(NamedTuple):
    """What a tool left behind."""

    code: int
    out: str
    err: str

    def lines(self) -> list[str]:
        return self.out.splitlines()


@dataclass(frozen=True, slots=True)
class Kafka:
    """The tools, talking to one cluster."""

    servers: str

    def __call__(self, name: str, *words: str, stdin: str = "") -> Done:
        broker = () if name in WITHOUT_BROKER else ("--bootstrap-server", self.servers)
        return run(name, *broker, *words, stdin=stdin)

    def ok(self, name: str, *words: str, stdin: str = "") -> list[str]:
        """The lines of a tool that succeeds."""
        done = self(name, *words, stdin=stdin)
        assert done.code == 0, f"{name} {' '.join(words)}: {done.code}\n{done.out}{done.err}"
        return done.lines()

    def topic(self, name: str, partitions: int = 1, *more: str) -> str:
        self.ok("kafka-topics", "--create", "--topic", name, "--partitions", str(partitions), *more)
        return name


def run(name: str, *words: str, stdin: str = "") -> Done:
    """Run a tool with these words and nothing else."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    with patch.object(sys, "stdout", out), patch.object(sys, "stderr", err), patch.object(sys, "stdin", given):
        code = kafka.run(name, list(words))
    return Done(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()
