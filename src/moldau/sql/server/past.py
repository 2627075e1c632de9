"""Tables as they were: AS OF in pull queries.

The topic of a table has its changes. The table as of a time is made of the records up to that time, in the order of
the topic; as of offsets, of the records up to them. Where records have been compacted away or deleted, the past cannot
be told any more: then the query is refused, unless it asks for what is the present in that partition, or for a moment
that is younger than `min.compaction.lag.ms`. What is compacted away is older than that, and so is what took its place:
the cleaner stops at the first segment with a record that is younger.
"""

from __future__ import annotations

from typing import Any

from moldau.operators.record import Raw
from moldau.sql import casts
from moldau.sql.catalogue import Source
from moldau.sql.errors import SqlError
from moldau.sql.moments import AsOf
from moldau.sql.server.materialized import View
from moldau.sql.server.topics import Positions, Topics


def view_as_of(source: Source, moment: AsOf, topics: Topics, registry: Any, now_ms: int) -> View:
    """Return the rows that a table had."""
    timestamp = timestamp_of(moment)
    ends = topics.ends(source.topic)
    if timestamp is None and len(moment.offsets) != len(ends):
        raise SqlError(
            f"AS OF OFFSET names an offset of each partition, and the topic of {source.name} has {len(ends)}: "
            f"({', '.join(f'offset of {partition}' for partition in sorted(ends))})."
        )
    view = View(source, registry)
    position = dict(topics.starts(source.topic))
    deleted = {partition for partition, start in position.items() if start > 0}
    gaps: Positions = {}
    later: dict[int, int] = {}  # the time of the first record that is left out

    def is_later(raw: Raw) -> bool:
        return raw.offset > moment.offsets[raw.partition] if timestamp is None else raw.timestamp > timestamp

    while any(position.get(partition, 0) < end for partition, end in ends.items()):
        before = dict(position)
        found, missing = topics.read_closely(source.topic, position)
        for partition, offset in missing.items():
            gaps.setdefault(partition, offset)
        for raw in found:
            position[raw.partition] = raw.offset + 1
            if is_later(raw):
                later.setdefault(raw.partition, raw.timestamp)
            else:
                view.apply(raw)
        if position == before:
            break  # the topic was deleted, or made anew
    for partition, at_ms in sorted(later.items()):
        horizon_ms = at_ms if timestamp is None else timestamp
        if partition in deleted or (
            _is_touched(gaps.get(partition), moment, partition)
            and horizon_ms < now_ms - topics.uncompacted_ms(source.topic)
        ):
            raise SqlError(
                f"The past of {source.name} is not known any more: records of partition {partition} of its topic "
                f"{source.topic} have been compacted away or deleted. The topic's min.compaction.lag.ms and "
                "retention.ms say how long they are kept."
            )
    return view


def _is_touched(gap: int | None, moment: AsOf, partition: int) -> bool:
    """Whether records up to the moment may be missing: after a time any may, after an offset only those before it."""
    return gap is not None and (moment.timestamp is not None or gap <= moment.offsets[partition])


def timestamp_of(moment: AsOf) -> int | None:
    """Return the time in milliseconds; None for offsets."""
    if not isinstance(moment.timestamp, str):
        return moment.timestamp
    try:
        return casts.text_to_timestamp(moment.timestamp)
    except ValueError:
        raise SqlError(f"AS OF TIMESTAMP '{moment.timestamp}' is not a time such as '2026-01-31T12:00:00'.") from None
