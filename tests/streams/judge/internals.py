"""Bytes of an application's own topics and stores that are Moldau's own, and so are left out when answers are compared.

What users read is compared whole: sinks, repartition topics, changelogs of tables and of processors' stores. Left out:
- changelogs of buffers (suppress, joins with grace): Kafka writes them at a commit, in an order of hashes;
- the hash of the left value in the topics of a foreign-key join: it is compared with itself only;
- how the values of records that wait in an outer join are listed (their keys and deletes are compared);
- stores that hold what a join needs, whose bytes have another frame in Kafka: their changelogs are compared, without
  the headers that these have in Kafka;
- with a cache, what stores hold at the end: Kafka's cache still shows what has expired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tests.streams.judge.case import Answer, Case, Made, Row

BUFFER = re.compile(r"(-KTABLE-SUPPRESS-STATE-STORE-\d+|-(late|few)-store|-Buffer)-changelog$")
SIDE_LOG = re.compile(r"((JOIN|OUTER)(THIS|OTHER)-\d+-store|-join-store)-changelog$")
JOIN_STORE = re.compile(r"(JOIN|OUTER)(THIS|OTHER|SHARED)-|-join-store$|FK-JOIN-SUBSCRIPTION|-subscription-store$")
HASH = b"<hash>"
KEPT = b"<records>"


def subscription(value: bytes) -> bytes:
    return value if value[0] & 0x80 else value[:2] + HASH + value[18:]


def response(value: bytes) -> bytes:
    return value if value[0] & 0x80 else value[:1] + HASH + value[17:]


def waiting(value: bytes) -> bytes:
    return KEPT


VALUES: Sequence[tuple[re.Pattern[str], Callable[[bytes], bytes]]] = (
    (re.compile(r"SUBSCRIPTION-RESPONSE|subscription-response"), response),
    (re.compile(r"FK-JOIN-SUBSCRIPTION|-subscription-(registration|store)"), subscription),
    (re.compile(r"OUTERSHARED|-shared-join-store"), waiting),
)


def comparable(answer: Answer, case: Case) -> Answer:
    """The answer without what is left out."""
    steps = [[shown(record) for record in step if not left_out(record)] for step in answer.steps]
    shows = case.settings.get("statestore.cache.max.bytes", "0") == "0"
    return replace(answer, steps=steps, stores=stores(answer.stores) if shows else {})


def left_out(record: Made) -> bool:
    return bool(BUFFER.search(record.topic))


def is_side(topic: str) -> bool:
    """Whether it is the changelog of what one side of a join of streams has seen."""
    return bool(SIDE_LOG.search(topic)) and not topic.endswith("-shared-join-store-changelog")


def shown(record: Made) -> Made:
    if is_side(record.topic):
        return replace(record, headers=())
    for pattern, change in VALUES:
        if pattern.search(record.topic):
            headers = () if record.topic.endswith("-changelog") else record.headers
            return replace(record, value=None if record.value is None else change(record.value), headers=headers)
    return record


def stores(given: Mapping[str, Sequence[Row]]) -> dict[str, Sequence[Row]]:
    return {name: rows for name, rows in given.items() if not JOIN_STORE.search(name)}
