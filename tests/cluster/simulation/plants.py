"""Planted bugs of replication and of the quorum: the simulator must find each of them.

A plant is a row: what it breaks, and how. `python -m tests.cluster.simulation.plants [NAME]` looks for the seed that
finds it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any

from moldau.broker.coordinators import Coordinators
from moldau.broker.metadata import Metadata
from moldau.broker.partition import Partition
from moldau.broker.replicas import Replicas
from moldau.broker.replication import Replication
from moldau.broker.share.partitions import SharePartitions
from moldau.cluster import serving
from moldau.cluster.controller import changes, heartbeats, isr, registration
from moldau.cluster.leading import Leading
from moldau.cluster.raft import Raft
from moldau.wire.errors import Error
from tests.cluster.simulation.run import run
from tests.simulation.plants import (
    Patch,
    check_plant,
    persisted_at_append,
    planted,
    released_at_append,
    settled_at_append,
    told_at_append,
)

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


def kept_plans(committed: Any) -> Any:
    def planted(self: Any, *outcome: Any) -> None:
        plans = self._planned
        committed(self, *outcome)
        self._planned = plans

    return planted


def always_clean(leave: Any) -> Any:
    def planted(image: Any, broker_id: int, policy: Any, *, is_clean: bool) -> Any:
        return leave(image, broker_id, policy, is_clean=True)

    return planted


def any_process(image: Any, broker_id: int, epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active


def any_registered(image: Any, broker_id: int, epoch: int) -> Error:
    return Error.NONE if broker_id in image.brokers else Error.BROKER_ID_NOT_REGISTERED


def any_fetch(fetched: Any) -> Any:
    def planted(self: Any, follower: int, broker_epoch: int, *others: Any) -> bool:
        return fetched(self, follower, -1, *others)

    return planted


def may_join_by_end(self: Any, other: int, high_watermark: int, epoch_of: Any) -> bool:
    return self.followers[other].end_offset >= max(high_watermark, self.epoch_start) and epoch_of(other) is not None


def below_minimum(self: Any, leader_end: int, min_insync: int, *others: Any) -> int | None:
    return high_watermark(self, leader_end, 1, *others)


high_watermark = Leading.high_watermark


def trusted_folder(open_log: Any) -> Any:
    def planted(self: Any, *asked: Any) -> Any:
        self.node.membership, member = None, self.node.membership
        try:
            return open_log(self, *asked)
        finally:
            self.node.membership = member

    return planted


def joined_early(self: Any, other: int, high_watermark: int, epoch_of: Any) -> bool:
    return self.followers[other].end_offset >= 0 and epoch_of(other) is not None


PLANTS: dict[str, tuple[Patch, ...]] = {
    "a vote is given before it is saved": ((Raft, "grant", granted_unsaved),),
    "a vote is given to a log that is behind": ((serving, "may_vote", voted_for_anybody),),
    "the leader of the quorum counts itself before it has synced": ((Raft, "advance", unsynced_leader),),
    "a voter asks for more before it has synced": ((Raft, "is_synced", property(lambda self: True)),),
    "a controller that leads again goes on with its old plans": (
        (Metadata, "forget_plans", lambda self: None),
        (Metadata, "committed", kept_plans(Metadata.committed)),
    ),
    "a change of the metadata is answered when it is appended": ((Metadata, "write", told_at_append(Metadata.write)),),
    "the high watermark is that of the farthest follower": ((Leading, "high_watermark", farthest_follower),),
    "a follower truncates to its high watermark": ((Replication, "follow", truncating_follow(Replication.follow)),),
    "the leader lets a member go before the controller agrees": ((Leading, "counted", property(proposed_only)),),
    "a replica that is not in sync is elected": ((changes, "elect", elected_from_all),),
    "produce requests are acknowledged when they are appended": ((Partition, "is_settled", settled_at_append),),
    "a broker that has lost records counts as one that stopped cleanly": (
        (registration, "leave", always_clean(registration.leave)),
    ),
    "an earlier process of a broker is admitted to the ISR": (
        (isr, "is_eligible", any_process),
        (Leading, "_may_join", may_join_by_end),
        (Leading, "fetched", any_fetch(Leading.fetched)),
        (isr, "broker_error", any_registered),
        (heartbeats, "broker_error", any_registered),
    ),
    "a follower joins the ISR before it has all that is committed": ((Leading, "_may_join", joined_early),),
    "the high watermark moves with too few in sync": ((Leading, "high_watermark", below_minimum),),
    "a follower fetches on before the sync that was promised": ((Replication, "sync_first", lambda *_: None),),
    "a folder without an id is taken for any topic's of its name": (
        (Replicas, "open_log", trusted_folder(Replicas.open_log)),
    ),
    "coordinators answer when their records are appended": ((Coordinators, "run", released_at_append),),
    "share groups settle records before that is persisted": (
        (SharePartitions, "persist", persisted_at_append(SharePartitions.persist)),
    ),
}


# Those that show where certain faults come together: they are looked for with these, profiles of focus.py.
FOCUS: dict[str, str] = {
    "a controller that leads again goes on with its old plans": "comebacks",
    "an earlier process of a broker is admitted to the ISR": "relapses",
    "a folder without an id is taken for any topic's of its name": "replacements",
}
# Those that few histories show nevertheless: `python -m tests.cluster.simulation.plants` alone looks for them.
RARE = (
    "an earlier process of a broker is admitted to the ISR",
    "a folder without an id is taken for any topic's of its name",
)
# Where each of the others was found last: where tests look first.
FOUND: dict[str, int] = {
    "a vote is given before it is saved": 1,
    "a vote is given to a log that is behind": 20,
    "the leader of the quorum counts itself before it has synced": 67,
    "a voter asks for more before it has synced": 1,
    "a controller that leads again goes on with its old plans": 16,
    "a change of the metadata is answered when it is appended": 6,
    "the high watermark is that of the farthest follower": 3,
    "a follower truncates to its high watermark": 10,
    "the leader lets a member go before the controller agrees": 303,
    "a replica that is not in sync is elected": 4,
    "produce requests are acknowledged when they are appended": 8,
    "a broker that has lost records counts as one that stopped cleanly": 28,
    "a follower joins the ISR before it has all that is committed": 16,
    "the high watermark moves with too few in sync": 14,
    "a follower fetches on before the sync that was promised": 15,
    "coordinators answer when their records are appended": 15,
    "share groups settle records before that is persisted": 438,
}


def first_seed(name: str, seeds: Iterable[int] = SEEDS) -> tuple[int, str] | None:
    """Return the first seed in which a planted bug is found, and how it showed."""
    with planted(PLANTS[name]):
        for seed in seeds:
            failure = run(seed, focus=FOCUS.get(name)).failure
            if failure is not None:
                check_plant(failure)
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
