"""Reads models and views from a cluster, with requests that every Kafka answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise

from moldau.admin import clusters, groups, log_dirs, offsets, reassignments, topics
from moldau.balance.model import NOBODY, Broker, Model, Partition, Place
from moldau.balance.progress import PartitionView, View
from moldau.client import Client, ClientError

MOST_GROUPS = 200  # whose progress is measured
SAME_DISK = 0.001  # directories whose free space differs by less, as part of the whole, are on one disk
Readings = tuple[dict[Place, int], dict[tuple[str, Place], int]]  # ends of partitions, and commits of groups


def observe(client: Client, measure_s: float = 0.0, sleep: Callable[[float], None] = time.sleep) -> Model:
    """Read the model of a cluster. Rates are measured for so many seconds, from offsets and commits; 0 leaves them
    out."""
    alive = clusters.described(client).brokers
    listed = topics.listed(client)
    moving = reassignments.known(client)
    folders = _folders(client, [one.id for one in alive])
    sizes = log_dirs.sizes(folders)
    partitions = [
        Partition(
            topic.name,
            one.index,
            one.replicas,
            one.leader,
            one.isr,
            _size(sizes.get((topic.name, one.index), {}), one.leader),
            fixed=one.leader == NOBODY or (topic.name, one.index) in moving,
        )
        for topic in listed
        for one in topic.partitions
    ]
    brokers = {one.id: _broker(one, folders[one.id]) for one in alive}
    for id in sorted({id for one in partitions for id in one.replicas} - brokers.keys()):
        brokers[id] = Broker(id, takes=False, alive=False)
    model = Model(tuple(brokers[id] for id in sorted(brokers)), tuple(partitions))
    return _measured(client, model, measure_s, sleep) if measure_s else model


def view(client: Client) -> View:
    """Read what a run needs to know of a cluster."""
    moving = reassignments.listed(client)
    alive = [one.id for one in clusters.described(client).brokers]
    partitions = {
        (topic.name, one.index): PartitionView(
            one.replicas, one.leader, one.isr, _goal(moving, (topic.name, one.index))
        )
        for topic in topics.listed(client)
        for one in topic.partitions
    }
    folders = _folders(client, alive)
    rooms = {id: room for id, found in folders.items() if (room := room_of(found)) is not None}
    copied = {(place, id): size for place, by_id in log_dirs.sizes(folders).items() for id, size in by_id.items()}
    return View(frozenset(alive), partitions, rooms, copied)


def _folders(client: Client, brokers: list[int]) -> dict[int, list[log_dirs.LogDir]]:
    """Describe the directories of brokers; those of one that does not answer, because it has just gone, are unknown."""
    found: dict[int, list[log_dirs.LogDir]] = {}
    for id in brokers:
        try:
            found |= log_dirs.described(client, [id])
        except ClientError as error:
            if not error.retriable:
                raise
            found[id] = []
    return found


def _goal(moving: Mapping[Place, reassignments.Reassignment], place: Place) -> tuple[int, ...] | None:
    one = moving.get(place)
    return None if one is None else tuple(id for id in one.replicas if id not in one.removing)


def _broker(one: clusters.BrokerState, folders: list[log_dirs.LogDir]) -> Broker:
    totals = [folder.total_bytes for folder in folders if folder.total_bytes >= 0]
    total = sum(totals) // max(1, len(totals)) * _disks(folders)
    return Broker(one.id, one.rack, not one.is_fenced, not one.is_fenced, room_of(folders), total or None)


def room_of(folders: list[log_dirs.LogDir]) -> int | None:
    """Return the free bytes of a broker. Brokers deal replicas out to directories by their number, so the fullest disk
    decides for all of them."""
    usable = [folder.usable_bytes for folder in folders if folder.usable_bytes >= 0 and not folder.error]
    return min(usable) * _disks(folders) if usable else None


def _disks(folders: list[log_dirs.LogDir]) -> int:
    """Count the disks under directories: those that are equally large and equally full are one."""
    known = sorted((one.total_bytes, one.usable_bytes) for one in folders if one.total_bytes >= 0)
    return len(known) - sum(
        total == before and usable - free <= SAME_DISK * total for (before, free), (total, usable) in pairwise(known)
    )


def _size(sizes: Mapping[int, int], leader: int) -> int:
    return sizes.get(leader, max(sizes.values(), default=0))


def _measured(client: Client, model: Model, seconds: float, sleep: Callable[[float], None]) -> Model:
    places = [one.place for one in model.partitions if one.leader != NOBODY]
    starts = _known(offsets.at(client, dict.fromkeys(places, offsets.EARLIEST)))
    before, begin = _read(client, places), time.monotonic()
    sleep(seconds)
    after, spent = _read(client, places), time.monotonic() - begin
    return with_rates(model, starts, before, after, spent)


def _read(client: Client, places: list[Place]) -> Readings:
    commits = groups.commits(client, groups.listed(client), MOST_GROUPS)
    done = {(name, place): one.offset for name, of_group in commits.items() for place, one in of_group.items()}
    return _known(offsets.at(client, dict.fromkeys(places, offsets.LATEST))), done


def _known(found: Mapping[Place, offsets.Offset]) -> dict[Place, int]:
    return {place: one.offset for place, one in found.items() if not one.error}


def with_rates(model: Model, starts: Mapping[Place, int], before: Readings, after: Readings, seconds: float) -> Model:
    """Return a model with rates: records that came and were committed meanwhile, times the average size of a record."""
    read: dict[Place, int] = {}
    for (group, place), offset in after[1].items():
        read[place] = read.get(place, 0) + max(0, offset - before[1].get((group, place), offset))

    def rated(one: Partition) -> Partition:
        end = after[0].get(one.place, 0)
        each = one.size / max(1, end - starts.get(one.place, 0)) / seconds
        come = max(0, end - before[0].get(one.place, end))
        return replace(one, bytes_in=round(come * each), bytes_out=round(read.get(one.place, 0) * each))

    return replace(model, partitions=tuple(map(rated, model.partitions)))
