"""Some worlds in every run of the tests; `make simulate` runs ten thousand."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.plants import FOUND, PLANTS, SEEDS, first_seed
from tests.simulation.run import run

pytestmark = pytest.mark.usefixtures("no_logs")
CHUNKS, WORLDS = 12, 25
FIRST = 1_000_000


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_promises_are_kept_in_every_world(chunk: int) -> None:
    for seed in range(FIRST + chunk * WORLDS, FIRST + (chunk + 1) * WORLDS):
        failure = run(seed).failure
        if failure is not None:
            pytest.fail(failure, pytrace=False)


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name: str) -> None:
    seed = first_seed(name, (FOUND[name], *SEEDS))
    assert seed is not None
    assert run(seed, synced=True).failure is None, "the seed fails without the bug, too"


def test_a_seed_is_one_history_in_this_process_and_in_another() -> None:
    seeds = (3, 5, 8)
    here = [run(seed).digest for seed in seeds]
    assert [run(seed).digest for seed in seeds] == here
    code = f"from tests.simulation.run import run; print(*(run(seed).digest for seed in {seeds}))"
    environment = os.environ | {"PYTHONHASHSEED": "12345"}
    there = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split() == here
