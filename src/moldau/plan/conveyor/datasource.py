"""The data source at both ends of a conveyor. It is not for users: its rows are blobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, DataSourceStreamWriter
from pyspark.sql.types import StructType

from .rows import COLUMNS

if TYPE_CHECKING:
    from .source import PackedSource

FORMAT = "moldau-conveyor"
OWN = "conveyor."
S = TypeVar("S", bound="PackedSource")


class ConveyorDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from .source import PackedSource

        return source_of(dict(self.options.items()), PackedSource)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from .sink import PackedSink

        return PackedSink(self.options, schema, overwrite)


def source_of(given: Mapping[str, str], kind: type[S]) -> S:
    """Make a source of a kind from the options of the data source."""
    from moldau.spark.source.options import SourceOptions
    from moldau.spark.source.readers import columns_of

    options = SourceOptions.of({n: text for n, text in given.items() if not n.startswith(OWN)}, streaming=True)
    own = {name: text for name, text in given.items() if name.startswith(OWN)}
    return kind(options, columns_of(options), own)
