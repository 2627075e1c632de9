"""WAIT UNTIL: a pull query waits until the queries that fill its tables have come far enough, so that it reads its own
writes.

Queries are looked at in the order in which records pass through them. One has come far enough if its consumer group
has the offset, or if it runs here and has written what follows from it; then what it wrote is what the next one needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from moldau.sql.analysis.expansion import expand
from moldau.sql.errors import SqlError
from moldau.sql.lowering import application_id
from moldau.sql.moments import Wait
from moldau.sql.server.describing import query_errors
from moldau.sql.server.errors import ASSERTION_FAILED, ServerError
from moldau.sql.server.topics import Positions
from moldau.sql.steps import QueryPlan
from moldau.sql.transient.pull import check_clauses
from moldau.sql.tree import Query, Table, walk

if TYPE_CHECKING:
    from moldau.sql.server.service import Service

DEFAULT_MS, MOST_MS = 10_000, 60_000
LOOK_S = 0.05  # between two looks at how far a query has come


def caught_up(service: Service, query: Query) -> Query:
    """Wait for what a query wants to wait for, and return it without that clause."""
    if query.wait is None:
        return query
    plain = replace(query, wait=None)
    with service.lock:
        expanded = expand(plain, service.engine.catalogue)
    check_clauses(expanded)  # what will be refused need not wait
    tables = [node.name for node in walk(expanded) if isinstance(node, Table)]
    wait_until(service, tables, query.wait)
    return plain


def wait_until(service: Service, tables: list[str], wait: Wait) -> None:
    """Wait until tables reflect an offset of one of their sources, or all that their sources have now."""
    limit_ms = min(DEFAULT_MS if wait.timeout_ms is None else wait.timeout_ms, MOST_MS)
    deadline = time.monotonic() + limit_ms / 1000
    with service.lock:
        plans = list({plan.query_id: plan for table in tables for plan in filling(service, table, set())}.values())
        topics = {name: source.topic for name, source in service.engine.catalogue.sources.items()}
        reflecting = set(topics) if wait.source is None else {service.engine.catalogue.source(wait.source).name}
    given: dict[str, Positions] = {}
    if wait.source is not None:
        topic = topics[wait.source]
        given[topic] = _position(service, topic, wait)
        while not _is_at(service.topics.ends(topic), given[topic]):
            _pause(deadline, f"{wait.source} has no record at the offset {wait.offset}")
    for plan in plans:
        read = [topics[name] for name in plan.sources if name in reflecting]
        wanted = {topic: given.get(topic) or service.topics.ends(topic) for topic in read}
        while not _has_read(service, plan, wanted):
            _pause(deadline, f"The query {plan.query_id} has not come so far")
        reflecting |= {plan.sink.name} if read else set()
    for table in tables:
        if table not in reflecting:
            raise SqlError(f"WAIT UNTIL names {wait.source}, and {table} is not made from it.")


def _position(service: Service, topic: str, wait: Wait) -> Positions:
    """Return the position after the record that is waited for."""
    count = service.topics.partitions(topic)
    if wait.partition is None and count != 1:
        raise SqlError(f"{wait.source} has {count} partitions: say which, as in {wait.source} PARTITION 0 OFFSET 0.")
    partition = wait.partition or 0
    if partition >= count:
        raise SqlError(f"{wait.source} has {count} partitions, and none with the number {partition}.")
    return {partition: wait.offset + 1}


def _pause(deadline: float, why: str) -> None:
    if time.monotonic() >= deadline:
        raise ServerError(ASSERTION_FAILED, f"{why} within the time (WAIT UNTIL ... TIMEOUT).")
    time.sleep(LOOK_S)


def _has_read(service: Service, plan: QueryPlan, wanted: dict[str, Positions]) -> bool:
    """Whether the results of all records up to these positions are written."""
    if plan.query_id in service.engine.paused:
        raise SqlError(f"The query {plan.query_id} is paused, so waiting for it would be in vain.")
    if failed := query_errors(service, plan):
        raise SqlError(f"The query {plan.query_id} has failed: {failed[0]['errorMessage']}")
    reached = _reached(service, plan) if wanted else {}
    return all(_is_at(reached.get(topic, {}), positions) for topic, positions in wanted.items())


def _reached(service: Service, plan: QueryPlan) -> dict[str, Positions]:
    running = service.running.get(plan.query_id)
    if running is not None:
        with running.lock:  # between two steps everything is written
            return running.reached()
    checkpoints = service.local.checkpoints
    return {} if checkpoints is None else checkpoints.load(application_id(plan, service.service_id))[1]


def _is_at(reached: Positions, wanted: Positions) -> bool:
    return all(reached.get(partition, 0) >= position for partition, position in wanted.items())


def filling(service: Service, name: str, seen: set[str]) -> Iterator[QueryPlan]:
    """Yield the queries by which a source is filled, those first that others read from."""
    for query_id, plan in service.engine.queries.items():
        if plan.sink.name == name and query_id not in seen:
            seen.add(query_id)
            for source in plan.sources:
                yield from filling(service, source, seen)
            yield plan
