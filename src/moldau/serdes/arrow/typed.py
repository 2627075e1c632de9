"""Values with a schema of the registry as Arrow columns: the part that is the same for all formats.

The columns are those of the reader's schema: the one that was given, or the latest of the subject when the first batch
came. It stays while the converter lives, so that every batch has the same columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from ..context import Context
from ..framing import SchemaRef, frame
from ..registry import Schema
from ..rules import READ, WRITE
from ..typed import Subjects
from .batch import Converted, Slices
from .groups import Group, convert

TypeOf = Callable[[Schema], pa.DataType]
Read = Callable[[Slices, Schema, Schema, SchemaRef], Converted]  # payloads, writer, reader, which message


@dataclass(slots=True)
class TypedColumns:
    subjects: Subjects
    type_of: TypeOf
    read: Read
    write: Callable[[pa.Array, Schema, Callable[[tuple[int, ...] | None], bytes]], Converted]
    indexes: bool = False
    readers: dict[str, Schema] = field(default_factory=dict)

    def reader(self, context: Context) -> Schema:
        subject = self.subjects.options.subject_of(context, self.subjects.name)
        if subject not in self.readers:
            own = self.subjects.reader(context, self.subjects.name)
            self.readers[subject] = own or self.subjects.registry.latest(subject, self.subjects.format).schema
        return self.readers[subject]

    def type(self, context: Context) -> pa.DataType:
        return self.type_of(self.reader(context))

    def to_arrow(self, values: pa.Array, context: Context, headers: pa.Array | None = None) -> Converted:
        """Convert framed values. `headers` has the header of each row that names its schema, if rows have such."""
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        reader = self.reader(context)

        def one(group: Group) -> Converted:
            writer = self.subjects.writer(group.ref, context)
            writer.rules.refuse_columns(READ)
            return self.read(group.payloads, writer, reader, group.ref)

        return convert(values, headers, self.type_of(reader), one, self.indexes)

    def from_arrow(self, values: pa.Array | pa.RecordBatch, context: Context) -> Converted:
        """Write framed values. With the schema in the header, `context` gets the header, which is the same for all."""
        if isinstance(values, pa.RecordBatch):
            values = values.to_struct_array()
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        written = self.subjects.to_write(context)
        written.schema.rules.refuse_columns(WRITE)

        def head(indexes: tuple[int, ...] | None) -> bytes:
            ref = SchemaRef(written.ref.id, written.ref.guid, indexes)
            return frame(ref, b"", context, in_header=self.subjects.options.in_header)

        return self.write(values, written.schema, head)
