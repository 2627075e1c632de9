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
        """Return the columns. `load()` asks for them, so this is where a user learns of wrong options."""
        return self._source(None)[1].spark_schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from moldau.spark.source.readers import StreamSource

        return StreamSource(*self._source(True, schema))

    def reader(self, schema: StructType) -> DataSourceReader:
        from moldau.spark.source.readers import BatchSource

        return BatchSource(*self._source(False, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from moldau.spark.sink.writers import StreamSink

        return StreamSink(self.options, schema, overwrite)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from moldau.spark.sink.writers import BatchSink

        return BatchSink(self.options, schema, overwrite)

    def _source(self, streaming: bool | None, schema: StructType | None = None) -> tuple[SourceOptions, Columns]:
        """Return the options and the columns of a source; OptionError where a user has named other columns."""
        from moldau.spark.options import OptionError
        from moldau.spark.source.options import SourceOptions
        from moldau.spark.source.readers import columns_of

        options = SourceOptions.of(self.options, streaming=streaming)
        if self.columns is None:
            self.columns = columns_of(options)
        if schema is not None and schema != self.columns.spark_schema():
            raise OptionError("The columns of this source are not a matter of choice: leave out schema(...).")
        return options, self.columns
