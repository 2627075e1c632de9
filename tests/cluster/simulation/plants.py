"""Planted bugs of replication and of the quorum: the simulator must find each of them.

A plant is a row: what it breaks, and how. `python -m tests.cluster.simulation.plants [NAME]` looks for the seed that
finds it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any

from moldau.broker.metadata import Metadata
from moldau.broker.partition import Partition
from moldau.broker.replication import Replication
from moldau.cluster import serving
from moldau.cluster.controller import changes
from moldau.cluster.leading import Leading
from moldau.cluster.raft import Raft
from tests.cluster.simulation.run import run
from tests.simulation.plants import Patch, planted, settled_at_append, told_at_append

SEEDS = range(1, 501)


def granted_unsaved(self: Any, candidate: Any, now_ms: float) -> None:
    self.voted = candidate
    self.deadline_ms = self._election_deadline(now_ms)


def voted_for_anybody(raft: Any, candidate: Any, last: Any, pre_vote: bool) -> bool:
    return may_vote(raft, candidate, (2**31, 2**31), pre_vote)


may_vote = serving.may_vote


def unsynced_leader(self: Any, now_ms: float) -> None:
    led = self.led
    if led is not None and (end := led.committed(self.log.end_offset)) is not None:
        led.is_established = True
        self.log.advance_high_watermark(end)


def farthest_follower(self: Any, leader_end: int, *_: Any) -> int | None:
    if len(self.isr) < 2:
        return None
    end = min(leader_end, max((one.end_offset for one in self.followers.values()), default=leader_end))
    return end if end >= 0 else None


def truncating_follow(follow: Any) -> Any:
    def planted(self: Any, partition: Any, placement: Any) -> None:
        partition.log.truncate_to(partition.log.high_watermark, self.node.clock.wall_ms())
        follow(self, partition, placement)

    return planted


def proposed_only(self: Any) -> Any:
    return self.isr if self.proposal is None else self.proposal.isr


def elected_from_all(rules: Any, part: Any, draft: Any, election: Any) -> tuple[int, bool]:
    found = next((replica for replica in draft.replicas if rules.may_lead(part, replica)), -1)
    if found >= 0 and found not in draft.isr:
        draft.isr.append(found)
    return found, False


PLANTS: dict[str, tuple[Patch, ...]] = {
    "a vote is given before it is saved": ((Raft, "grant", granted_unsaved),),
    "a vote is given to a log that is behind": ((serving, "may_vote", voted_for_anybody),),
    "the leader of the quorum counts itself before it has synced": ((Raft, "advance", unsynced_leader),),
    "a voter asks for more before it has synced": ((Raft, "is_synced", property(lambda self: True)),),
    "a controller that leads again goes on with its old plans": ((Metadata, "forget_plans", lambda self: None),),
    "a change of the metadata is answered when it is appended": ((Metadata, "write", told_at_append(Metadata.write)),),
    "the high watermark is that of the farthest follower": ((Leading, "high_watermark", farthest_follower),),
    "a follower truncates to its high watermark": ((Replication, "follow", truncating_follow(Replication.follow)),),
    "the leader lets a member go before the controller agrees": ((Leading, "counted", property(proposed_only)),),
    "a replica that is not in sync is elected": ((changes, "elect", elected_from_all),),
    "produce requests are acknowledged when they are appended": ((Partition, "is_settled", settled_at_append),),
}


# Those that many histories do not show: they are looked for by `python -m tests.cluster.simulation.plants` alone.
RARE = (
    "a controller that leads again goes on with its old plans",
    "a change of the metadata is answered when it is appended",
)
# Where each was found last: where tests look first.
FOUND: dict[str, int] = {
    "a vote is given before it is saved": 1,
    "a vote is given to a log that is behind": 1,
    "the leader of the quorum counts itself before it has synced": 2,
    "a voter asks for more before it has synced": 1,
    "a controller that leads again goes on with its old plans": 18,
    "a change of the metadata is answered when it is appended": 124,
    "the high watermark is that of the farthest follower": 1,
    "a follower truncates to its high watermark": 12,
    "the leader lets a member go before the controller agrees": 12,
    "a replica that is not in sync is elected": 5,
    "produce requests are acknowledged when they are appended": 2,
}


def first_seed(name: str, seeds: Iterable[int] = SEEDS) -> tuple[int, str] | None:
    """Return the first seed in which a planted bug is found, and how it showed."""
    with planted(PLANTS[name]):
        for seed in seeds:
            failure = run(seed).failure
            if failure is not None:
                return seed, failure.splitlines()[1]
    return None


def main(names: list[str]) -> int:
    logging.disable(logging.CRITICAL)
    missed = 0
    for name in names or PLANTS:
        found = first_seed(name)
        missed += found is None
        print(f"{'not found' if found is None else f'seed {found[0]}: {found[1]}'}  <- {name}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
