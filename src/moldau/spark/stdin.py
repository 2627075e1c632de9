"""Ends a process that has started Java when whoever started it has ended."""

from __future__ import annotations

import os
import signal
import threading
import time


def end_with_stdin(grace_s: float) -> None:
    """Watch stdin in a thread: when it ends, send SIGTERM to this process, and after a while kill its whole group. Java
    may not notice that the platform has ended.
    """

    def watch() -> None:
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace_s)
        os.killpg(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="stdin", daemon=True).start()
