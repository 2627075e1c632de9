"""The JSON files of kafka-reassign-partitions: reads and writes assignments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.admin import TopicPartition
from moldau.admin.reassignments import Replica

ANY_DIRECTORY = "any"


class BadPlan(Exception):
    """An error in a plan."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The brokers of partitions, in the order of the file, and the directories of replicas that have one."""

    partitions: Mapping[TopicPartition, tuple[int, ...]]
    directories: Mapping[Replica, str]


def read_plan(document: Any) -> Plan:
    """Read `--reassignment-json-file`."""
    rows = _rows(document, "partitions")
    found: dict[TopicPartition, tuple[int, ...]] = {}
    twice: list[str] = []
    directories: dict[Replica, str] = {}
    for row in rows:
        place, replicas, paths = _partition(row)
        if place in found:
            twice.append(_name(place))
        found[place] = replicas
        for broker, path in zip(replicas, paths, strict=True):
            if path != ANY_DIRECTORY:
                directories[*place, broker] = path
    if twice:
        raise BadPlan(f"Partition reassignment contains duplicate topic partitions: {','.join(twice)}")
    return Plan(found, directories)


def checked(plan: Plan) -> Plan:
    """Check that a plan can be carried out: it is not empty, and each partition is on different brokers."""
    if not plan.partitions:
        raise BadPlan("Partition reassignment list cannot be empty")
    empty = [_name(place) for place, replicas in plan.partitions.items() if not replicas]
    if empty:
        raise BadPlan(f"Partition replica list cannot be empty for {','.join(empty)}")
    for place, replicas in plan.partitions.items():
        if twice := sorted({broker for broker in replicas if replicas.count(broker) > 1}):
            listed = f"{_name(place)} contains multiple entries for {','.join(map(str, twice))}"
            raise BadPlan(f"Partition replica lists may not contain duplicate entries: {listed}")
    return plan


def _partition(row: Any) -> tuple[TopicPartition, tuple[int, ...], tuple[str, ...]]:
    try:
        place = (str(row["topic"]), int(row["partition"]))
        replicas = tuple(int(broker) for broker in row["replicas"])
        paths = tuple(str(path) for path in row["log_dirs"]) if "log_dirs" in row else (ANY_DIRECTORY,) * len(replicas)
    except (TypeError, KeyError, ValueError):
        raise BadPlan('A partition is written {"topic": "name", "partition": 0, "replicas": [1, 2]}') from None
    if len(paths) != len(replicas):
        sizes = f"Size of replicas list {list(replicas)} is different from size of log dirs list"
        raise BadPlan(f"{sizes} [{', '.join(paths)}] for partition {_name(place)}")
    return place, replicas, paths


def read_topics(document: Any) -> list[str]:
    """Read `--topics-to-move-json-file`."""
    try:
        names = [str(row["topic"]) for row in _rows(document, "topics")]
    except (TypeError, KeyError):
        raise BadPlan('A topic is written {"topic": "name"}') from None
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadPlan(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return names


def _rows(document: Any, field: str) -> list[Any]:
    if not isinstance(document, dict):
        raise BadPlan("The input string is not a valid JSON")
    if document.get("version", 1) != 1:
        raise BadPlan(f"Not supported version field value {document['version']}")
    rows = document.get(field, [])
    if not isinstance(rows, list):
        raise BadPlan(f"{field} is a list")
    return rows


def _name(place: TopicPartition) -> str:
    return f"{place[0]}-{place[1]}"


def written(
    assignment: Mapping[TopicPartition, Sequence[int]], directories: Mapping[Replica, str] | None = None
) -> str:
    """Write an assignment as the tool prints it; replicas without a directory are marked `any`."""
    known = directories or {}
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(assignment[topic, partition]),
            "log_dirs": [
                known.get((topic, partition, broker), ANY_DIRECTORY) for broker in assignment[topic, partition]
            ],
        }
        for topic, partition in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)
