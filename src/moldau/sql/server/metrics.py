"""The metrics of a server, as rows: queries, what they have processed, how far behind they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from moldau.http.metrics import Row, Values, page
from moldau.sql.server.describing import query_errors

if TYPE_CHECKING:
    from moldau.sql.server.service import Service

QUERY = ("query",)


def _rows(service: Service) -> Values:
    return [((query_id,), float(query.rows)) for query_id, query in service.running.items()]


def _errors(service: Service) -> Values:
    return [((name,), float(bool(query_errors(service, plan)))) for name, plan in service.engine.queries.items()]


def _paused(service: Service) -> Values:
    return [((query_id,), float(query_id in service.engine.paused)) for query_id in service.engine.queries]


def _lag(service: Service) -> Iterator[tuple[tuple[str, ...], float]]:
    for query_id, query in service.running.items():
        behind = 0
        for topic, positions in query.positions.items():
            ends = service.topics.ends(topic)
            behind += sum(max(0, end - positions.get(partition, 0)) for partition, end in ends.items())
        yield (query_id,), float(behind)


TABLE: tuple[Row[Service], ...] = (
    Row("moldau_sql_query_rows", "Records that a query has read in this process.", QUERY, _rows, is_counter=True),
    Row("moldau_sql_query_failed", "1 if a query has failed and stopped.", QUERY, _errors),
    Row("moldau_sql_query_paused", "1 if a query is paused.", QUERY, _paused),
    Row("moldau_sql_query_lag_records", "Records in a query's topics that it has not read yet.", QUERY, _lag),
    Row("moldau_sql_queries", "Persistent queries.", (), lambda s: [((), float(len(s.engine.queries)))]),
    Row("moldau_sql_push_queries", "Push queries that run now.", (), lambda s: [((), float(len(s.pushes)))]),
    Row("moldau_sql_pull_queries", "Pull queries under way.", (), lambda s: [((), float(s.admission.pulls))]),
    Row("moldau_sql_sources", "Streams and tables.", (), lambda s: [((), float(len(s.engine.catalogue.sources)))]),
)


def metrics(service: Service) -> bytes:
    """Return the page for Prometheus."""
    with service.lock:
        return page(TABLE, service)
