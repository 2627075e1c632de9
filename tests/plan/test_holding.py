"""Shards that fail hold what arrived and go on as if they had not: all kinds of stores of the judge's topologies."""

import random
from functools import partial

import pytest

from moldau.plan.blobs import Blob
from moldau.plan.holding import hold
from moldau.plan.levels import ShardId
from moldau.plan.shard_state import BOOK, GOING_ON, Book
from moldau.plan.shards import HasFailed, ShardBatch, run
from tests.plan.test_restoring import BATCHES, PARTITIONS, batches, by_kinds, conveyor, outputs, restored

from .in_memory import Conveyor


class Failing:
    """Lets all shards of a level of a conveyor fail for a while."""

    def __init__(self, conveyor: Conveyor, level: int) -> None:
        self.conveyor, self.run = conveyor, conveyor.run
        self.groups = conveyor.conveyed.schedule.levels[level]
        self.attempt, self.held = 1, dict[ShardId, None]()
        conveyor.run = self.fail

    def fail(self, shard: ShardId, arrived: list[Blob], now: int) -> list[Blob]:
        if shard.group not in self.groups:
            return self.run(shard, arrived, now)
        self.held[shard] = None
        pages = partial(self.conveyor.kept, shard)
        found = hold(self.conveyor.conveyed, shard, pages, arrived, self.attempt)
        conveyed, shared = self.conveyor.conveyed, self.conveyor.tables.stores
        with pytest.raises(HasFailed):
            run(conveyed, shard, pages, [], shared=shared, number=self.attempt)
        ShardBatch(conveyed, shard, pages, shared, number=self.attempt + 1)
        return found

    def resume(self) -> None:
        self.conveyor.run = self.run
        self.conveyor.batch([], wake=self.held)


@pytest.mark.parametrize("is_lost", [False, True], ids=["kept", "restored"])
@pytest.mark.parametrize("name", by_kinds())
def test_shards_that_fail_go_on_as_if_they_had_not(name: str, is_lost: bool) -> None:
    """Also if the pages are lost meanwhile: what was held is in the log of shards."""
    chance, settings = random.Random(f"{name} {is_lost}"), {"statestore.cache.max.bytes": 0}
    whole, other = (conveyor(name, settings, PARTITIONS) for _ in range(2))
    schedule = whole.conveyed.schedule
    topics = sorted(topic for topic in schedule.reader if topic not in schedule.internal)
    made = batches(topics, chance, PARTITIONS)
    level = chance.randrange(len(schedule.levels))
    for number, batch in enumerate(made):
        whole.batch(batch)
        if number != BATCHES // 2:
            other.batch(batch)
            continue
        failing = Failing(other, level)
        other.batch(batch)
        if is_lost:
            before, held = other, failing.held
            other = restored(before, [raw for some in made[: number + 1] for raw in some], name, settings)
            other.outputs = before.outputs
            other.batch([], wake=held)
        else:
            failing.resume()
    assert outputs(other) == outputs(whole)
    assert numbered(other) == numbered(whole)


def numbered(found: Conveyor) -> dict[ShardId, dict[str, int]]:
    """Return how far the shards have counted the records of internal topics. Zero is the same as not begun."""
    books = {shard: Book.of_bytes(found.kept(shard, BOOK).get(GOING_ON)) for shard in found.conveyed.schedule.shards}
    return {shard: {topic: count for topic, count in book.offsets.items() if count} for shard, book in books.items()}
