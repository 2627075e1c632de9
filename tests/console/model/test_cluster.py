"""Rows of the pages of a cluster."""

from __future__ import annotations

from moldau.admin import health
from moldau.admin.health import Trouble
from moldau.admin.moves import UnderWay
from moldau.balance.execution import Progress
from moldau.balance.journal import RUNNING
from moldau.balance.moves import Move, Plan, summary
from moldau.balance.progress import PAUSED
from moldau.console.model import balance, figures
from moldau.console.model.cluster import move_rows, trouble_rows
from tests.balance.clusters import regular


def test_troubles_link_to_what_they_are_about() -> None:
    found = trouble_rows(
        [
            Trouble("quorum", health.LAGS, "voter 2"),
            Trouble("__offsets-1", health.AT_MIN_ISR, "2 of 3"),
            Trouble("my-orders-12", health.AT_MIN_ISR, "2 of 3"),
            Trouble("broker 3", health.FENCED, "gone"),
        ]
    )
    assert [row["where"] for row in found] == ["broker 3", "quorum", "my-orders-12", "__offsets-1"]
    assert [row["link"] for row in found] == ["/brokers/3", None, "/topics/my-orders", "/topics/__offsets"]
    assert [row["reason_colour"] for row in found] == ["negative", *["warning"] * 3]
    assert len({row["place"] for row in found}) == 4


def test_a_move_shows_how_much_is_copied() -> None:
    [row] = move_rows([UnderWay("t", 1, (3,), (), 25_000_000, 100_000_000)])
    assert (row["partition"], row["to"], row["from"]) == ("t-1", "3", "–")
    assert (row["share"], row["copied"]) == (0.25, "25.0 MB of 100.0 MB")


def plan() -> Plan:
    before = regular(2, 4, 1, new=1, size=10_000_000)
    move = Move("t", 0, (1,), (3,), 1, 10_000_000)
    return Plan((move,), before, before.after({("t", 0): (3,)}))


def test_a_plan_shows_what_changes() -> None:
    first, second, third = balance.load_rows(plan())
    assert (first["leads"], first["size"]) == ("2 → 1", "20.0 MB → 10.0 MB")
    assert (second["leads"], second["size"]) == ("2", "20.0 MB")
    assert (third["replicas"], third["size"]) == ("0 → 1", "0 B → 10.0 MB")
    [row] = balance.move_rows(plan())
    assert (row["now"], row["then"], row["copies"]) == ("1", "3", "10.0 MB")
    assert summary(plan(), 1_000_000, figures.size) == "1 partition moves (10.0 MB), about 10 s at 1.0 MB/s."


def test_a_run_is_as_far_as_its_bytes_or_else_its_moves() -> None:
    assert balance.share(Progress(RUNNING, 4, 1, 100, 50)) == 0.5
    assert balance.share(Progress(RUNNING, 4, 1)) == 0.25
    assert balance.progress_words(Progress(RUNNING, 4, 1)) == "1 of 4 moves"
    assert balance.state_words(PAUSED) == "It is paused."
    assert balance.state_words("The cluster is unwell.") == "The cluster is unwell."
