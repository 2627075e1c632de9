"""Encode many records of one time at once, without headers, at half the cost of single ones: producers of lines."""

from moldau.wire.numbers import MOST_KEPT, zigzags
from moldau.wire.records.build import encode_record

AROUND = 32  # bytes, at most: lengths, time and offset of a record
Pair = tuple[bytes | None, bytes]

_as_text: list[str] = []


def encode_values(values: list[bytes]) -> bytes:
    """Records of these values, with no keys and no headers, all of one time. Varints are looked up."""
    longest = max(map(len, values)) + AROUND
    if max(longest, len(values)) >= MOST_KEPT:
        return b"".join([encode_record(delta, None, value) for delta, value in enumerate(values)])
    z = zigzags(max(longest, len(values)) + 1)
    return b"".join(
        [
            b"%b\0\0%b\1%b%b\0" % (z[4 + len(place) + len(size) + len(value)], place, size, value)
            for place, value in zip(z, values)  # noqa: B905  the table is longer
            for size in (z[len(value)],)
        ]
    )


def encode_lines(lines: list[str], mark: str) -> bytes:
    """Records of lines, with what stands in front of the mark as their keys; text, as it is quicker to put together."""
    longest = max(map(len, lines)) + AROUND
    if max(longest, len(lines)) >= MOST_KEPT:
        return b"".join([encode_record(delta, *_pair(line, mark)) for delta, line in enumerate(lines)])
    z = text_table(max(longest, len(lines)) + 1)
    return "".join(
        [
            f"{z[3 + len(place) + len(rest)]}\0\0{place}{rest}\0"
            for place, line in zip(z, lines)  # noqa: B905  the table is longer
            for key, marked, value in (line.partition(mark),)
            for rest in (f"{z[len(key)]}{key}{z[len(value)]}{value}" if marked else f"\1{z[len(line)]}{line}",)
        ]
    ).encode("latin-1")


def _pair(line: str, mark: str) -> Pair:
    key, marked, value = line.partition(mark)
    return (key.encode("latin-1"), value.encode("latin-1")) if marked else (None, line.encode("latin-1"))


def text_table(count: int) -> list[str]:
    """Return the same varints as characters of Latin-1."""
    _as_text.extend([varint.decode("latin-1") for varint in zigzags(count)[len(_as_text) :]])
    return _as_text
