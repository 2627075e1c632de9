"""`moldau cluster balance`: what it says about plans, and which words it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from moldau.admin.mistakes import Mistake
from moldau.balance.moves import summary
from moldau.balance.planning import plan
from moldau.cli.balance import read_size
from moldau.cli.balancing import change
from moldau.cli.output import size
from tests.balance.clusters import GB, regular
from tests.cli.running import Moldau


def test_a_single_broker_is_balanced(moldau: Moldau) -> None:
    done = moldau.run("cluster", "balance", "--plan")
    assert done.code == 0 and "nothing to do" in done.out
    assert done.out.splitlines()[0].split() == ["broker", "rack", "leaders", "replicas", "bytes"]
    facts = moldau.json("cluster", "balance", "--plan")
    assert facts["moves"] == [] and facts["brokers"][0]["leaders"]["before"] >= 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--goals", "beauty"], "There is no goal 'beauty'"),
        (["--throttle", "much"], "'much' is not a number of bytes"),
        (["--drain", "77"], "There is no broker 77."),
        (["--pause", "--cancel"], "not combined"),
        (["--tolerance", "300"], "from 0 to 100"),
    ],
)
def test_mistakes_are_explained(moldau: Moldau, words: list[str], sentence: str) -> None:
    done = moldau.run("cluster", "balance", "--plan" if "--pause" not in words else "--moves", *words)
    assert done.code == 2 and sentence in done.err


def test_a_broker_whose_replicas_fit_nowhere_is_reported(moldau: Moldau) -> None:
    moldau("topic", "create", "somewhere", "--if-not-exists")
    id = str(moldau.json("cluster", "brokers")[0]["id"])
    done = moldau.run("cluster", "balance", "--plan", "--drain", id)
    assert done.code == 0 and "no other broker can take them" in done.err


def test_without_a_plan_there_is_nothing_to_cancel(moldau: Moldau) -> None:
    done = moldau.run("cluster", "balance", "--cancel")
    assert done.code == 1 and "No plan is unfinished." in done.err


def test_sizes_are_read_with_and_without_units() -> None:
    written = ("0", "123", "50MB", "1.5 GB", "20k", "7MB/s")
    assert [read_size(text) for text in written] == [0, 123, 50_000_000, 1_500_000_000, 20_000, 7_000_000]
    for text in ("", "MB", "1.2.3", "-5", "5 miles"):
        with pytest.raises(Mistake):
            read_size(text)


def test_a_plan_is_summed_up_in_a_sentence() -> None:
    model = regular(3, 9, new=1)
    assert summary(plan(model), 10_000_000, size) == "6 partitions move (6.0 GB), about 10 min at 10.0 MB/s."
    parts = tuple(replace(one, replicas=(1, 2, 3), leader=1) for one in regular(3, 3).partitions)
    led = plan(replace(regular(3, 3), partitions=parts))
    assert summary(led, 10, size) == "2 partitions only change their leaders."
    assert summary(plan(regular(3, 3)), 10, size) == "The cluster is balanced: nothing to do."


def test_values_that_stay_are_written_once() -> None:
    assert change(size)({"before": GB, "after": GB}) == "1.0 GB"
    assert change(str)({"before": 4, "after": 3}) == "4 → 3"
