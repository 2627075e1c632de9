"""docs/streams-judge.md, made of the outcomes of a long run; and its part on a broker, of another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.streams.judge.trial import Outcome

PAGE = Path(__file__).resolve().parents[3] / "docs" / "streams-judge.md"
HEAD = """# Streams beside Kafka Streams

Made by `make judge`: each topology is built twice, in Moldau's DSL and in Java on Kafka Streams 4.3.1, and both test
drivers get the same random input: few keys, time that goes back and forth, nulls, tombstones, late records, headers.
After each record all that was made is compared byte for byte: sinks, repartition topics and changelogs, with
timestamps and headers, in the order within a topic; at the end the contents of all stores; once the text of
`describe()`. The cache is off, so every change is emitted. Stores are in memory in one half of the examples and on disk
in the other, which differ in what has expired. `python -m tests.streams.judge --stores cached` runs with a cache.

What is Moldau's own and so not compared (`tests/streams/judge/internals.py`): the bytes in changelogs of buffers
(suppress, joins with grace), the hash in the topics of foreign-key joins, the frame of what joins keep. What differs
and stays so: a processor's `context.metadata` is None in punctuators, where Kafka gives a topic of null; a look-up in
a versioned store also tells until when the value was valid.

"""


LIVE = "\n## On a broker, with four partitions\n"
LIVE_HEAD = f"""{LIVE}
A test driver has one partition. So a third judge (`python -m tests.streams.judge.live`, part of `make judge`) lets
Kafka Streams 4.3.1 itself run topologies on a broker, and Moldau on Spark on another with the same records: topics of
four partitions, keys that producers with different partitioners put into different ones, null keys, partitions of very
different sizes, one of them late. Output is compared partition by partition. *ordered*: everything with timestamps, and
of a key that is in one partition in order; *set*: keys and values in any order, because behind a change of key Kafka's
tasks take turns as they like; *latest*: the last value of each key. Records without a key are compared over all
partitions: a producer puts them anywhere.

"""


def write_live(rows: Sequence[tuple[str, str, int, int, str]]) -> None:
    """The part on a broker: topology, how it was compared, records in and out, the difference."""
    table = "| topology | compared | records in | out | differences |\n|---|---|---|---|---|\n"
    table += "".join(f"| `{n}` | {how} | {i:,} | {o:,} | {diff or 'none'} |\n" for n, how, i, o, diff in rows)
    PAGE.write_text(PAGE.read_text().partition(LIVE)[0] + LIVE_HEAD + table)


def write(outcomes: Sequence[Outcome]) -> None:
    examples = sum(outcome.examples for outcome in outcomes)
    different = [outcome for outcome in outcomes if outcome.difference]
    summary = f"{len(outcomes)} topologies, {examples:,} examples, {len(different)} topologies that differ.\n\n"
    rows = [f"| `{one.topology}` | {one.examples:,} | {'yes' if one.difference else 'none'} |" for one in outcomes]
    table = "| topology | examples | differences |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    found = "".join(f"\n## {one.topology}\n\n```text\n{one.difference}\n```\n" for one in different)
    live = "".join(PAGE.read_text().partition(LIVE)[1:]) if PAGE.exists() else ""
    PAGE.write_text(HEAD + summary + table + found + live)
