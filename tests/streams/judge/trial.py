"""A trial of a topology: random cases until one differs, then the smallest such case."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings

from tests.streams.judge import ours
from tests.streams.judge.case import Case
from tests.streams.judge.compare import described, difference
from tests.streams.judge.inputs import cases
from tests.streams.judge.jvm import Kafka

STORES = "dsl.store.suppliers.class"
SUPPLIERS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$"
IN_MEMORY = {STORES: f"{SUPPLIERS}InMemoryDslStoreSuppliers"}
ON_DISK = {STORES: f"{SUPPLIERS}RocksDBDslStoreSuppliers"}
CACHED = {**IN_MEMORY, "statestore.cache.max.bytes": "10000000"}
CLOCK = ("punctuate_wall_clock",)
TOPICS = ("in", "left", "right")


@dataclass(frozen=True, slots=True)
class Outcome:
    topology: str
    examples: int
    seconds: float
    difference: str = ""


def differs(kafka: Kafka, case: Case) -> str:
    return difference(case, kafka.answer(case), ours.answer(case))


def described_otherwise(kafka: Kafka, topology: str) -> str:
    case = Case(topology, ())
    return described(kafka.answer(case), ours.answer(case))


@cache
def inputs(text: str) -> Sequence[str]:
    """The topics that a topology reads, by its describe()."""
    read = set(re.findall(r"\w+", " ".join(re.findall(r"topics: (\S+)", text))))
    return [topic for topic in TOPICS if topic in read]


def trial(
    kafka: Kafka, topology: str, examples: int, stores: Sequence[Mapping[str, str]], start: int | None = None
) -> Outcome:
    """As many examples as asked for; with `start` always the same ones."""
    ran, began = 0, time.monotonic()
    topics = inputs(kafka.answer(Case(topology, ())).describe)

    def check(case: Case) -> None:
        nonlocal ran
        ran += 1
        found = differs(kafka, case)
        assert not found, found

    run: Callable[[], None] = hypothesis_settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )(given(cases(topology, topics, stores, topology in CLOCK))(check))
    if start is not None:
        run = seed(start)(run)
    found = ""
    try:
        run()
    except AssertionError as error:
        found = str(error)
    return Outcome(topology, ran, time.monotonic() - began, found)
