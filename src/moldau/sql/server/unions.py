"""UNION ALL of push queries: the rows of all of them, as they come."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.sql.errors import SqlError
from moldau.sql.server.news import lowest
from moldau.sql.server.results import LIMIT_REACHED, ResultRow, Results


def together(parts: Sequence[Results], limit: int | None) -> Results:
    """Make one answer of several that have the same types."""
    first = parts[0]
    results = Results(first.query_id, first.columns, list)

    def close() -> None:
        results.done = True
        for part in parts:
            part.close()

    if any(part.types != first.types for part in parts):
        close()
        shown = "; ".join(part.schema for part in parts)
        raise SqlError(f"The queries of UNION ALL must have columns of the same types: {shown}")
    left = limit

    def poll() -> list[ResultRow]:
        nonlocal left
        found = [row for part in parts if not part.done for row in part.poll()]
        if left is not None:
            found = found[:left]
            left -= len(found)
            if left == 0:
                results.done, results.final = True, LIMIT_REACHED
        return found

    results.poll, results.close = poll, close
    results.positions = lambda: lowest([part.positions() for part in parts])
    return results
