"""Deployed applications beside those that only ran, verbs that make sense, and rows of workers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.console.model.deployed import facts, rows, verbs, worker_rows
from moldau.console.model.lineage import Application
from moldau.flows.figures import Figures, LaneFigures, WorkerFigures
from moldau.flows.overview import Overview, WorkerInfo

RAN = Application("counts", "waiting", 1_700_000_000_000, None, ("lines",), ("out",), 3, ())
SEEN = Overview("counts", "streams", "running", "running", "desk", "v2", 1_700_000_100_000)


def test_what_a_worker_says_counts_more_than_a_report_but_for_waiting() -> None:
    [row] = rows([RAN], [SEEN])
    assert (row["state"], row["worker"], row["reads"], row["lag"]) == ("waiting", "desk", "lines", "3")
    [row] = rows([RAN], [replace(SEEN, state="failed", error="no weights", figures=Figures(rows_per_s=7.0))])
    assert (row["state"], row["rate"], row["since"]) == ("failed: no weights", "7.0/s", "2023-11-14 22:15:00")
    names = [row["application"] for row in rows([RAN], [replace(SEEN, name="a"), replace(SEEN, name="z")])]
    assert names == ["a", "counts", "z"]


@pytest.mark.parametrize(
    ("one", "sensible"),
    [
        (SEEN, ["pause", "restart", "stop"]),
        (replace(SEEN, state="failed", previous="v1"), ["resume", "pause", "restart", "stop", "rollback"]),
        (replace(SEEN, wanted="paused"), ["resume", "stop"]),
        (replace(SEEN, wanted="stopped", previous="v1"), ["resume", "rollback"]),
        (replace(SEEN, wanted="removed", previous="v1"), []),
        (Overview("later", "", "of a later release", ""), []),
    ],
)
def test_only_verbs_that_make_sense_are_offered(one: Overview, sensible: list[str]) -> None:
    assert verbs(one) == sensible


def test_facts_and_workers_without_figures_have_dashes() -> None:
    assert facts(SEEN, None)["lag"] == "–" and "rate" not in facts(SEEN, None)
    told = facts(replace(SEEN, figures=Figures(1234, 2, 1, 5, 0.5, 250, 3.0), previous="v1"), 5)
    assert (told["records"], told["batch"], told["version before"], told["errors"]) == ("1,234", "250 ms", "v1", "1")
    figures = WorkerFigures("desk", "vm", 7, "/logs", 1, 2**30, {"lane": LaneFigures(("a", "b"), 4, 100)})
    info = WorkerInfo("desk", "vm", 7, ("lane", "other"), figures)
    first, second = worker_rows([info])
    assert (first["applications"], first["batches"], first["batch"]) == ("a, b", "4", "100 ms")
    assert (second["applications"], second["batch"]) == ("–", "–")
    [row] = worker_rows([WorkerInfo("idle", "vm", 8, ())])
    assert (row["lane"], row["memory"], row["place"]) == ("none", "–", "idle ")
