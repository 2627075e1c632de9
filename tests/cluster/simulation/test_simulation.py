"""Some clusters in every run of the tests; `make simulate-cluster` runs thousands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cluster.simulation.focus import PROFILES
from tests.cluster.simulation.plants import FOCUS, FOUND, PLANTS, RARE, SEEDS, first_seed
from tests.cluster.simulation.run import run

pytestmark = pytest.mark.usefixtures("no_logs")
FIRST, CHUNKS, WORLDS = 1_000_000, 4, 2


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_are_kept_in_every_cluster(chunk: int) -> None:
    for seed in range(FIRST + chunk * WORLDS, FIRST + (chunk + 1) * WORLDS):
        failure = run(seed).failure
        if failure is not None:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("profile", PROFILES)
def test_promises_are_kept_where_faults_come_together(profile: str) -> None:
    failure = run(FIRST, focus=profile).failure
    if failure is not None:
        pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("name", FOUND)
def test_a_planted_bug_is_found(name: str) -> None:
    """It is looked for where it was found last, then elsewhere; plants.py says how to bring the list up to date."""
    found = first_seed(name, [FOUND[name], *SEEDS])
    assert found is not None
    assert run(found[0], focus=FOCUS.get(name)).failure is None, "the seed fails without the bug, too"


def test_every_planted_bug_is_looked_for_somewhere() -> None:
    assert {*FOUND, *RARE} == PLANTS.keys()


def test_a_seed_is_one_history_in_this_process_and_in_another() -> None:
    seeds = (3, 5)
    here = [run(seed).digest for seed in seeds]
    code = f"from tests.cluster.simulation.run import run; print(*(run(seed).digest for seed in {seeds}))"
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    there = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split() == here
