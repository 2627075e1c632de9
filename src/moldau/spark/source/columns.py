"""The columns of the source: those of Spark's own Kafka source, with typed keys and values if the user wants.

Planning needs only this. `filling.py`, which fills the columns, imports compiled code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from moldau.spark.source.typed_options import Typed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from moldau.spark.source.typed import Pinned

RAW = (
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestampType", pa.int32()),
)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns, and how to handle records that do not fit them."""

    headers: bool
    typed: Typed
    pinned: tuple[Pinned, ...] = ()
    query: str = ""  # its name in dead letters

    def arrow_schema(self) -> pa.Schema:
        own = {one.name: one.arrow_type() for one in self.pinned}
        fields = [(name, own.get(name, type)) for name, type in RAW]
        more = [("headers", HEADERS)] if self.headers else []
        wrong = [(self.typed.corrupt_column, pa.binary())] if self.typed.corrupt_column else []
        return pa.schema([*fields, *more, *wrong])

    def spark_schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self.arrow_schema())
