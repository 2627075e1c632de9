"""A process that has imported what applications need, and loads each file in a child of its own.

To import all of it takes seconds; to fork takes milliseconds. The process (`loading.py`) ends when it had nothing to do
for a while, or with the process that has started it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

STARTING_S = 300.0  # for imports, before the time of a child counts
LOOK_S = 0.01  # between two looks for the end of a child
TRIES = 3  # the process may end just when it is asked


class Loader:
    """Any thread may ask; files are loaded at the same time."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def load(self, file: Path, out: Path, said: Path, settings: dict[str, str], longest_s: float) -> int | None:
        """Let a child load a file, write the application to `out` and errors to `said`. Returns its exit code, negative
        for a signal; None if it took too long.
        """
        status = out.with_suffix(".status")
        request = {"file": str(file), "out": str(out), "said": str(said), "status": str(status)}
        line = json.dumps({**request, "settings": settings, "longest_s": longest_s}).encode()
        until = time.monotonic() + longest_s + STARTING_S
        for _ in range(TRIES):
            process = self._ask(line)
            while not status.exists() and process.poll() is None:
                if time.monotonic() > until:  # whoever waits for the child was killed
                    return None
                time.sleep(LOOK_S)
            if status.exists():
                code: Any = json.loads(status.read_bytes())
                return code
        raise RuntimeError("The process that loads files ends again and again.")

    def _ask(self, line: bytes) -> subprocess.Popen[bytes]:
        with self._lock:
            if self.process is None or self.process.poll() is not None:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "moldau.flows.loading"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    bufsize=0,
                )
            process = self.process
            assert process.stdin is not None
            try:
                process.stdin.write(line + b"\n")
            except BrokenPipeError:  # it is about to end
                process.wait()
            return process


LOADER = Loader()
