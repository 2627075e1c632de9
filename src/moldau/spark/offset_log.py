"""The offsets up to which a batch reads, out of the offset log that Spark keeps in a query's checkpoint.

A sink is not told them. The log has a file for each batch, written before the batch runs: a line with the version, one
with settings, and one for each source.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

LARGEST = 16 << 20
NONE = "-"  # a source that has nothing in this batch


def end_offsets(checkpoint: str | None, batch: int) -> tuple[str | None, ...]:
    """JSON of each source, or nothing where the checkpoint cannot be read from here."""
    if checkpoint is None:
        return ()
    try:
        system, path = place_of(checkpoint)
        with system.open_input_stream(f"{path.rstrip('/')}/offsets/{batch}") as stream:
            return parse(stream.read(LARGEST).decode())
    except (OSError, pa.ArrowException, UnicodeDecodeError):
        return ()


def place_of(checkpoint: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """Hadoop writes a local file as `file:/a/b`, which no other reader takes."""
    parts = urlsplit(checkpoint)
    if parts.scheme in ("", "file"):
        return pyarrow.fs.LocalFileSystem(), unquote(parts.path) if parts.scheme else checkpoint
    return pyarrow.fs.FileSystem.from_uri(checkpoint)


def parse(text: str) -> tuple[str | None, ...]:
    version, _, rest = text.partition("\n")
    if version.strip() != "v1":
        return ()
    _settings, *sources = rest.splitlines()
    return tuple(None if line == NONE else line for line in sources)
