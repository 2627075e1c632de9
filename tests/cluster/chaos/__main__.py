"""`make chaos`: faults on real processes under real clients, round after round, and a table of what befell them.

Usage: python -m tests.cluster.chaos [--rounds N] [--seed N] [--fault NAME] [--mixed KINDS] [--java]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.progress import Progress

from moldau.machines.metadata import records as metadata_records
from moldau.testing import Cluster, cluster
from moldau.wire.records import batches, records
from tests import needs
from tests.cluster.chaos import java
from tests.cluster.chaos.faults import FAULTS
from tests.cluster.chaos.mixed_nodes import Mixed, mixed
from tests.cluster.chaos.trial import SETTINGS, Trial
from tests.cluster.mixed import KAFKA, MOLDAU, Member

ROUNDS, MIXED_ROUNDS = 1000, 100
LOG_CHARACTERS = 6000
PLACEMENTS, UNCHANGED = 80, -2
PLACED = "leader", "isr", "replicas", "adding_replicas", "removing_replicas"
KINDS = {"m": MOLDAU, "k": KAFKA}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description="Faults on real processes.")
    parser.add_argument("--rounds", type=int, help=f"Number of faults ({ROUNDS}, with --mixed {MIXED_ROUNDS}).")
    parser.add_argument("--seed", type=int, help="Draw the faults from this seed.")
    parser.add_argument("--fault", choices=list(FAULTS), action="append", help="Only this fault; repeatable.")
    parser.add_argument("--mixed", metavar="KINDS", help="Nodes of Moldau and Kafka: mkk, mmk and the like.")
    parser.add_argument("--java", action="store_true", help="Let Kafka's own tools use the cluster, too.")
    given = parser.parse_args(arguments)
    seed = given.seed or random.randrange(1, 10**6)
    rounds = given.rounds or (MIXED_ROUNDS if given.mixed else ROUNDS)
    libs = None
    if given.mixed or given.java:
        if lacking := needs.missing(java.NEEDS):
            print(f"left out: {lacking.tool}: {lacking.reason}")
            return 0
        libs = needs.find("kafka-jars").path
    print(f"seed {seed}, {rounds} rounds on {given.mixed or 'three Moldau nodes'}", flush=True)
    with nodes_of(given.mixed, libs) as nodes:
        return run(nodes, rounds, Trial(nodes, seed, libs if given.java else None), given.fault)


@contextmanager
def nodes_of(kinds: str | None, libs: Path | None) -> Iterator[Cluster | Mixed]:
    if kinds is None:
        with cluster(3, SETTINGS) as nodes:
            yield nodes
        return
    assert libs is not None
    with tempfile.TemporaryDirectory(prefix="chaos-mixed-") as folder:
        made = mixed([KINDS[one] for one in kinds], Path(folder), libs, SETTINGS)
        with made as nodes:
            yield nodes


def run(nodes: Cluster | Mixed, rounds: int, trial: Trial, only: list[str] | None) -> int:
    began = time.monotonic()
    try:
        with trial, Progress(disable=not sys.stdout.isatty()) as bar:
            task = bar.add_task("faults", total=rounds)
            for number in range(rounds):
                at = time.monotonic()
                name = trial.round(trial.random.choice(only) if only else None)
                bar.advance(task)
                if not sys.stdout.isatty():
                    print(f"{number + 1:5} {time.monotonic() - at:6.1f} s  {name}", flush=True)
            trial.finish()
    except BaseException:
        traceback.print_exc()
        print_logs(nodes)
        print_placements(nodes)
        return 1
    finally:
        summary(trial, time.monotonic() - began)
    return 0


def print_logs(nodes: Cluster | Mixed) -> None:
    for node, broker in nodes.brokers.items():
        text = broker.log if isinstance(broker.log, str) else broker.log.read_text(errors="replace")
        print(f"--- node {node}\n{text[-LOG_CHARACTERS:]}")


def print_placements(nodes: Cluster | Mixed) -> None:
    """Print the last changes of replicas and leaders, as the first node has them in the metadata log."""
    node, broker = next(iter(nodes.brokers.items()))
    folder = broker.folder if isinstance(broker, Member) else Path(broker.data_dir)
    names: dict[bytes, str] = {}
    lines: deque[str] = deque(maxlen=PLACEMENTS)
    for path in sorted(folder.rglob("__cluster_metadata-0/*.log")):
        for batch in batches(path.read_bytes()):
            moment = datetime.fromtimestamp(batch.max_timestamp / 1000, UTC).isoformat()
            at = f"{moment} offset {batch.base_offset} epoch {batch.partition_leader_epoch}"
            for record in () if batch.is_control else records(batch):
                found: Any = metadata_records.decode(record.value or b"")
                kind = type(found).__name__
                if kind == "TopicRecord":
                    names[found.topic_id] = found.name
                elif kind == "PartitionChangeRecord":
                    told = {name: getattr(found, name) for name in PLACED}
                    set_ = ", ".join(f"{name}={one}" for name, one in told.items() if one not in (None, UNCHANGED))
                    lines.append(f"{at} {names.get(found.topic_id, found.topic_id)}-{found.partition_id}: {set_}")
    print(f"--- what node {node} has of placements", *lines, sep="\n")


def summary(trial: Trial, seconds: float) -> None:
    print(f"\n{'rounds':>7}  {'well after at most':>18}  fault")
    for name, times in trial.faults.most_common():
        print(f"{times:>7}  {trial.slowest.get(name, float('nan')):>16.1f} s  {name}")
    for what, count in sorted(trial.judge.counts.items(), key=lambda pair: -pair[1]):
        print(f"{count:>10,}  {what}")
    print(f"{sum(trial.faults.values())} rounds in {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
