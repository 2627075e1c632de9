"""What DESCRIBE ... EXTENDED adds: how far the queries of a source have come in each topic, and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.sql.lowering import application_id
from moldau.sql.server.topics import Positions
from moldau.sql.steps import QueryPlan

if TYPE_CHECKING:
    from moldau.sql.server.service import Service

Entity = dict[str, Any]


def offset_summaries(service: Service, query_ids: list[str]) -> list[Entity]:
    """Return the consumer group of each query, with the offsets of the topics that it reads."""
    found = []
    for query_id in query_ids:
        plan = service.engine.queries[query_id]
        group = application_id(plan, service.service_id)
        reached = _reached(service, query_id, group)
        topics = [
            {"kafkaTopic": topic, "offsets": _offsets(service, topic, reached[topic])} for topic in sorted(reached)
        ]
        found.append({"groupId": group, "topicSummaries": topics})
    return found


def _reached(service: Service, query_id: str, group: str) -> dict[str, Positions]:
    running = service.running.get(query_id)
    if running is not None:
        return running.reached()
    return {} if service.local.checkpoints is None else service.local.checkpoints.load(group)[1]


def _offsets(service: Service, topic: str, reached: Positions) -> list[Entity]:
    starts, ends = service.topics.starts(topic), service.topics.ends(topic)
    return [
        {
            "partition": partition,
            "logStartOffset": starts.get(partition, 0),
            "logEndOffset": ends[partition],
            "consumerOffset": reached.get(partition, 0),
        }
        for partition in sorted(ends)
    ]


def statistics(service: Service, query_ids: list[str]) -> str:
    """Say what the queries that write a source have read in this process."""
    rows = [(query_id, service.running[query_id].rows) for query_id in query_ids if query_id in service.running]
    return "\n".join(f"{query_id}: {count:>9} messages consumed" for query_id, count in rows)


def errors(service: Service, query_ids: list[str]) -> str:
    """Name the queries that have failed, with the reason."""
    failed = [(query_id, query_errors(service, service.engine.queries[query_id])) for query_id in query_ids]
    return "\n".join(f"{query_id}: {found[0]['errorMessage']}" for query_id, found in failed if found)


def query_errors(service: Service, plan: QueryPlan) -> list[Entity]:
    """Return the failure of a query as ksqlDB lists it: what was said of it before it was resumed does not count."""
    query = service.running.get(plan.query_id)
    if query is not None and query.error is not None:
        return [{"timestamp": query.failed_ms, "errorMessage": query.error, "type": "USER"}]
    said = service.states.of(application_id(plan, service.service_id))
    if said is None or said.state != "failed" or said.revision != revision_of(plan, service):
        return []
    return [{"timestamp": said.at_ms, "errorMessage": said.error or "", "type": "USER"}]


def revision_of(plan: QueryPlan, service: Service) -> int:
    """Return the revision of a query as a flow: how often it was changed, paused and resumed."""
    return plan.run.version + service.engine.turns.get(plan.query_id, 0)
