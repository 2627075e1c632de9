"""The folder of an application, wherever Spark keeps its checkpoint: on this machine, in HDFS, in an object store.

It is accessed through Spark's own Hadoop file systems, so that a path means the same as for the checkpoint.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from moldau.spark.session.private import file_system
from moldau.spark.sink.offset_log import parse

from ..home import CHECKPOINT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFFSETS, COMMITS = f"{CHECKPOINT}/offsets", f"{CHECKPOINT}/commits"  # what each batch reads, and which are completed

METADATA = f"{CHECKPOINT}/metadata"


class Folder:
    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._files, self._path_of = file_system(spark, path)

    def has_batches(self) -> bool:
        """Return whether a batch was ever planned: then Spark continues from its checkpoint."""
        offsets = self._at(OFFSETS)
        return self._files.exists(offsets) and any(
            status.getPath().getName().isdigit() for status in self._files.listStatus(offsets)
        )

    def query_id(self) -> str | None:
        """Return the id of the query whose checkpoint this is."""
        found = self.read(METADATA)
        return None if found is None else str(found["id"])

    def drop_checkpoint(self) -> None:
        self._files.delete(self._at(CHECKPOINT), True)

    def remove(self, name: str) -> None:
        self._files.delete(self._at(name), False)

    def last_position(self) -> dict[str, Any] | None:
        """Return where the last completed batch has ended; None if there was none."""
        return self._end(COMMITS)

    def planned_position(self) -> dict[str, Any] | None:
        """Return where the last batch ends that was planned; None if there was none."""
        return self._end(OFFSETS)

    def _end(self, log: str) -> dict[str, Any] | None:
        """Return the end of the last batch of one of Spark's logs."""
        there = self._at(log)
        names = [one.getPath().getName() for one in self._files.listStatus(there)] if self._files.exists(there) else []
        batches = [int(name) for name in names if name.isdigit()]
        ends = parse(self._content(f"{OFFSETS}/{max(batches)}").decode()) if batches else ()
        return json.loads(ends[0]) if ends and ends[0] is not None else None

    def read(self, name: str) -> dict[str, Any] | None:
        return json.loads(self._content(name)) if self._files.exists(self._at(name)) else None

    def _content(self, name: str) -> bytes:
        stream = self._files.open(self._at(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Write a file as a whole or not at all."""
        path, fresh = self._at(name), self._at(f"{name}.new")
        stream = self._files.create(fresh, True)
        try:
            stream.write(json.dumps(content, indent=1).encode())
            stream.hsync()
        finally:
            stream.close()
        self._files.delete(path, False)
        if not self._files.rename(fresh, path):
            raise OSError(f"{fresh} cannot be renamed to {name}: is {self.path} writable?")

    def _at(self, name: str) -> Any:
        return self._path_of(f"{self.path}/{name}")
