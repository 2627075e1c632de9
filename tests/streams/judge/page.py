"""docs/streams-judge.md, made of the outcomes of a long run."""

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


def write(outcomes: Sequence[Outcome]) -> None:
    examples = sum(outcome.examples for outcome in outcomes)
    different = [outcome for outcome in outcomes if outcome.difference]
    summary = f"{len(outcomes)} topologies, {examples:,} examples, {len(different)} topologies that differ.\n\n"
    rows = [f"| `{one.topology}` | {one.examples:,} | {'yes' if one.difference else 'none'} |" for one in outcomes]
    table = "| topology | examples | differences |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    found = "".join(f"\n## {one.topology}\n\n```text\n{one.difference}\n```\n" for one in different)
    PAGE.write_text(HEAD + summary + table + found)
