"""Cases of SQL on Spark beside the local runtime: the same records in the same order must give the same results.

`python -m tests.spark.sql_cases [--cases N] [PATH...]`. The queries of all cases run at once, on a worker and a broker,
with topics of four partitions; the worker is killed while it works. A record is written when everything before it has
been processed, as the local runtime does it. Tables must be equal and, for each key, streams.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from moldau.admin import groups, topics
from moldau.client import Client, Fetcher, Record, build, records
from moldau.flows.lanes import MOST_STEPS
from moldau.operators.record import Produced
from moldau.sql.cases.files import Case, NotCases, read_file
from moldau.sql.cases.running import queries_of, records_of
from moldau.sql.errors import SqlError
from moldau.sql.lowering import application_id
from moldau.sql.lowering import build as lowered
from moldau.sql.lowering.levels import levels_of
from moldau.sql.plan_json import CLASS, decoded, encoded
from moldau.sql.server.command_topic import CommandTopic
from moldau.sql.server.commands import BEFORE_ALL, Command, Executed, Plan
from moldau.sql.server.local import LocalQueries
from moldau.sql.server.planning import check
from moldau.sql.server.topics import MemoryTopics, place
from moldau.sql.steps import Planned, QueryPlan, Run
from moldau.testing import broker
from moldau.topicstore import append
from tests.spark.chaos import Driver
from tests.spark.chaos_flows import SPARK

PARTITIONS = 4
MOST_INPUTS = 12  # of a case
APART, MOST_APART = "apart", 2  # cases whose queries need Spark queries of their own, which take much memory
WAIT_S = 600.0
OWN = Path(__file__).parents[1] / "sql" / "cases"
FOREVER = {"retention.ms": "-1"}  # the times of cases are long past
# With four partitions each has a time of its own, and the local runtime has one for all of them.
BY_TIME = ("GRACE", "EMIT FINAL", "RETENTION", "HISTORY='1 SECOND'")
REGISTERED = ("AVRO", "PROTOBUF", "JSON_SR", "SCHEMA_ID")
STEPS = (
    "Read", "Filter", "Select", "FlatMap", "SelectKey", "GroupBy", "Aggregate", "StreamStreamJoin", "StreamTableJoin",
    "TableTableJoin",
)  # fmt: skip


@dataclass(slots=True)
class Compared:
    """A case with topics of its own: its queries, its records, and what the local runtime makes of them."""

    case: Case
    plans: list[QueryPlan]
    inputs: list[Produced]
    judge: MemoryTopics = field(default_factory=lambda: MemoryTopics(PARTITIONS))

    @property
    def name(self) -> str:
        return f"{self.case.file}: {self.case.name}"

    @property
    def steps(self) -> set[str]:
        return {kind for plan in self.plans for kind in kinds_of(encoded(plan.step))}

    @property
    def is_apart(self) -> bool:
        """Whether a query needs a Spark query of its own."""
        return any(plan.run.levels is None or plan.run.levels > MOST_STEPS for plan in self.plans)

    @property
    def sinks(self) -> dict[str, bool]:
        """The topics that are written, and whether they are tables."""
        return {plan.sink.topic: plan.sink.kind == "TABLE" for plan in self.plans}

    @property
    def topics(self) -> set[str]:
        return {*self.sinks, *(topic for plan in self.plans for topic in read_by(encoded(plan.step)))}

    def work(self) -> None:
        """Let the local runtime process the records one by one."""
        for topic in self.topics:
            self.judge.create(topic, PARTITIONS, 1, {})
        queries = LocalQueries(self.judge, None, None, "")
        queries.follow({plan.query_id: plan for plan in self.plans}, ())
        for record in self.inputs:
            self.judge.append([record])
            while queries.work():
                pass
        failed = [query.error for query in queries.running.values() if query.error]
        queries.follow({}, ())
        assert not failed, f"{self.name}: {failed}"

    def differences(self, found: dict[str, list[tuple[bytes | None, bytes | None, int]]]) -> list[str]:
        wrong: list[str] = []
        for topic, is_table in self.sinks.items():
            wanted = by_key([(r.key, r.value, r.timestamp) for r in self.judge.read(topic, {})], is_table)
            actual = by_key(found[topic], is_table)
            wrong += [
                f"{self.name}: {topic} has {actual.get(key)} for {key!r} instead of {wanted.get(key)}"
                for key in {*wanted, *actual}
                if wanted.get(key) != actual.get(key)
            ]
        return wrong


def by_key(rows: Sequence[tuple[bytes | None, bytes | None, int]], is_table: bool) -> dict[bytes | None, list[Any]]:
    """The records of each key, of tables the last one; those without a key have no order."""
    found: dict[bytes | None, list[Any]] = {}
    for key, value, timestamp in rows:
        found.setdefault(key, []).append((value, timestamp))
    return {
        key: sorted(some, key=str) if key is None else some[-1:] if is_table else some for key, some in found.items()
    }


def nodes(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        yield document
        document = list(document.values())
    if isinstance(document, list):
        for item in document:
            yield from nodes(item)


def kinds_of(step: Any) -> set[str]:
    return {node[CLASS] for node in nodes(step) if node.get(CLASS) in STEPS}


def read_by(step: Any) -> set[str]:
    return {node["topic"] for node in nodes(step) if node.get(CLASS) == "Source"}


def prefixed(plan: QueryPlan, prefix: str, number: int) -> QueryPlan:
    """Give a query topics and an id of its own."""
    document = encoded(plan)
    for node in nodes(document):
        if node.get(CLASS) == "Source":
            node["topic"] = prefix + node["topic"]
    made: QueryPlan = decoded(document)
    return replace(made, query_id=f"{made.query_id.rpartition('_')[0]}_{number}")


def candidates(paths: Sequence[Path]) -> Iterator[Case]:
    """The cases of files that can be compared."""
    for path in paths:
        for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
            try:
                cases = read_file(file)
            except NotCases:
                continue
            for case in cases:
                is_odd = any(word in case.text.upper() for word in BY_TIME + REGISTERED)
                is_odd |= any(record.get("window") for record in case.inputs)
                if case.expected is None and case.outputs and 0 < len(case.inputs) <= MOST_INPUTS and not is_odd:
                    yield case


def prepared(case: Case, prefix: str, first: int) -> Compared | None:
    """Return a case with topics of its own, whose queries are numbered; None if it needs what workers do not have."""
    try:
        plans, _ = queries_of(case)
        if not plans:
            return None
        inputs = [replace_topic(record, prefix) for record in records_of(case)]
        made = [prefixed(plan, prefix, first + at) for at, plan in enumerate(plans)]
        for plan in made:
            check(plan, "")
        made = [replace(plan, run=Run("spark", True, levels_of(lowered(plan), lambda _: PARTITIONS))) for plan in made]
    except SqlError:
        return None
    return Compared(case, made, inputs)


def replace_topic(record: Produced, prefix: str) -> Produced:
    made = record._replace(topic=prefix + record.topic)
    return made._replace(partition=0 if made.key is None else place(made, PARTITIONS))


def chosen(paths: Sequence[Path], count: int) -> list[Compared]:
    """So many cases: those first that have a kind of step that others do not have."""
    found: list[Compared] = []
    seen: Counter[str] = Counter()
    waiting = list(candidates(paths))
    waiting = waiting[:: max(1, len(waiting) // (8 * count))]
    first = 0
    for number, case in enumerate(waiting):
        made = prepared(case, f"case{number}.", first)
        if made is None or (made.is_apart and seen[APART] >= MOST_APART):
            continue
        if min(seen[step] for step in made.steps) < max(2, count // 4):
            made.work()
            found.append(made)
            seen.update([*made.steps, *([APART] if made.is_apart else [])])
            first += len(made.plans)
        if len(found) == count:
            break
    return found


def covering(paths: Sequence[Path], prefix: str) -> list[Compared]:
    """A few cases that have every kind of step, with some records each, but not many."""
    found: list[Compared] = []
    first = 0
    for number, case in enumerate(sorted(candidates(paths), key=lambda case: abs(len(case.inputs) - 4))):
        made = prepared(case, f"{prefix}{number}.", first)
        if made is not None and made.steps - {step for one in found for step in one.steps}:
            made.work()
            found.append(made)
            first += len(made.plans)
    return found


class Live:
    """The same cases on a broker, whose queries workers run."""

    def __init__(self, client: Client, cases: list[Compared], service_id: str) -> None:
        self.client, self.cases, self.service_id = client, cases, service_id
        new = [topics.NewTopic(topic, PARTITIONS, 1, FOREVER) for case in cases for topic in sorted(case.topics)]
        topics.create(client, new)
        CommandTopic(client, service_id, 1, lambda number, _: Executed(number, ""))
        last = BEFORE_ALL
        for plan in (plan for case in cases for plan in case.plans):
            bare = replace(plan, query_id=plan.query_id.rpartition("_")[0])
            command = Command("stream/X/create", plan.text, {}, Plan(Planned(query=bare), last))
            topic = f"_confluent-ksql-{service_id}_command_topic"
            last, _ = append(client, topic, 0, build([Record(0, 0, command.key(), command.value())]))
            assert f"_{last}" == plan.query_id[plan.query_id.rindex("_") :], "ids go by the places of commands"

    def feed(self, settled: Callable[[], None], meanwhile: Callable[[int], None] = lambda _: None) -> None:
        """Write the records of all cases side by side; each case waits for its own."""
        for turn in range(max(len(case.inputs) for case in self.cases)):
            for case in self.cases:
                for record in case.inputs[turn : turn + 1]:
                    row = Record(0, record.timestamp, record.key, record.value, record.headers)
                    append(self.client, record.topic, record.partition or 0, build([row]))
            meanwhile(turn)
            self.settle(settled)

    def settle(self, settled: Callable[[], None]) -> None:
        """Wait until all queries have read all that is there; who reads what others write waits for those."""
        deadline = time.monotonic() + WAIT_S
        for plan in (plan for case in self.cases for plan in case.plans):  # in the order in which they depend
            while late := self.late(plan):
                settled()
                assert time.monotonic() < deadline, f"{plan.query_id} has not read {late}: {plan.text}"
                time.sleep(0.1)

    def late(self, plan: QueryPlan) -> list[str]:
        """The partitions that a query has not read to their ends."""
        read = [(topic, part) for topic in read_by(encoded(plan.step)) for part in range(PARTITIONS)]
        done = groups.committed(self.client, application_id(plan, self.service_id))
        return [
            f"{topic}-{part}"
            for topic, part in read
            if (self.rows(topic, part)[1] and (topic, part) not in done)
            or ((topic, part) in done and done[topic, part].offset < self.rows(topic, part)[1])
        ]

    def rows(self, topic: str, part: int) -> tuple[list[tuple[bytes | None, bytes | None, int]], int]:
        """All committed records of a partition, and the offset after the last of them."""
        fetcher, offset, end, found = Fetcher(self.client, isolation_level="read_committed"), 0, 0, []
        while True:
            got = fetcher.fetch({(topic, part): offset}, max_wait_ms=0)[topic, part]
            for batch in got.committed():
                for one in records(batch):
                    found.append((one.key, one.value, one.timestamp))
                    end = one.offset + 1
            offset = got.next_offset(offset)
            if offset >= got.last_stable_offset:
                return found, end

    def differences(self) -> list[str]:
        wrong: list[str] = []
        for case in self.cases:
            found = {topic: [row for p in range(PARTITIONS) for row in self.rows(topic, p)[0]] for topic in case.sinks}
            wrong += case.differences(found)
        return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.spark.sql_cases", description=__doc__)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--json", type=Path)
    parser.add_argument("paths", type=Path, nargs="*", default=[OWN])
    given, folder = parser.parse_args(), Path(tempfile.mkdtemp(prefix="moldau-cases-"))
    cases = chosen(given.paths, given.cases)
    steps = Counter(step for case in cases for step in case.steps)
    queries = sum(len(case.plans) for case in cases)
    print(f"{len(cases)} cases with {queries} queries: {dict(steps)}", flush=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = stack.enter_context(broker()).bootstrap_servers
        client = stack.enter_context(Client({"bootstrap.servers": servers}))
        live = Live(client, cases, "cases_")
        line = ("moldau", "worker", "-b", servers, "--state-dir", str(folder / "state"), *SPARK)
        worker = Driver(str(folder), *line)
        stack.callback(worker.stop)

        def kill(turn: int) -> None:
            """Kill the worker, with all that it has started, while it works on the second records."""
            print(f"{time.monotonic() - began:5.0f} s  records {turn} are written", flush=True)
            if turn == 1:
                time.sleep(0.5)
                worker.restart()
                print("the worker was killed, and another one started", flush=True)

        began = time.monotonic()
        try:
            live.feed(worker.check, kill)
        except AssertionError:
            print(worker.tail())
            raise
        wrong = live.differences()
        print(*wrong, f"{len(wrong)} differences in {len(cases)} cases, {queries} queries", sep="\n")
        if given.json:
            given.json.write_text(json.dumps({"cases": [case.name for case in cases], "wrong": wrong}))
    return bool(wrong) or len(cases) < given.cases or set(steps) < set(STEPS)


if __name__ == "__main__":
    sys.exit(main())
