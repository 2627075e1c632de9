"""`moldau streams deploy` and its neighbours, where no worker runs: what is written, shown, asked and refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from moldau.cli.streams import deployed
from moldau.client import Client
from moldau.flows import figures, states
from moldau.flows.figures import WorkerFigures
from moldau.flows.logs import FlowLogs
from moldau.flows.topics import make
from moldau.testing import Broker, broker

from .running import Moldau

FILE = """
from moldau.streams import StreamsBuilder, String

builder = StreamsBuilder("{name}", {{"default.key.serde": String(), "default.value.serde": String()}})
builder.stream("in").group_by_key().count(store="{store}")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    with broker() as started:
        yield started


def written(folder: Path, name: str, store: str = "counts", text: str = FILE) -> str:
    (folder / "app.py").write_text(text.format(name=name, store=store))
    return str(folder / "app.py")


def test_deploying_and_upgrading_show_what_becomes_of_stores(moldau: Moldau, tmp_path: Path) -> None:
    first = moldau("streams", "deploy", written(tmp_path, "shown"), "--create-topics", "--no-wait")
    assert first.startswith("shown ") and first.endswith(" is deployed.\n")
    done = moldau.run("streams", "upgrade", written(tmp_path, "shown", "sums"), "--yes", "--no-wait")
    assert done.code == 0 and done.out.endswith(" is upgraded.\n")
    assert "stores that are new, and empty: sums; stores that are gone, and whose state is not used: counts" in done.err
    made = moldau.json("streams", "deploy", written(tmp_path, "shown"), "--yes", "--no-wait")
    assert made["stores"]["again"] == ["counts"] and made["state"] is None
    row = next(one for one in moldau.json("streams", "list") if one["name"] == "shown")
    assert (row["state"], row["version"]) == ("waiting for a worker", made["version"][:12])
    told = moldau("streams", "describe", "shown")
    assert f"version before    {row['previous']}" in told


def test_a_version_that_could_not_use_the_state_is_refused(moldau: Moldau, tmp_path: Path) -> None:
    moldau("streams", "deploy", written(tmp_path, "strict"), "--create-topics", "--no-wait")
    other = written(tmp_path, "strict", text=FILE.replace('stream("in")', 'stream("elsewhere")'))
    done = moldau.run("streams", "upgrade", other, "--create-topics", "--yes", "--no-wait")
    assert done.code == 1 and "in is read no more and elsewhere was not read before" in done.err
    done = moldau.run("streams", "reset", "strict", "--yes")
    assert done.code == 1 and "`moldau streams undeploy strict` removes it" in done.err


def test_what_cannot_be_upgraded_or_changed_is_refused(moldau: Moldau, tmp_path: Path) -> None:
    done = moldau.run("streams", "upgrade", written(tmp_path, "new"), "--yes")
    assert done.code == 1 and "new is not deployed" in done.err
    done = moldau.run("streams", "deploy", written(tmp_path, "a/b"), "--yes", "--no-wait")
    assert done.code == 1 and "it must have 1 to 249 of the characters" in done.err
    for verb in ("pause", "resume", "stop", "restart", "rollback", "logs"):
        done = moldau.run("streams", verb, "nobody")
        assert done.code == 1 and "There is no flow nobody" in done.err


def test_changes_are_written_although_no_worker_runs(
    moldau: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployed, "PATIENCE_S", 0.0)
    moldau("streams", "deploy", written(tmp_path, "alone"), "--create-topics")
    for verb, wanted in (("pause", "paused"), ("resume", "running"), ("restart", "running"), ("stop", "stopped")):
        moldau("streams", verb, "alone")
        row = next(one for one in moldau.json("streams", "list") if one["name"] == "alone")
        assert row["wanted"] == wanted
    done = moldau.run("streams", "undeploy", "alone", "--yes")
    assert done.code == 1 and "no worker has done it" in done.err


def test_a_move_is_written_and_what_makes_no_sense_is_refused(
    moldau: Moldau, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployed, "PATIENCE_S", 0.0)
    moldau("streams", "deploy", written(tmp_path, "movable"), "--create-topics", "--no-wait")
    for words, why in (
        ((), "Say where to move it"),
        (("--lane", "fast"), "a lane is own or shared"),
        (("--worker", "nobody"), "There is no worker nobody; none runs."),
        (("--lane", "shared"), "movable is in this lane already: shared/streams/1"),
        (("--lane", "own"), "movable has not moved yet, and is waiting for a worker."),
        (("--lane", "shared"), "movable is still moving, out of shared/streams/1"),
    ):
        done = moldau.run("streams", "move", "movable", *words)
        assert done.code and why in done.err, (words, done.err)


def test_requirements_that_cannot_be_installed_are_refused(moldau: Moldau, tmp_path: Path) -> None:
    done = moldau.run("streams", "deploy", written(tmp_path, "needy"), "--requirements", str(tmp_path / "none.txt"))
    assert done.code == 1 and "There is no file" in done.err


def test_a_log_is_read_on_the_machine_of_the_worker(moldau: Moldau, client: Client, tmp_path: Path) -> None:
    moldau("streams", "deploy", written(tmp_path, "logged"), "--create-topics", "--no-wait")
    done = moldau.run("streams", "logs", "logged")
    assert done.code == 1 and "no worker has had it" in done.err
    make(client, states.TOPIC)
    here = WorkerFigures("desk", socket.gethostname(), 1, str(tmp_path / "logs"))
    states.write(client, states.FlowState("logged", 0, 1, "running", "desk", "lane", 5), "logged")
    figures.write(client, replace(here, host="elsewhere"))
    done = moldau.run("streams", "logs", "logged")
    assert done.code == 1 and f"on elsewhere, in {tmp_path / 'logs' / 'logged.log'}" in done.err
    figures.write(client, here)
    for number in range(3):
        FlowLogs(tmp_path / "logs").write("logged", f"line {number}")
    lines = moldau("streams", "logs", "logged", "--lines", "2").splitlines()
    assert [line[-6:] for line in lines] == ["line 1", "line 2"]
