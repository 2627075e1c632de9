"""The third judge: topologies run by Kafka Streams itself on a broker, and by ours on Spark, on topics of four
partitions. `python -m tests.streams.judge.live` runs all of them; `--page` writes their part of docs/streams-judge.md.

A test driver has one partition, and so says nothing of shards, of their stream times, of where sinks write to, or of
keys that two producers put into different partitions. Here both get the same records before they start: 12 keys, a
third of which come from producers with another partitioner too, some null; partitions of very different sizes, one of
them late by twenty seconds. Ours reads them in small batches.

What can be compared goes by what Kafka Streams promises. Up to the first change of key a task is fed in the order of
timestamps, so that of a key that is in one partition all that comes out must be the same, in order; of one that is in
several, as a set. Behind a change of key Kafka's tasks take turns as they like: there one compares what does not hang
on that, keys and values as a set or the latest value of each key that is in one partition.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from moldau.admin import offsets
from moldau.client import CONTROLLER, Client, Fetcher, Record, build, check, produce, records
from moldau.client import messages as m
from moldau.plan.conveyor.start import definition
from moldau.streams.application import application
from moldau.testing import broker, eventually
from moldau.views.offsets import committed
from moldau.wire.numbers import murmur2
from tests import needs
from tests.streams.judge import ours
from tests.streams.judge.case import shown
from tests.streams.judge.inputs import VALUES
from tests.streams.judge.jvm import BRIEF, FLAGS
from tests.streams.judge.page import write_live
from tests.streams.judge.trial import inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 4
RECORDS = 1_200
BATCH = 500
GROUP = "judge"
SINKS = ("out", "counts", "reduced")
SETTINGS = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
SECONDS = 180.0
How = Literal["ordered", "set", "latest"]
TRIALS: dict[str, How] = {
    "filter": "ordered",
    "flat_map_values": "ordered",
    "count": "ordered",
    "aggregate": "ordered",
    "tumbling_count": "ordered",
    "hopping_count": "ordered",
    "session_count": "ordered",
    "stream_join": "ordered",
    "stream_left_join_grace": "ordered",
    "stream_outer_join_grace": "ordered",
    "stream_table_join": "ordered",
    "table_join": "ordered",
    "table_outer_join_stored": "ordered",
    "select_key": "set",
    "group_by_count": "set",
    "table_join_group": "latest",
    "foreign_join": "latest",
    "foreign_left_join_stored": "latest",
}
OWNERS = "right"  # of joins by foreign key: its keys are what values of the other topic begin with
Place = tuple[str, int]
Key = bytes | None


@dataclass(frozen=True, slots=True)
class Row:
    """A record that came out."""

    key: Key
    value: bytes | None
    timestamp: int

    def __str__(self) -> str:
        return f"{shown(self.key)} = {shown(self.value)} @ {self.timestamp}"


@dataclass(frozen=True, slots=True)
class Trial:
    topology: str
    how: How
    records: int
    made: int
    difference: str = ""


def input_records(topics: list[str], seed: int, by_foreign_key: bool = False) -> dict[Place, list[Record]]:
    """Times are all different, so that nothing hangs on which of two equal ones comes first."""
    chance = random.Random(seed)
    found: dict[Place, list[Record]] = {(topic, n): [] for topic in topics for n in range(PARTITIONS)}
    for number in range(RECORDS):
        topic = chance.choice(topics)
        name = chance.choice([*range(12), None, 0, 0, 0, 1, 1])
        key = key_of(name, by_foreign_key and topic == OWNERS)
        partition = chance.choice((0, 0, 0, 1)) if key is None else partition_of(key, name or 0, chance)
        time = 1_000_000 + 100 * number + chance.choice((0, 0, -1_500, -7_000)) - (20_000 if partition == 3 else 0)
        value = chance.choice(VALUES)
        found[topic, partition].append(Record(timestamp=time * 4 + topics.index(topic), key=key, value=coded(value)))
    return found


def key_of(name: int | None, is_letter: bool) -> bytes | None:
    if name is None:
        return None
    return b"abcx"[name % 4 :][:1] if is_letter else b"k%d" % name


def partition_of(key: bytes, name: int, chance: random.Random) -> int:
    """Of Java's producers; for some keys of librdkafka's too."""
    return zlib.crc32(key) % PARTITIONS if name >= 8 and chance.random() < 0.5 else murmur2(key) % PARTITIONS


def coded(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


@contextmanager
def filled(given: Mapping[Place, list[Record]], prefixes: Iterable[str] = ("",)) -> Iterator[Client]:
    """A broker with the topics, and the records in them; `prefixes` are those of the topics of sinks."""
    with broker(**SETTINGS) as made, Client({"bootstrap.servers": made.bootstrap_servers}) as client:
        names = sorted({topic for topic, _ in given} | {f"{prefix}{sink}" for prefix in prefixes for sink in SINKS})
        new = [m.CreateTopicsRequest_CreatableTopic(name, PARTITIONS, 1) for name in names]
        check(client.send(m.CreateTopicsRequest(new, timeout_ms=30_000), to=CONTROLLER))
        for (topic, partition), rows in given.items():
            for at in range(0, len(rows), 100):
                produce(client, topic, partition, build(rows[at : at + 100]))
        yield client


def servers_of(client: Client) -> str:
    return str(client.config["bootstrap.servers"])


class Java:
    """A JVM for all trials."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, topology: str, client: Client) -> None:
        """Until all that there is has been processed."""
        own = {"bootstrap.servers": servers_of(client), "commit.interval.ms": "100"}
        self.say({"topology": topology, "settings": own})
        eventually(lambda: is_done(client), timeout_s=SECONDS, what=f"{topology} by Kafka Streams")
        self.say({})

    def say(self, line: dict[str, Any]) -> None:
        assert self.process.stdin and self.process.stdout
        print(json.dumps(line), file=self.process.stdin, flush=True)
        assert self.process.stdout.readline(), "the JVM ended"


