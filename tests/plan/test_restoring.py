"""Shards that are restored from changelogs go on as those that never lost anything: all topologies of the judge."""

import random
from collections import Counter
from collections.abc import Mapping
from functools import partial

import pytest

from moldau.operators.record import Produced, Raw
from moldau.plan import blobs
from moldau.plan.blobs import RESTORED, Blob
from moldau.plan.levels import stores_of
from moldau.plan.restoring import LOG, log_of, shard_named
from moldau.plan.shards import restored as put_back
from moldau.wire.numbers import murmur2
from tests.streams.judge.inputs import AHEAD, BEHIND, FAR, KEYS, VALUES
from tests.streams.judge.ours import SETTINGS, built
from tests.streams.judge.topologies import TOPOLOGIES

from .in_memory import Conveyor

BATCHES, MOST = 8, 8  # records of a batch
PARTITIONS = 3
TIMES = AHEAD * 3 + BEHIND * 2 + FAR


def conveyor(name: str, settings: Mapping[str, object], partitions: int = 1, in_rows: bool = False) -> Conveyor:
    topology = built(name, {})
    plan = topology.plan({**topology.settings, **SETTINGS, **settings})
    topics = {topic for node in plan.nodes for topic in getattr(node, "topics", ())}
    internal = {topic.name for topic in plan.internal_topics}
    counts = dict.fromkeys(topics - internal, partitions)
    return Conveyor(topology, counts, {**SETTINGS, **settings}, logged=True, in_rows=in_rows)


def batches(topics: list[str], chance: random.Random, partitions: int = 1) -> list[list[Raw]]:
    latest, offsets, made = 0, Counter[tuple[str, int]](), list[list[Raw]]()
    for _ in range(BATCHES):
        made.append([])
        for _ in range(chance.randint(1, MOST)):
            topic, key, value = chance.choice(topics), chance.choice(KEYS), chance.choice(VALUES)
            time = max(0, latest + chance.choice(TIMES))
            latest = max(latest, time)
            partition = murmur2((key or "").encode()) % partitions
            made[-1].append(Raw(topic, partition, offsets[topic, partition], encoded(key), encoded(value), time))
            offsets[topic, partition] += 1
    return made


def encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def compacted(written: list[Produced]) -> list[Raw]:
    """What a compacted topic still has in the end, at the offsets that they had."""
    found: dict[bytes | None, Raw] = {}
    for offset, one in enumerate(written):
        found.pop(one.key, None)
        found[one.key] = Raw(one.topic, one.partition or 0, offset, one.key, one.value, one.timestamp, one.headers)
    return list(found.values())


def restored(before: Conveyor, read: list[Raw], name: str, settings: Mapping[str, object]) -> Conveyor:
    """A conveyor with nothing but what the topics of another one have. What was read serves as changelog too."""
    after = conveyor(name, settings, PARTITIONS)
    plan = after.conveyed.schedule.plan
    for shard in after.conveyed.schedule.shards:
        own = {plan.changelog(spec): spec for spec in stores_of(plan, shard.group)}
        found: list[Blob] = []
        for topic, spec in own.items():
            written = [one for one in before.outputs.get(topic, []) if one.partition == shard.partition]
            if spec.changelog:
                raws = [raw for raw in read if (raw.topic, raw.partition) == (topic, shard.partition)]
            else:
                raws = [as_read(one, at) for at, one in enumerate(written)] if spec.versioned else compacted(written)
            found += [Blob(topic, shard.partition, RESTORED, at, data) for at, data in enumerate(blobs.of_raw(raws))]
        log = [raw for raw in compacted(before.outputs.get(log_of(plan), [])) if shard_named(raw.key) == str(shard)]
        found += [Blob(log_of(plan), 0, RESTORED, at, data) for at, data in enumerate(blobs.of_raw(log))]
        if found:
            after.first += put_back(after.conveyed.schedule, shard, partial(after.kept, shard), found)
    return after


def as_read(one: Produced, offset: int) -> Raw:
    return Raw(one.topic, one.partition or 0, offset, one.key, one.value, one.timestamp, one.headers)


def outputs(found: Conveyor) -> dict[str, list[Produced]]:
    return {topic: written for topic, written in found.outputs.items() if written and not topic.endswith(LOG)}


NOT_RESTORED = {
    "foreign_self_join",
    "topology_read_only",  # it puts something else than the topic has, which Kafka does not restore either
}


def by_kinds() -> list[str]:
    """For each set of kinds of stores that can be restored, one topology."""
    found: dict[tuple[str, ...], str] = {}
    for name in sorted(TOPOLOGIES):
        plan = built(name, {}).plan(SETTINGS)
        stores = [spec for spec in plan.stores if spec.name not in plan.global_stores]
        if stores and name not in NOT_RESTORED and all(spec.logged or spec.changelog for spec in stores):
            parts = [f"{spec.kind} {dict(spec.parts).get('order')} {spec.changelog}" for spec in stores]
            found.setdefault(tuple(sorted(set(parts))), name)
    return sorted(found.values())


@pytest.mark.parametrize("name", by_kinds())
@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_shards_that_are_restored_from_changelogs_go_on_as_if_nothing_had_been_lost(
    name: str, cache_bytes: int
) -> None:
    chance, settings = random.Random(f"{name} {cache_bytes}"), {"statestore.cache.max.bytes": cache_bytes}
    whole, first = (conveyor(name, settings, PARTITIONS) for _ in range(2))
    schedule = whole.conveyed.schedule
    topics = sorted(topic for topic in schedule.reader if topic not in schedule.internal)
    places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
    made = [(batch, [one for one in places if chance.random() < 0.2]) for batch in batches(topics, chance, PARTITIONS)]
    for batch, unread in made[: BATCHES // 2]:
        whole.batch(batch, unread)
        first.batch(batch, unread)
    second = restored(first, [raw for batch, _ in made[: BATCHES // 2] for raw in batch], name, settings)
    whole.outputs.clear()
    for batch, unread in made[BATCHES // 2 :]:
        whole.batch(batch, unread)
        second.batch(batch, unread)
    assert outputs(second) == outputs(whole)
