"""Commands in this process, as the shell would run them: quick, and with everything they print."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, settings
from typer.testing import CliRunner

from moldau.cli.application import application

_numbers = itertools.count()
# Nothing is said about time: other tests run beside.
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SMALL = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.initial.rebalance.delay.ms": 0,
}


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str
    raw: bytes


class Moldau:
    """The command line, talking to one cluster, with files of settings of its own."""

    def __init__(self, servers: str, home: Path, **more: str) -> None:
        self.servers = servers
        self.environment = {
            "MOLDAU_BOOTSTRAP_SERVERS": servers,
            "XDG_CONFIG_HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
            "COLUMNS": "100",
            **more,
        }

    def run(self, *words: str, stdin: bytes | str = b"") -> Done:
        with _environment({**self.environment, "MOLDAU_PROFILE": "", "MOLDAU_PROFILES": ""}):
            done = CliRunner().invoke(application(list(words)), list(words), input=stdin, prog_name="moldau")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Done(done.exit_code, done.stdout, done.stderr, done.stdout_bytes)

    def __call__(self, *words: str, stdin: bytes | str = b"") -> str:
        """What a command prints that succeeds."""
        done = self.run(*words, stdin=stdin)
        assert done.code == 0, f"{' '.join(words)}: {done.code}\n{done.out}{done.err}"
        return done.out

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def topic(self, partitions: int = 1, *config: str) -> str:
        """A new one."""
        name = f"t{os.getpid()}-{next(_numbers)}"
        more = [word for setting in config for word in ("--config", setting)]
        self("topic", "create", name, "--partitions", str(partitions), *more)
        return name

    def write(self, topic: str, *lines: str, options: tuple[str, ...] = ()) -> None:
        self("produce", topic, *options, stdin="".join(f"{line}\n" for line in lines))

    def read(self, *topics: str, options: tuple[str, ...] = ()) -> list[str]:
        return self("consume", *topics, "--exit", *options).splitlines()


@contextmanager
def _environment(given: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({name: text for name, text in given.items() if text})
    for name, text in given.items():
        if not text:
            os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
