"""The data source "moldau" as Spark knows it: its readers and writers, each imported when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from moldau.spark.source.columns import Columns
    from moldau.spark.source.options import SourceOptions


class TopicDataSource(DataSource):
    """`format("moldau")`. Spark pickles it after `schema()`: schemas of the registry are looked up once."""

    columns: Columns | None = None

    @classmethod
    def name(cls) -> str:
        return "moldau"

    def schema(self) -> StructType:
        """The columns. A user whose options are wrong learns it here: `load()` asks for them."""
        from moldau.spark.source.options import SourceOptions

        return self._columns(SourceOptions.of(self.options)).spark_schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.spark.source.options import SourceOptions
        from moldau.spark.source.readers import StreamSource

        options = SourceOptions.of(self.options, streaming=True)
        return StreamSource(options, self._checked(options, schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.spark.source.options import SourceOptions
        from moldau.spark.source.readers import BatchSource

        options = SourceOptions.of(self.options, streaming=False)
        return BatchSource(options, self._checked(options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.spark.sink.writers import StreamSink

        return StreamSink(self.options, schema, overwrite)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.spark.sink.writers import BatchSink

        return BatchSink(self.options, schema, overwrite)

    def _columns(self, options: SourceOptions) -> Columns:
        from moldau.spark.source.readers import columns_of

        if self.columns is None:
            self.columns = columns_of(options)
        return self.columns

    def _checked(self, options: SourceOptions, schema: StructType) -> Columns:
        from moldau.spark.options import OptionError

        columns = self._columns(options)
        if schema != columns.spark_schema():
            raise OptionError("The columns of this source are not a matter of choice: leave out schema(...).")
        return columns
