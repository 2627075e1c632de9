"""The JVM in which a worker's Java plugins run: one for all of them, started when it is first needed.

It is never Spark's: a plugin that uses up the memory, or halts the JVM, must not take streams with it; and a worker of
Connect has no Spark. When it ends, its tasks fail, and the next call starts another one.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from moldau.connect.jvm import libs
from moldau.connect.jvm.libs import Unavailable
from moldau.connect.jvm.link import Link, Told

log = logging.getLogger(__name__)
START_S = 120.0
END_S = 10.0
LINES = 20
OPTIONS = (
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showThreadName=false",
)


class Host:
    """One JVM. `folder` has Connect's jars, if they are not to be fetched; `options` are those of `java`."""

    def __init__(self, folder: str = "", options: str = "") -> None:
        self._folder, self._options = folder, options
        self._lock = threading.RLock()
        self._process: Process | None = None

    def link(self, kind: str, *words: Any, told: Mapping[str, Told] | None = None, timeout_s: float = START_S) -> Link:
        """Return a connection for one thing of a plugin; the JVM is started if it does not run."""
        running = self._running()
        link = Link(running.connect(), running.why_gone, told or {})
        try:
            link.call("serve", kind, *words, timeout_s=timeout_s)
        except BaseException:
            link.close()
            raise
        return link

    def ask(self, location: str, class_name: str, *words: Any, timeout_s: float = START_S) -> Any:
        """Ask a plugin that does not run something about itself."""
        link = self.link("answer", location, class_name)
        try:
            return link.call(*words, timeout_s=timeout_s)
        finally:
            link.close()

    def scan(self, location: str) -> list[list[str]]:
        """Return the plugins of a location: class, kind and version."""
        link = self.link("scan", location)
        try:
            return link.call("scan", timeout_s=START_S)
        finally:
            link.close()

    def key(self) -> str:
        """Name what scans and plugins: another host may find something else."""
        return libs.host_classes(libs.connect_jars(self._folder)).name

    def _running(self) -> Process:
        with self._lock:
            if self._process is not None and not self._process.has_ended:
                return self._process
            if self._process is not None:
                self._process.close()
            jars = libs.connect_jars(self._folder)
            self._process = Process([libs.host_classes(jars), *jars], shlex.split(self._options))
            return self._process

    def close(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.close()
                self._process = None


class Process:
    """The process of a JVM, and the folder with its socket."""

    def __init__(self, class_path: list[Path], options: list[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="moldau-jvm-")  # nobody else may look into it
        self._path = f"{self._folder.name}/host"
        paths = os.pathsep.join(map(str, class_path))
        command = [libs.program("java"), *OPTIONS, *options, "-cp", paths, "moldau.connect.Host", self._path]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self._lines: deque[str] = deque(maxlen=LINES)
        self._reader = threading.Thread(target=self._read, name="log of the JVM", daemon=True)
        self._reader.start()
        try:
            self._await()
        except BaseException:
            self.close()
            raise

    def _await(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self.has_ended:
                raise Unavailable(self.why_gone())
            with suppress(OSError):
                self.connect().close()
                return
            time.sleep(0.02)
        raise Unavailable(f"The JVM of Java plugins has not started within {START_S:g} s.")

    def _read(self) -> None:
        """Log what plugins print."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._lines.append(text)
            log.info("%s", text)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.connect(self._path)
        except OSError:
            made.close()
            raise
        return made

    def why_gone(self) -> str:
        """Say how the JVM has ended, with what it printed last."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._reader.join(1.0)
        code = self._process.poll()
        if code is None:
            return "The host of Java plugins has closed the connection."
        said = "".join(f"\n\t{line}" for line in self._lines)
        return f"The JVM of Java plugins has ended with code {code}." + (f" Its last words:{said}" if said else "")

    def close(self) -> None:
        """End the JVM; it ends by itself if this process does."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(END_S)
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._folder.cleanup()
