# pyright: basic
"""Rows of a lane: those of a conveyor, and whose they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from ..conveyor.rows import ARROW, COLUMNS

LANE_COLUMNS = f"{COLUMNS}, flow int, parcel string, attempt int"
LANE_ARROW = pa.schema([*ARROW, ("flow", pa.int32()), ("parcel", pa.string()), ("attempt", pa.int32())])
CLEAR = -1  # as tick: the shard is to forget everything
WAKE = 0  # as tick: the shard is to look at what it holds


class Whose(NamedTuple):
    """What a row says of its flow."""

    flow: int
    parcel: str
    attempt: int


def tagged(batch: pa.RecordBatch, whose: Whose) -> pa.RecordBatch:
    more = [pa.array([value] * batch.num_rows, LANE_ARROW.field(name).type) for name, value in whose._asdict().items()]
    return pa.RecordBatch.from_arrays([*batch.columns, *more], schema=LANE_ARROW)


def whose(row: dict[Any, Any]) -> Whose:
    return Whose(int(row["flow"]), row["parcel"], int(row["attempt"]))
