"""A fault on three real processes under load; `make chaos` has a thousand, of all kinds."""

from __future__ import annotations

from moldau.testing import cluster
from tests.cluster.chaos.trial import SETTINGS, Trial


def test_all_promises_are_kept_when_a_node_is_cut_off_and_one_killed() -> None:
    with cluster(3, SETTINGS) as nodes, Trial(nodes, seed=1) as trial:
        trial.round("cut off, then kill -9")
        trial.finish()
        assert trial.judge.counts["records acknowledged"] and trial.judge.counts["transactions committed"]