@contextmanager
def java() -> Iterator[Java]:
    classes, jars = needs.find("streams-judge").path, needs.find("streams-jars").path
    with tempfile.TemporaryDirectory() as folder:
        command = ["java", *FLAGS, *BRIEF, "-cp", f"{classes}:{jars}/*", "Live", folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield Java(process)
            finally:
                process.kill()


def ends_of(client: Client, topic: str, partitions: Iterable[int]) -> dict[Place, int]:
    """Return where partitions of a topic end for those who read what is committed."""
    return offsets.one_time(client, [(topic, number) for number in partitions], offsets.LATEST, committed=True)


def is_done(client: Client) -> bool:
    """Whether the group has read its topics to their ends, and still has a moment later."""
    for pause in (0.0, 0.7):
        time.sleep(pause)
        for name, topic in client.refresh(None).topics.items():
            internal = name.startswith(f"{GROUP}-") and not name.endswith("-changelog")
            if name in ("in", "left", "right") or internal:
                ends = {number: end for (_, number), end in ends_of(client, name, topic.partitions).items() if end}
                done = committed(client, GROUP, name, ends) if ends else {}
                if any(done[number] < end for number, end in ends.items()):
                    return False
    return True


def on_spark(topology: str, client: Client, spark: SparkSession, folder: str) -> None:
    settings = {"bootstrap.servers": servers_of(client), "state.dir": folder, "spark.maxOffsetsPerTrigger": BATCH}
    made = application(ours.built(topology, {}), {**ours.SETTINGS, **settings})
    query = definition(made, spark).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(int(SECONDS)), f"{topology} does not come to its end on Spark"
    finally:
        query.stop()


def outputs(client: Client, prefix: str = "") -> dict[Place, list[Row]]:
    """What is committed in the topics of sinks, by partition."""
    found: dict[Place, list[Row]] = {}
    fetcher = Fetcher(client, isolation_level="read_committed")
    for sink, number in ((topic, number) for topic in SINKS for number in range(PARTITIONS)):
        rows, place, offset = found.setdefault((sink, number), []), (f"{prefix}{sink}", number), 0
        end = ends_of(client, place[0], [place[1]])[place]
        while offset < end:
            part = fetcher.fetch({place: offset})[place]
            rows += [Row(one.key, one.value, one.timestamp) for batch in part.committed() for one in records(batch)]
            offset = part.next_offset(offset)
    return found


def difference(how: How, mixed: set[bytes], kafka: dict[Place, list[Row]], own: dict[Place, list[Row]]) -> str:
    """The first thing in which both differ, partition by partition. Records without a key go where they like."""
    for place in kafka:
        theirs, mine = ([row for row in side[place] if row.key is not None] for side in (kafka, own))
        if (told := unequal(how, mixed, theirs, mine)) != "":
            return f"{place[0]}-{place[1]}: {told}"
    nowhere = [Counter(row for rows in side.values() for row in rows if row.key is None) for side in (kafka, own)]
    return "" if nowhere[0] == nowhere[1] else f"records without a key: {beside(*nowhere)}"


def unequal(how: How, mixed: set[bytes], kafka: list[Row], own: list[Row]) -> str:
    match how:
        case "set":
            return beside(*(Counter((row.key, row.value) for row in side) for side in (kafka, own)))
        case "latest":
            homed = ([row for row in side if row.key not in mixed] for side in (kafka, own))
            latest = [{row.key: row.value for row in side} for side in homed]
            kept = [Counter((key, value) for key, value in side.items() if value is not None) for side in latest]
            return beside(*kept)
        case "ordered":
            told = beside(Counter(kafka), Counter(own))
            for key in {row.key for row in kafka}:
                if not told and not any(key and key.startswith(one) for one in mixed):
                    theirs, mine = ([row for row in side if row.key == key] for side in (kafka, own))
                    told = "" if theirs == mine else f"the order of {shown(key)}"
            return told


def beside(kafka: Counter[Any], own: Counter[Any]) -> str:
    """What only one of them has."""
    only, more = list((kafka - own).elements())[:5], list((own - kafka).elements())[:5]
    if not only and not more:
        return ""
    return f"only Kafka: {', '.join(map(str, only)) or 'nothing'}; only ours: {', '.join(map(str, more)) or 'nothing'}"


def several_homes(given: Mapping[Place, list[Record]]) -> set[bytes]:
    """Keys that are in more than one partition."""
    homes: dict[bytes, set[int]] = {}
    for (_, partition), rows in given.items():
        for row in rows:
            if row.key is not None:
                homes.setdefault(row.key, set()).add(partition)
    return {key for key, found in homes.items() if len(found) > 1}


def trial(kafka: Java, spark: SparkSession, topology: str, how: How, seed: int) -> Trial:
    topics = list(inputs(ours.built(topology, {}).describe()))
    given = input_records(topics, seed, by_foreign_key=topology.startswith("foreign"))
    with filled(given) as theirs, filled(given) as mine, tempfile.TemporaryDirectory() as folder:
        kafka.run(topology, theirs)
        on_spark(topology, mine, spark, folder)
        made, own = outputs(theirs), outputs(mine)
    count = sum(map(len, made.values()))
    return Trial(topology, how, RECORDS, count, difference(how, several_homes(given), made, own))


def main() -> int:
    from moldau.spark import session

    parser = argparse.ArgumentParser(prog="python -m tests.streams.judge.live", description=__doc__)
    parser.add_argument("--topology", action="append", choices=sorted(TRIALS), metavar="NAME", default=[])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the part of docs/streams-judge.md")
    given = parser.parse_args()
    spark = session("third judge", "local[2]")
    spark.sparkContext.setLogLevel("OFF")
    found: list[Trial] = []
    with java() as kafka:
        for name in given.topology or TRIALS:
            found.append(trial(kafka, spark, name, TRIALS[name], given.seed))
            print(f"{name}: {found[-1].made} records, {found[-1].difference or 'equal'}", flush=True)
    spark.stop()
    if given.page:
        write_live([(one.topology, one.how, one.records, one.made, one.difference) for one in found])
    return 1 if any(one.difference for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
