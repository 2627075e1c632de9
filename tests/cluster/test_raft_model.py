"""The quorum under faults (see raft_model.py), and the checks tried on code that is wrong."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from moldau.cluster import raft as raft_module
from moldau.cluster import serving
from moldau.cluster.elections import Ballot
from moldau.cluster.leadership import Leadership
from moldau.cluster.lines import Lines
from moldau.cluster.raft import Raft
from moldau.cluster.voters import VoterHistory, Voters
from tests.cluster.raft_model import World

SEEDS = 8
MOST_SEEDS = 500


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_what_is_committed_stays_and_work_goes_on(seed: int) -> None:
    World(seed).run()


committed, end_line = Leadership.committed, Lines.end


def grant_unsaved(self: Raft, candidate: Any, now_ms: float) -> None:
    self.voted = candidate
    self.deadline_ms = self._election_deadline(now_ms)


def commit_old_epochs(self: Leadership, own_end: int) -> int | None:
    self.epoch_start, start = -1, self.epoch_start
    try:
        return committed(self, own_end)
    finally:
        self.epoch_start = start


def vote_for_any_log(raft: Raft, candidate: Any, last: Any, pre_vote: bool) -> bool:
    return may_vote(raft, candidate, (10**6, 10**6), pre_vote)


def vote_again(raft: Raft, candidate: Any, last: Any, pre_vote: bool) -> bool:
    raft.voted = None
    return may_vote(raft, candidate, last, pre_vote)


def take_any_answer(self: Lines, sent: Any, now_ms: float) -> bool:
    end_line(self, sent, now_ms)
    return True


def count_at_commit(self: Raft, items: Any, now_ms: float, wall_ms: int) -> int:
    offset, batch = self.log.end_offset, raft_module.control_batch(items)
    self.append(batch, wall_ms)
    self.history.replay_all(batch)
    return offset


may_vote = serving.may_vote


class Plant(NamedTuple):
    """Where a mistake is made, and the seed that found it last."""

    owner: Any
    name: str
    wrong: Any
    seed: int


PLANTS = {
    "a vote is given before it is saved": Plant(Raft, "grant", grant_unsaved, 0),
    "a leader counts itself before it has synced": Plant(
        Leadership, "committed", lambda self, own_end: committed(self, 10**9), 0
    ),
    "records of earlier epochs are committed by counting": Plant(Leadership, "committed", commit_old_epochs, 0),
    "a log that is behind is voted for": Plant(serving, "may_vote", vote_for_any_log, 0),
    "a second vote is given in an epoch": Plant(serving, "may_vote", vote_again, 14),
    "a follower fetches on before it has synced": Plant(Raft, "is_synced", True, 0),
    "an answer to an earlier fetch is taken": Plant(Lines, "end", take_any_answer, 16),
    "half of the voters is enough": Plant(Voters, "majority", property(lambda self: len(self.members) // 2 or 1), 0),
    "new voters count when they are committed": Plant(Raft, "append_controls", count_at_commit, 4),
    "voters of records that were dropped still count": Plant(VoterHistory, "truncate", lambda self, end: None, 247),
    "an election is won by pre-votes": Plant(Raft, "_become_candidate", lambda self, *at: self._become_leader(*at), 0),
    "one vote is enough": Plant(Ballot, "is_won", property(lambda self: bool(self.granted)), 0),
}


@pytest.mark.parametrize("name", PLANTS)
def test_plants_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    plant = PLANTS[name]
    monkeypatch.setattr(plant.owner, plant.name, plant.wrong)
    for seed in [plant.seed, *range(MOST_SEEDS)]:
        try:
            World(seed).run()
        except Exception:  # a check that failed, or a promise that the code relies on
            return
    pytest.fail(f"{name}: not found within {MOST_SEEDS} seeds")
