"""The moments that pull queries may name, beyond ksqlDB: AS OF one in the past, WAIT UNTIL one in the future."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AsOf:
    """AS OF TIMESTAMP, in milliseconds or as a text; or AS OF OFFSET, the last one of each partition."""

    timestamp: int | str | None = None
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """WAIT UNTIL the table has what its sources have now (LATEST, `source` is None), or one record of a source."""

    source: str | None = None
    partition: int | None = None
    offset: int = 0
    timeout_ms: int | None = None
