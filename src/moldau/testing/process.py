"""A real broker in a process of its own, for tests and scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from moldau.broker.call import call, messages
from moldau.testing.ports import free_port

START_S = 120.0
STOP_S = 60.0


class BrokerFailed(Exception):
    """An error of a broker that did not start or stop; the text ends with its log."""


class Broker:
    """A broker on a free port, with a data directory that outlives `restart` and `kill`.

    `bootstrap_servers` stays the same over restarts: the port is used again.
    """

    def __init__(self, settings: Mapping[str, str] | None = None, data_dir: str | None = None) -> None:
        self.settings = dict(settings or {})
        self.arguments: tuple[str, ...] = ()  # further ones of `moldau broker`
        self._temporary = data_dir is None
        self.data_dir = data_dir or tempfile.mkdtemp(prefix="moldau-test-")
        self._log_path = os.path.join(tempfile.gettempdir(), f"moldau-test-{os.getpid()}-{id(self)}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._address = f"127.0.0.1:{free_port()}"

    @property
    def bootstrap_servers(self) -> str:
        """Return the address for a client's `bootstrap.servers`: the one that clients are told."""
        told = self.settings.get("advertised.listeners", "").partition(",")[0]
        return told.partition("://")[2] or self._address

    @property
    def host(self) -> str:
        return self._address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self._address.rpartition(":")[2])

    @property
    def pid(self) -> int | None:
        """Return the id of the process while it runs."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> str:
        """Return the log of the broker, of all its starts."""
        try:
            with open(self._log_path, errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self) -> Broker:
        """Start it and wait until it accepts connections."""
        command = [sys.executable, "-m", "moldau", "broker", "--listen", self._address, "--stop-with-stdin"]
        command += ["--data-dir", self.data_dir, *self.arguments]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        with open(self._log_path, "ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True
            )
        line = self._first_line(self._process)
        if not line.startswith("ready "):
            self.kill()
            raise BrokerFailed(f"The broker did not start.\n{self.log}")
        self._address = line.split()[1]
        return self

    def _first_line(self, process: subprocess.Popen[bytes]) -> str:
        assert process.stdout is not None
        timer = threading.Timer(START_S, process.kill)
        timer.start()
        try:
            return process.stdout.readline().decode()
        finally:
            timer.cancel()

    def stop(self) -> None:
        """Stop it cleanly."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"The broker did not stop within {STOP_S:.0f} s.\n{self.log}") from None
        self._forget()
        if code:
            raise BrokerFailed(f"The broker ended with code {code}.\n{self.log}")

    def kill(self) -> None:
        """Kill it, as a crash would: no clean-up, no last write."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def signal(self, number: int) -> None:
        """Send a signal to its process."""
        assert self._process is not None
        self._process.send_signal(number)

    def _forget(self) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def restart(self) -> None:
        """Stop it if it runs, and start it again on the same data and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove its files."""
        try:
            self.stop()
        finally:
            self.kill()
            if self._temporary:
                shutil.rmtree(self.data_dir, ignore_errors=True)
            if os.path.exists(self._log_path):
                os.remove(self._log_path)

    def call(self, request: Any, version: int) -> Any:
        """Send one message of `moldau.wire.messages` and return the response."""
        return call((self.host, self.port), request, version)

    def create_topic(
        self, name: str | None = None, partitions: int = 1, config: Mapping[str, Any] | None = None, **settings: Any
    ) -> str:
        """Create a topic, with a new name if none is given, and return the name.

        Settings come as a mapping, or as keywords with underscores: `retention_ms=1000`.
        """
        name = name or f"topic-{os.urandom(6).hex()}"
        given = {**(config or {}), **{key.replace("_", "."): value for key, value in settings.items()}}
        rows = [messages.CreateTopicsRequest_CreatableTopicConfig(key, _text(value)) for key, value in given.items()]
        topic = messages.CreateTopicsRequest_CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=rows
        )
        result = self.call(messages.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0]
        if result.error_code:
            raise BrokerFailed(f"Topic {name} was not created: {result.error_message} (error {result.error_code}).")
        return name


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def broker(
    settings: Mapping[str, Any] | None = None, /, *, data_dir: str | None = None, **more: Any
) -> Iterator[Broker]:
    """Run a broker during a `with`. Settings come as a mapping, or as keywords with underscores.

    >>> with broker(num_partitions=3) as kafka:
    ...     kafka.create_topic("orders")
    """
    given = {**(settings or {}), **{key.replace("_", "."): value for key, value in more.items()}}
    started = Broker({key: _text(value) for key, value in given.items()}, data_dir)
    try:
        yield started.start()
    finally:
        started.close()


def eventually(condition: Callable[[], Any], timeout_s: float = 150.0, what: str = "it") -> Any:
    """Poll until the condition is true, and return its value."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen within {timeout_s} s")
        time.sleep(0.01)
    return value
