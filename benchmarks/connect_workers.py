"""A worker of Apache Connect or of Moldau as a process beside one broker, and what a run asks of it."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests import needs

from benchmarks.brokers import cpu_clock, environment, tree
from benchmarks.places import PROJECT, BenchError
from benchmarks.report import memory_mb

PATIENCE_S = 180.0
STRING = "org.apache.kafka.connect.storage.StringConverter"
JVM = (  # as connect-distributed.sh starts it
    *("java", "-server", "-Xms256M", "-Xmx2G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
SETTINGS = {
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "key.converter": STRING,
    "value.converter": STRING,
    "exactly.once.source.support": "enabled",
}


def java(properties: Path) -> list[str]:
    found = needs.find("connect-jars")
    if found.path is None:
        raise BenchError(f"There is no Apache Connect here ({found.reason}).")
    return [*JVM, "-cp", f"{found.path}/*", "org.apache.kafka.connect.cli.ConnectDistributed", str(properties)]


def python(properties: Path) -> list[str]:
    return [sys.executable, "-m", "moldau", "connect", str(properties)]


@dataclass(slots=True)
class Worker:
    """One worker, with topics of its own. `up_s` is the time from exec to the first answer of its REST interface."""

    name: str
    command: Callable[[Path], list[str]]
    home: Path
    port: int
    broker: str
    plugin: Path | None = None  # a folder of jars
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    up_s: float = field(default=0.0, init=False)

    @property
    def pid(self) -> int:
        assert self.process, f"{self.name} was never started"
        return self.process.pid

    def start(self, turn: str = "") -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        properties, group = self.home / "worker.properties", f"{self.name}{turn}"
        plugins = self.home / "plugins"
        plugins.mkdir(exist_ok=True)
        if self.plugin is not None and not (plugins / "plugin").exists():
            (plugins / "plugin").symlink_to(self.plugin)
        rows = SETTINGS | {
            "bootstrap.servers": self.broker,
            "group.id": group,
            **{f"{what}.storage.topic": f"{group}-{what}" for what in ("config", "offset", "status")},
            "listeners": f"http://127.0.0.1:{self.port}",
            "plugin.path": str(plugins),
            "moldau.plugin.libs": str(needs.find("connect-jars").path),
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
        began = time.monotonic()
        with (self.home / "worker.log").open("ab") as log:
            command = self.command(properties)
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=PROJECT, env=environment())
        self.wait(lambda: self.ask("GET", "/connectors") is not None, "its REST interface", 0.01)
        self.up_s = time.monotonic() - began

    def stop(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer; None while the worker is away, or busy with itself."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"true")
        except urllib.error.HTTPError as error:
            if error.code in (404, 409, 503):
                return None
            raise BenchError(f"{self.name} answers {error.code}: {error.read().decode()[:300]}") from None
        except (urllib.error.URLError, OSError, ValueError):
            return None

    def create(self, name: str, config: dict[str, Any]) -> None:
        texts = {key: str(value) for key, value in config.items()}
        put = lambda: self.ask("PUT", f"/connectors/{quote(name)}/config", texts) is not None  # noqa: E731
        self.wait(put, f"connector {name}", 0.05)

    def delete(self, name: str) -> None:
        self.wait(lambda: self.ask("DELETE", f"/connectors/{quote(name)}"), f"the end of {name}", 0.05)
        self.wait(lambda: self.ask("GET", f"/connectors/{quote(name)}/status") is None, f"the end of {name}", 0.05)

    def await_running(self, name: str, tasks: int = 1) -> None:
        def is_running() -> bool:
            status = self.ask("GET", f"/connectors/{quote(name)}/status")
            states = [one["state"] for one in status["tasks"]] if status else []
            if "FAILED" in states:
                raise BenchError(f"{name} failed at {self.name}: {status['tasks'][0].get('trace', '')[:500]}")
            return states == ["RUNNING"] * tasks

        self.wait(is_running, f"{name} running", 0.05)

    @contextlib.contextmanager
    def connector(self, name: str, config: dict[str, Any]) -> Iterator[None]:
        self.create(name, config)
        try:
            yield
        finally:
            self.delete(name)

    def wait(self, reached: Callable[[], Any], what: str, pause_s: float) -> None:
        """Wait until something is so; BenchError if it never is."""
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            if time.monotonic() > deadline or (self.process is not None and self.process.poll() is not None):
                raise BenchError(f"{self.name}: no {what}. Its log ends: {self.log_tail()}")
            time.sleep(pause_s)

    def log_tail(self) -> str:
        return (self.home / "worker.log").read_text(errors="replace").strip()[-500:]

    def cpu_s(self) -> float:
        return sum(cpu_clock(pid) for pid in tree(self.pid))

    def memory_mb(self) -> float:
        return memory_mb(self.pid)
