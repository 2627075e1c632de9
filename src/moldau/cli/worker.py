"""`moldau worker`: runs deployed flows until it is stopped; `moldau worker list` shows who runs."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import NO_REGISTRY, command, noun
from moldau.cli.options import argument, epilog, option
from moldau.cli.output import Column
from moldau.cli.services import Config, StopWithStdin, log_to_stderr, read_config
from moldau.cli.session import Session, pairs
from moldau.extras import require_spark
from moldau.flows.definition import FlowError
from moldau.http import ServeError
from moldau.plan.home import STATE_DIR
from moldau.spark.stdin import end_with_stdin
from moldau.topicstore import StoreError, await_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from moldau.flows.overview import WorkerInfo
    from moldau.flows.worker import Worker

cli, verb = noun()
GRACE_S = 30.0
OF_LANES = ("moldau.plan.lane.steps", "moldau.plan.lane.sink", "moldau.sql.lowering")  # what lanes run: loaded once
COLUMNS = (
    "name",
    "host",
    "pid",
    Column("lanes", text=lambda lanes: str(len(lanes))),
    Column("memory_bytes", "memory", lambda number: "-" if number is None else f"{number / 2**20:,.0f} MB"),
    Column("batch_ms", "batch", lambda ms: "-" if ms is None else f"{ms} ms"),
)


def worker(
    session: Session,
    name: str = option("--name", "Its name among the workers; by default that of the machine and the process.", ""),
    state_dir: str = option(
        "--state-dir", "Where flows keep their state; shared by all machines if there are several.", STATE_DIR
    ),
    master: str = option("--spark-master", "The Spark cluster; by default all cores of this machine.", "local[*]"),
    chosen: list[str] = option("--set", "A setting of Spark; repeatable.", [], metavar="NAME=VALUE"),
    metrics_port: int | None = option(
        "--metrics-port", "Serve Prometheus metrics on this port of 127.0.0.1.", min=0, max=65535
    ),
    config: Config = None,
    stop_with_stdin: StopWithStdin = False,
) -> None:
    """Run a worker: it runs deployed flows, and shares them with the other workers of the cluster.

    It prints `ready` at once; Spark starts with the first flow.
    """
    from moldau.flows.kinds import Place, is_used

    require_spark()
    log_to_stderr()
    session.connection.settings = {**session.connection.settings, **read_config(config)}
    of_spark = pairs(chosen, "--set")
    if wrong := [key for key in of_spark if not key.startswith("spark.")]:
        raise misused(f"--set {wrong[0]}: only settings of Spark, which begin with spark., are taken here.")
    is_local = "://" not in state_dir
    code = (Path(state_dir).absolute() if is_local else Path.home() / ".cache" / "moldau") / "code"
    kept = str(Path(state_dir).absolute()) if is_local else state_dir
    place = Place(session.connection.kafka_settings, kept, code, session.connection.registry_login)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    if stop_with_stdin:
        end_with_stdin(GRACE_S)
    if metrics_port is None:  # until there is a flow nobody needs the code that runs flows, which is large
        print("ready -", flush=True)
        if not await_use(place.settings, is_used, stopped.wait):
            return
    from moldau.flows.worker import Worker

    made = Worker(name or f"{socket.gethostname()}-{os.getpid()}", place, lambda: spark_session(master, of_spark))
    try:
        with metrics_of(made, metrics_port):
            if metrics_port is not None:
                print("ready -", flush=True)
            made.run(stopped.wait)
    except (FlowError, StoreError, ServeError) as error:
        raise Mistake(str(error)) from None


@contextmanager
def metrics_of(worker: Worker, port: int | None) -> Iterator[None]:
    """Serve the metrics of a worker in the meantime, if there is a port for it."""
    from moldau.flows.metrics import serve

    service = None if port is None else serve(worker.figures, port)
    try:
        yield
    finally:
        if service is not None:
            service.close()


def spark_session(master: str, settings: dict[str, Any]) -> SparkSession:
    from moldau.plan.conveyor.start import session_for
    from moldau.spark.daemon import MORE

    os.environ.setdefault(MORE, " ".join(OF_LANES))
    made = session_for("moldau-worker", {"spark.master": master, **settings})
    made.sparkContext.setLogLevel("ERROR")
    return made


@verb("list", "moldau worker list")
def list_(session: Session) -> None:
    """List the workers of the cluster, and how many lanes each has."""
    session.show([row_of(one) for one in found(session)], COLUMNS, "No worker runs; `moldau worker` starts one.")


@verb("describe", "moldau worker describe desk-4711")
def describe(session: Session, name: str = argument("The name of the worker.")) -> None:
    """Show a worker and its lanes."""
    one = next((one for one in found(session) if one.name == name), None)
    if one is None:
        raise Mistake(f"There is no worker {name}; `moldau worker list` shows who runs.")
    session.show(row_of(one))


def found(session: Session) -> list[WorkerInfo]:
    from moldau.flows.overview import workers

    return workers(session.client)


def row_of(one: WorkerInfo) -> dict[str, Any]:
    figures = one.figures
    lanes = {} if figures is None else {name: asdict(lane) for name, lane in figures.lanes.items()}
    return {
        "name": one.name,
        "host": one.host,
        "pid": one.pid,
        "lanes": [{"lane": name, **lanes.get(name, {})} for name in one.lanes],
        "memory_bytes": figures and figures.memory_bytes,
        "batch_ms": max((lane["batch_ms"] for lane in lanes.values()), default=None),
        "logs": figures and figures.logs,
    }


_run = command(worker, (*NO_REGISTRY, "output"))


def _callback(context: typer.Context, **words: Any) -> None:
    if context.invoked_subcommand is None:
        _run(context, **words)


_callback.__signature__ = _run.__signature__  # type: ignore[attr-defined]
_callback.__annotations__ = _run.__annotations__
_callback.__doc__ = _run.__doc__
cli.info.no_args_is_help = False
cli.callback(invoke_without_command=True, epilog=epilog("moldau worker", "moldau worker list"))(_callback)
