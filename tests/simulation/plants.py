"""Planted bugs, most of the kind "answered before committed": the simulator must find each of them.

A plant is a row: what it breaks, and how. `python -m tests.simulation.plants [NAME]` looks for the seed that finds it.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from moldau.broker.api import commit_one
from moldau.broker.api.commit_one import Commits
from moldau.broker.api.produce_one import Appends
from moldau.broker.connection import Connection
from moldau.broker.coordinators import Coordinators
from moldau.broker.metadata import Metadata
from moldau.broker.partition import Partition
from moldau.broker.share.partitions import SharePartitions
from moldau.broker.steps import start
from moldau.broker.transactions import Marker
from moldau.machines.effects import Promise, error_promise
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused
from tests.simulation.run import run

SEEDS = range(1, 501)
Patch = tuple[Any, str, Any]  # an object, its attribute, and what takes its place


def released_at_append(self: Any, index: int, effects: Any) -> None:
    machine = self.machines.get(index)
    if machine is None:
        self.answer([(promise, promise.refuse(Error.NOT_COORDINATOR)) for promise, _ in effects.answers])
        return
    try:
        if effects.changes:
            self.node.replicas.commit(self.write(index, effects), lambda error: None)
    except Refused as refused:
        self.refuse(index, machine, effects, refused)
    else:
        self.release(index, machine, effects)


def told_at_append(write: Any) -> Any:
    def planted(self: Any, records: list[Any]) -> Promise:
        write(self, records)
        promise = error_promise()
        promise.resolve(Error.NONE)
        return promise

    return planted


def seen_at_append(write: Any) -> Any:
    def planted(self: Any, records: list[Any]) -> Promise:
        if records:
            self.node.apply(records)
        self.node.apply, real = lambda records: None, self.node.apply
        try:
            return write(self, records)
        finally:
            self.node.apply = real

    return planted


def ids_at_append(self: Any) -> int:
    if not self.producer_ids.ids:
        first = self.planned.next_producer_id
        self.request_producer_ids()
        self.producer_ids.ids.extend(range(first, first + 10))
    return self.producer_ids.ids.popleft()


async def ids_at_once(self: Any) -> Error:
    return Error.NONE


def marked_at_append(write: Any) -> Any:
    def planted(self: Any, topic: str, index: int) -> Promise:
        promise = write(self, topic, index)
        promise.resolve(Error.NONE)
        return promise

    return planted


def settled_at_append(self: Any, offset: int, acks: int) -> bool:
    return True


def answered_at_append(self: Any, node: Any, last: int, correlation_id: int, answer: bytes) -> bytes:
    node.replicas.flush(self.partition)
    return answer


def committed_by_head(serve: Any) -> Any:
    def planted(self: Any, node: Any, frame: memoryview, end: int, correlation_id: int) -> Any:
        answer = serve(self, node, frame, end, correlation_id)
        if answer is None or isinstance(answer, bytes):
            return answer
        indexes = self.unpack(frame, end)[:-1:3]
        return commit_one.framed(correlation_id, self.answer(indexes))

    return planted


def persisted_at_append(persist: Any) -> Any:
    async def planted(self: Any, shared: Any, changes: Any) -> None:
        start(self.node, persist(self, shared, changes))

    return planted


def high_at_append(self: Any) -> None:
    self.log.advance_high_watermark(self.log.end_offset)


def dropped(self: Any, index: int, machine: Any, error: Error) -> None:
    self.uncommitted[index].popleft()
    if not self.uncommitted[index]:
        del self.uncommitted[index]


def out_as_they_come(self: Any, answered: Any, parts: list[Any]) -> None:
    self.pending.remove(answered)
    self.out += parts
    self.on_ready(self)


PLANTS: dict[str, tuple[Patch, ...]] = {
    "coordinators answer when their records are appended": ((Coordinators, "run", released_at_append),),
    "coordinators forget answers that waited for a commit": ((Coordinators, "committed", dropped),),
    "a change of the metadata is answered when it is appended": ((Metadata, "write", told_at_append(Metadata.write)),),
    "a change of the metadata is seen when it is appended": ((Metadata, "write", seen_at_append(Metadata.write)),),
    "producer ids are given out before their block is committed": (
        (Metadata, "next_producer_id", ids_at_append),
        (Metadata, "producer_ids_ready", ids_at_once),
    ),
    "a transaction is complete when its markers are appended": ((Marker, "write", marked_at_append(Marker.write)),),
    "produce requests are acknowledged when they are appended": ((Partition, "is_settled", settled_at_append),),
    "produce requests with a known head are acknowledged at once": ((Appends, "wait", answered_at_append),),
    "offset commits with a known head are answered at once": ((Commits, "serve", committed_by_head(Commits.serve)),),
    "share groups settle records before that is persisted": (
        (SharePartitions, "persist", persisted_at_append(SharePartitions.persist)),
    ),
    "the high watermark does not wait for the sync": ((Partition, "synced", high_at_append),),
    "answers of a connection leave as they come": ((Connection, "answer", out_as_they_come),),
}


@contextmanager
def planted(patches: Sequence[Patch]) -> Iterator[None]:
    """Break the production code for a while."""
    saved = [(owner, attribute, vars(owner)[attribute]) for owner, attribute, _ in patches]
    for owner, attribute, plant in patches:
        setattr(owner, attribute, plant)
    try:
        yield
    finally:
        for owner, attribute, original in saved:
            setattr(owner, attribute, original)


# Where each was found last: where tests look first.
FOUND = {
    "answers of a connection leave as they come": 2,
    "coordinators forget answers that waited for a commit": 1,
    "a change of the metadata is answered when it is appended": 1,
    "produce requests are acknowledged when they are appended": 2,
    "the high watermark does not wait for the sync": 16,
    "a transaction is complete when its markers are appended": 5,
    "a change of the metadata is seen when it is appended": 2,
    "share groups settle records before that is persisted": 7,
    "coordinators answer when their records are appended": 8,
    "produce requests with a known head are acknowledged at once": 15,
    "producer ids are given out before their block is committed": 76,
    "offset commits with a known head are answered at once": 24,
}


def first_seed(name: str, seeds: Iterable[int] = SEEDS) -> int | None:
    """Return the first seed in which a planted bug is found."""
    with planted(PLANTS[name]):
        for seed in seeds:
            failure = run(seed, synced=True).failure
            if failure is not None:
                check_plant(failure)
                return seed
    return None


def check_plant(failure: str) -> None:
    """Refuse a plant that no longer fits the code that it replaces: it breaks every world, and proves nothing."""
    assert not re.search(r"^(TypeError|AttributeError|NameError)\b", failure, re.MULTILINE), failure


def main(names: list[str]) -> int:
    logging.disable(logging.CRITICAL)
    found = {name: first_seed(name) for name in names or PLANTS}
    for name, seed in found.items():
        print(f"{'not found' if seed is None else f'seed {seed}':>10}  {name}")
    return 1 if None in found.values() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
