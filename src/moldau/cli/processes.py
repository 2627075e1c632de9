"""Processes that this one starts and supervises: forked, so that they have the code that is loaded here, or afresh.

A forked process neither reads nor compiles the modules that this one has loaded, and shares their memory as long as
nobody writes to it. Nothing may be under way here when it forks: no thread, no event loop, no connection.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

LOOK_S = 0.005
ARGUMENTS = 45  # where /proc/self/stat has the bounds of the command line, counted from the process's state
FAILED = 1
STOPPING = (signal.SIGINT, signal.SIGTERM)


class Process:
    """A process with a pipe to its stdin and one from its stdout. Its stderr is appended to a file.

    It runs `command`, or the function `run` where there is one, under the name `title`. It has its own session: Ctrl-C
    reaches only this process, which stops the others in order.
    """

    def __init__(self, command: list[str], log: Path, title: str = "", run: Callable[[], None] | None = None) -> None:
        assert run is None or threading.active_count() == 1, "a thread would be missing there, with what it has locked"
        theirs, ours = os.pipe(), os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with log.open("ab") as errors:
            # A signal that reaches the new process before it has left this one's handlers must wait for that.
            signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
            self.pid = os.fork()
            if not self.pid:
                _become(command, (theirs[0], ours[1], errors.fileno()), title, run)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        os.close(theirs[0])
        os.close(ours[1])
        self.stdin, self.stdout = os.fdopen(theirs[1], "wb", buffering=0), os.fdopen(ours[0], "rb", buffering=0)
        self.code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self, timeout_s: float = float("inf")) -> int | None:
        """Wait for its end; None if it does not come in time."""
        until = time.monotonic() + timeout_s
        while self.poll() is None and time.monotonic() < until:
            time.sleep(LOOK_S)
        return self.code

    def terminate(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill_group(self) -> None:
        """Kill the process and all that it started: Java may outlive the Python that started it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        self.stdin.close()
        self.stdout.close()


def load(modules: Iterable[str]) -> None:
    """Load modules for those who are forked afterwards. The collector never looks at them, or each would copy them."""
    gc.disable()
    for name in modules:
        import_module(name)
    gc.freeze()
    gc.enable()


def _become(command: list[str], files: Sequence[int], title: str, run: Callable[[], None] | None) -> NoReturn:
    """Be the new process, to its end. The callers of this function exist twice now: here they never go on."""
    code = FAILED
    try:
        code = _live(command, files, title, run)
        with contextlib.suppress(BrokenPipeError):  # whoever has started it is gone
            atexit._run_exitfuncs()  # as multiprocessing does: nobody else runs them before `_exit`
            sys.stdout.flush()
    finally:
        os._exit(code)


def _live(command: list[str], files: Sequence[int], title: str, run: Callable[[], None] | None) -> int:
    """Leave what is the parent's, run, and return the exit code."""
    try:
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(len(files), 1 + max(map(int, os.listdir("/dev/fd"))))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        if run is None:
            os.execv(command[0], command)
        _rename(title)
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED if end.code else 0
    except BaseException:
        traceback.print_exc()
        return FAILED
    return 0


def _rename(title: str) -> None:
    """Write a name over the command line, which is the parent's, for `ps` and whoever else looks at processes."""
    with contextlib.suppress(OSError), open("/proc/self/mem", "r+b", buffering=0) as memory:
        first, last = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[ARGUMENTS:][:2])
        words = title.replace(" ", "\0").encode()[: last - first - 1]
        memory.seek(first)
        memory.write(words.ljust(last - first, b"\0"))
        Path("/proc/self/comm").write_text(title)
