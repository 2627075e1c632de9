"""A task of Spark that holds a worker of Connect: a process of its own, as `moldau connect` starts it anywhere.

Spark kills a Python worker without a warning, but the tasks of Connect should end in order. So the worker ends when its
stdin does, which Spark's Python worker holds: the driver has hung up, Spark has killed the Python worker, or somebody
has killed the executor. The process has a session of its own, because Spark's daemon of Python workers takes its whole
group of processes along when it ends.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from moldau import __version__
from moldau.connect.spark import lines
from moldau.settings import write_properties

STDERR = 2  # the executor's log
SECRET = "PYTHON_WORKER_FACTORY_SECRET"  # by which Spark knows its Python workers
REACH_S = 30.0  # to connect to the driver
ADVERTISED = "rest.advertised.host.name"
# Settings of the driver's own process.
OF_DRIVER = ("listeners", ADVERTISED, "rest.advertised.port", "connect.spark.workers")


class ExecutorError(Exception):
    """An error for a worker that cannot run in an executor, or that has ended there."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a task has to run. Settings may be secret: they are never shown, and reach the worker through a pipe."""

    number: int
    driver: tuple[str, int]
    token: str = field(repr=False)
    rest: tuple[str, int]
    scheme: str
    settings: Mapping[str, str] = field(repr=False)
    stop_s: float
    version: str = __version__


def settings_there(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a worker in an executor, of those that the driver was given."""
    return {name: text for name, text in given.items() if name not in OF_DRIVER and not name.startswith("spark.")}


def run(order: Order, _: Iterable[Any]) -> None:
    """Run a worker until the driver hangs up; ExecutorError if it ends before, or cannot run here."""
    check(order)
    try:
        line = lines.call(order.driver, order.token, order.number)
    except OSError as error:
        where = f"{socket.gethostname()} cannot reach the driver at {_text(order.driver)}"
        raise ExecutorError(f"{where}: {error}.") from None
    with line, started(order, line.getsockname()[0]) as process:
        is_over = threading.Event()

        def end() -> None:
            lines.await_end(line)
            is_over.set()
            stop(process, order.stop_s)

        ending = threading.Thread(target=end, name="line to the driver", daemon=True)
        ending.start()
        code = process.wait()
        if not is_over.is_set():
            raise ExecutorError(f"The worker on {socket.gethostname()} has ended with the exit code {code}.")
        ending.join()


def check(order: Order) -> None:
    """Raise ExecutorError where a worker would be of no use."""
    host = socket.gethostname()
    if order.version != __version__:
        raise ExecutorError(f"{host} has Moldau {__version__}, and the driver {order.version}: install the same.")
    try:
        socket.create_connection(order.rest, REACH_S).close()
    except OSError as error:
        raise ExecutorError(
            f"{host} cannot reach the driver's REST interface at {_text(order.rest)}: {error}. Let it listen where "
            f"executors reach it (listeners), or name that address ({ADVERTISED})."
        ) from None


def started(order: Order, host: str) -> subprocess.Popen[bytes]:
    """Start the worker. It listens on `host`, by which this machine and the driver reach each other."""
    settings = {**order.settings, **({ADVERTISED: socket.getfqdn()} if order.scheme == "https" else {})}
    reading, writing = os.pipe()
    try:
        command = ("connect", "--config", f"/dev/fd/{reading}", "--listen", f"{order.scheme}://{host}:0")
        process = subprocess.Popen(
            [sys.executable, "-m", "moldau", *command, "--stop-with-stdin"],
            stdin=subprocess.PIPE,
            stdout=STDERR,
            pass_fds=(reading,),
            start_new_session=True,
            env=environment(),
        )
    except OSError:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    with suppress(BrokenPipeError), open(writing, "wb") as pipe:  # whoever waits for the process learns that it ended
        pipe.write(write_properties(settings).encode())
    return process


def environment() -> dict[str, str]:
    """Return the environment of a worker: it finds the modules that this process does, those that Spark ships too."""
    own = {name: text for name, text in os.environ.items() if name != SECRET}
    return own | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def stop(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Let a worker leave its group and end; one that takes too long is killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()


def _text(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"
