"""Workers of Connect in executors: what a task does, and what the driver decides. `spark.py` has Spark."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moldau.connect.spark import driver, executor, lines
from moldau.connect.spark.driver import Job, spark_settings
from moldau.connect.spark.executor import ExecutorError, Order, settings_there
from moldau.connect.starting import is_cluster
from moldau.settings import SettingError
from moldau.testing import Broker
from tests.connect.running import SOURCE, Running, eventually, running, settings

GIVEN = {
    "bootstrap.servers": "broker:9092",
    "sasl.jaas.config": "password=hush",
    "listeners": "http://0.0.0.0:8083",
    "rest.advertised.host.name": "desk",
    "spark.master": "spark://desk:7077",
    "spark.executor.memory": "600m",
    "connect.spark.workers": "3",
}
HOLDER = "import pickle, sys; from moldau.connect.spark.executor import run; run(pickle.load(sys.stdin.buffer), ())"


def order(calls: lines.Lines, rest: tuple[str, int], given: dict[str, str]) -> Order:
    return Order(7, calls.address, calls.token, rest, "http", settings_there(given), 60.0)


def test_a_worker_in_an_executor_has_the_settings_of_the_driver_but_not_its_address() -> None:
    assert settings_there(GIVEN) == {"bootstrap.servers": "broker:9092", "sasl.jaas.config": "password=hush"}


def test_an_order_shows_no_settings() -> None:
    shown = repr(Order(0, ("desk", 1), "its token", ("desk", 2), "http", settings_there(GIVEN), 1.0))
    assert "hush" not in shown and "its token" not in shown


@pytest.mark.parametrize(
    ("given", "workers", "expected"),
    [
        ({"spark.master": "x"}, 0, {"spark.executor.cores": "1", "spark.task.cpus": "1"}),
        (
            {"spark.executor.cores": "4", "group.id": "g"},
            3,
            {
                "spark.executor.cores": "4",
                "spark.task.cpus": "4",
                "spark.cores.max": "12",
                "spark.executor.instances": "3",
            },
        ),
        ({"spark.task.cpus": "2"}, 0, {"spark.executor.cores": "1", "spark.task.cpus": "2"}),
    ],
)
def test_each_worker_has_an_executor_to_itself(given: dict[str, str], workers: int, expected: dict[str, str]) -> None:
    assert spark_settings(given, workers) == expected


def test_cores_are_a_number() -> None:
    with pytest.raises(SettingError, match="it is a number"):
        spark_settings({"spark.executor.cores": "all"}, 0)


def test_local_masters_are_no_cluster() -> None:
    masters = ("", "local", "local[*]", "spark://desk:7077", "yarn", "k8s://https://desk")
    assert [is_cluster(one) for one in masters] == [False, False, False, True, True, True]


def test_a_worker_that_keeps_ending_is_started_less_and_less_often() -> None:
    job, waits = Job(threading.Thread(), 0.0), []
    for _ in range(7):
        job.note_end(job.began + 1.0)
        waits.append(job.due - job.began - 1.0)
        job.began = job.due
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    job.note_end(job.began + driver.SETTLED_S + 1.0)
    assert job.due - job.began - driver.SETTLED_S - 1.0 == 1.0


@pytest.fixture
def calls() -> Any:
    made = lines.Lines("127.0.0.1", "127.0.0.1")
    yield made
    made.close()


def test_a_stranger_is_not_let_in(calls: lines.Lines) -> None:
    for token, number in (("0" * 64, 1), (calls.token[:-1], 1), (calls.token, -1)):
        with pytest.raises(OSError):
            lines.call(calls.address, token, number)
    with socket.create_connection(calls.address, 60) as stranger:
        stranger.sendall(b"x" * 1000)
        stranger.settimeout(60)
        with suppress(ConnectionResetError):  # if bytes were unread when it was closed
            assert stranger.recv(1) == b"", "the driver has answered"
    assert calls.close() == []


def test_a_task_that_runs_again_takes_the_line_of_the_one_before(calls: lines.Lines) -> None:
    first, other, second = (lines.call(calls.address, calls.token, number) for number in (1, 2, 1))
    gone = lines.call(calls.address, calls.token, 3)
    gone.close()
    with first, other, second:
        lines.await_end(first)
        assert calls.close() == [2, 1], "the tasks that are there"
        lines.await_end(second)
        lines.await_end(other)
    with pytest.raises(OSError):
        lines.call(calls.address, calls.token, 1)


def test_what_an_executor_cannot_run_is_refused_with_a_sentence(calls: lines.Lines) -> None:
    one = order(calls, calls.address, {})
    with pytest.raises(ExecutorError, match=r"has Moldau .*, and the driver 0\.0: install the same"):
        executor.run(replace(one, version="0.0"), ())
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens there
        nowhere = closed.getsockname()
        with pytest.raises(ExecutorError, match="cannot reach the driver's REST interface at 127"):
            executor.run(replace(one, rest=nowhere), ())
        with pytest.raises(ExecutorError, match="cannot reach the driver at 127"):
            executor.run(replace(one, driver=nowhere), ())
    with pytest.raises(ExecutorError, match="has ended with the exit code 2"):
        executor.run(replace(one, settings={}), ())  # it names no broker


def of_task(one: Running, name: str) -> tuple[str, str]:
    tasks = one.http.get(f"/connectors/{name}/status").json().get("tasks")
    return (tasks[0]["state"], tasks[0]["worker_id"]) if tasks else ("", "")


def test_tasks_run_in_the_executor_and_leave_it_in_order_when_it_is_killed(
    connect_broker: Broker, calls: lines.Lines, tmp_path: Path
) -> None:
    given = settings(connect_broker.bootstrap_servers)
    (tmp_path / "lines").write_text("one\n")
    with running(given, elsewhere=lambda _: nullcontext()) as one:
        host, _, port = one.url.removeprefix("http://").rpartition(":")
        one.create("c", connector_class=SOURCE, file=tmp_path / "lines", topic=given["group.id"])
        holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, start_new_session=True)
        assert holder.stdin is not None
        try:
            holder.stdin.write(pickle.dumps(order(calls, (host, int(port)), given)))
            holder.stdin.close()
            eventually(lambda: of_task(one, "c")[0], "RUNNING")
            assert of_task(one, "c")[1] != f"{host}:{port}"
            assert not one.worker.carried, "the driver's own worker has something to do"
        finally:
            os.killpg(holder.pid, signal.SIGKILL)
            holder.wait()
        eventually(lambda: of_task(one, "c")[0], "UNASSIGNED")
