"""The parser of the moments that pull queries may name (`moments.py`)."""

from __future__ import annotations

from moldau.sql.cursor import Cursor
from moldau.sql.expression_parser import span
from moldau.sql.moments import AsOf, Wait

UNIT_MS = {"MILLISECONDS": 1, "SECONDS": 1_000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}


def as_of(c: Cursor) -> AsOf | None:
    """Parse `AS OF TIMESTAMP t`, `AS OF OFFSET n` or `AS OF OFFSET (n, ...)`; None if there is no such clause.

    `t AS of` alone is an alias.
    """
    if c.takes("AS", "OF", "TIMESTAMP"):
        return AsOf(c.string() if c.now.kind == "string" else c.integer())
    if not c.takes("AS", "OF", "OFFSET"):
        return None
    if not c.takes("("):
        return AsOf(offsets=(c.integer(),))
    offsets = [c.integer()]
    while c.takes(","):
        offsets.append(c.integer())
    c.expect(")")
    return AsOf(offsets=tuple(offsets))


def wait(c: Cursor) -> Wait | None:
    """Parse `WAIT UNTIL LATEST | source [PARTITION p] OFFSET n [TIMEOUT span]`; None if there is no such clause."""
    if not c.takes("WAIT", "UNTIL"):
        return None
    source, partition, offset = None, None, 0
    is_named = c.ahead().value in ("PARTITION", "OFFSET")
    if is_named or not c.takes("LATEST"):
        source = c.name()
        partition = c.integer() if c.takes("PARTITION") else None
        c.expect("OFFSET")
        offset = c.integer()
    given = span(c) if c.takes("TIMEOUT") else None
    if given is not None and given.unit not in UNIT_MS:
        c.refuse(f"A timeout is given in {', '.join(UNIT_MS)}")
    return Wait(source, partition, offset, None if given is None else given.count * UNIT_MS[given.unit])
