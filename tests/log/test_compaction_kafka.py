"""The same logs, cleaned here and by Kafka's own cleaner: what is left must be the same, batch by batch."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moldau.wire.compression import Compression
from moldau.wire.records import records
from tests.log.test_compaction import DAY, MEMORY, Story, whole

SOURCE = Path(__file__).parent / "java" / "Clean.java"
STORIES, ACTIONS = 12, 80

pytestmark = pytest.mark.needs("javac")


class Cleaned(NamedTuple):
    """What a cleaner has left of a log."""

    end_offset: int
    upper: int
    bases: list[int]
    batches: list[tuple[Any, ...]]
    aborted: list[tuple[int, ...]]


def facts(data: bytes) -> list[tuple[Any, ...]]:
    """All of each batch but its CRC and its base timestamp, which Kafka takes anew from the first record that stays."""
    names = ("base_offset", "last_offset", "count", "attributes", "delete_horizon", "max_timestamp")
    names += ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch")
    return [(*(getattr(b, name) for name in names), tuple(records(b))) for b in whole(data)]


class Kafka:
    """The Java program, which cleans copies."""

    def __init__(self, libs: Path, scratch: Path) -> None:
        command = ["java", "-Xmx256m", "-cp", f"{libs}/*", str(SOURCE)]
        self.copy, self.errors = scratch / "t-0", scratch / "errors"
        with self.errors.open("w") as errors:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True)

    def clean(self, story: Story) -> Cleaned:
        log = story.world.log
        shutil.rmtree(self.copy, ignore_errors=True)
        for segment in log.segments:
            segment.written_files()
        shutil.copytree(log.path, self.copy, ignore=shutil.ignore_patterns("*.deleted", "partition.metadata"))
        assert self.process.stdin and self.process.stdout
        size = story.world.config.segment_bytes
        print(self.copy, story.dirty, story.now, size, log.end_offset, file=self.process.stdin, flush=True)
        lines = list(takewhile(lambda line: line != "done\n", self.process.stdout))
        assert lines, self.errors.read_text()[-3000:]
        end, upper = map(int, lines[0].split())
        rows = [line.split() for line in lines[1:]]
        aborted = [entry for row in rows for entry in row[2].strip("[]").split(";") if entry]
        return Cleaned(
            end,
            upper,
            [int(row[0]) for row in rows],
            [fact for row in rows for fact in facts(bytes.fromhex(row[1].strip("[]")))],
            [tuple(map(int, entry.split(","))) for entry in aborted],
        )


@pytest.fixture(scope="module")
def kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    found = Kafka(kafka_libs, tmp_path_factory.mktemp("kafka"))
    yield found
    assert found.process.stdin
    found.process.stdin.close()
    found.process.wait(10)


def clean(story: Story) -> Cleaned:
    upper = story.world.upper
    done = story.world.compact(story.dirty, story.now, MEMORY)
    segments = story.world.log.segments.items
    return Cleaned(
        done.end_offset,
        upper,
        [segment.base_offset for segment in segments],
        [fact for segment in segments for fact in facts(segment.open_file().pread(segment.look(), 0))],
        [entry[:3] for segment in segments for entry in segment.txns],
    )


@pytest.mark.parametrize("seed", range(STORIES))
def test_kafka_s_cleaner_leaves_the_same(kafka: Kafka, tmp_path: Path, seed: int) -> None:
    story, dice = Story(tmp_path), random.Random(seed)
    compactions = 0
    for _ in range(ACTIONS):
        kind, codec = dice.random(), dice.choice(list(Compression))
        if kind < 0.4:
            story.put(items(dice), dice.choice([-1, 10, 11]), codec)
        elif kind < 0.65:
            story.txn(items(dice), dice.choice([20, 21]), codec)
        elif kind < 0.88:
            story.end(dice.choice([20, 21]), dice.random() < 0.5, None)
        elif story.dirty < story.world.upper:  # else Kafka does nothing
            story.now += dice.choice([0, 1000, DAY // 2, DAY])
            theirs, ours = kafka.clean(story), clean(story)
            assert ours == theirs
            story.dirty = ours.end_offset
            compactions += 1
    assert compactions


def items(dice: random.Random) -> list[tuple[int, bytes | None, int]]:
    """A few keys, a quarter of them tombstones."""
    return [
        (
            dice.randrange(7),
            None if dice.random() < 0.25 else dice.randbytes(dice.randrange(1, 60)),
            dice.randrange(1000),
        )
        for _ in range(dice.randrange(1, 7))
    ]
