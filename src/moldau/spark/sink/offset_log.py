"""Reads the end offsets of a batch from the offset log in a query's checkpoint, because Spark does not tell a sink.

The log has a file for each batch, written before the batch runs: a line with the version, one with settings, and one
for each source.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

LARGEST = 16 << 20
NONE = "-"  # a source that has nothing in this batch


def end_offsets(checkpoint: str | None, batch: int) -> tuple[str | None, ...]:
    """Return the JSON of each source, or nothing where the checkpoint cannot be read from here."""
    if checkpoint is None:
        return ()
    try:
        return parse(content(checkpoint.rstrip("/") + f"/offsets/{batch}").decode())
    except (OSError, ValueError):  # pyarrow's errors are one or the other
        return ()


def content(place: str) -> bytes:
    """Read a file. Hadoop writes a local path as `file:/a/b`, which no other reader understands."""
    parts = urlsplit(place)
    if parts.scheme in ("", "file"):
        with open(unquote(parts.path) if parts.scheme else place, "rb") as file:
            return file.read(LARGEST)
    import pyarrow.fs

    system, path = pyarrow.fs.FileSystem.from_uri(place)
    with system.open_input_stream(path) as stream:
        return stream.read(LARGEST)


def parse(text: str) -> tuple[str | None, ...]:
    version, _, rest = text.partition("\n")
    if version.strip() != "v1":
        return ()
    _settings, *sources = rest.splitlines()
    return tuple(None if line == NONE else line for line in sources)
