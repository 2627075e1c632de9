"""The four codecs of record batches, in the framings that Kafka's clients write and read.

`decompress` never makes more than `limit` bytes, however little a bomb weighs: it decodes into a buffer of a fixed
size, and takes a larger one only while the limit allows it.

Two framings are made by hand. snappy comes raw (librdkafka) or in the blocks of Java's xerial stream, and is written
in the latter. An lz4 frame must have independent blocks, for Java reads no others, and the library's own frames do not.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct

import cramjam

from moldau.wire.errors import WireError

Buffer = bytes | bytearray | memoryview


class Compression(IntEnum):
    """What stands in the three lowest bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


FIRST_GUESS = 1 << 16
"""The smallest buffer that is tried; the next ones are four times as large."""

TOO_SMALL = "failed to write whole buffer"
"""How the library says that the buffer was; any other error is damage, for which no larger one is made."""

XERIAL = b"\x82SNAPPY\x00" + b"\x00\x00\x00\x01" * 2
XERIAL_BLOCK = 1 << 15
LZ4_HEADER = bytes.fromhex("04224d18604082")  # version 1, independent blocks of at most 64 KB, no checksums
LZ4_BLOCK = 1 << 16
LZ4_STORED = 1 << 31  # this bit of a block's size says that the block was left as it is
LZ4_FAST = 9  # Kafka's default level, which means the fast compressor
DEFAULT_LEVEL = {Compression.GZIP: 6, Compression.ZSTD: 3}

_int = Struct(">i")
_little = Struct("<I")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` as Kafka's own clients would; `level` has the meaning of compression.<codec>.level."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            return bytes(cramjam.gzip.compress(data, level=_level(codec, level)))
        case Compression.SNAPPY:
            return b"".join(_xerial_blocks(bytes(data)))
        case Compression.LZ4:
            return b"".join(_lz4_blocks(bytes(data), level))
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=_level(codec, level)))
        case _:
            raise WireError(f"unknown compression codec {codec}")


def decompress(codec: int, data: Buffer, limit: int) -> bytes:
    """Undo `compress`; WireError when the data is damaged or holds more than `limit` bytes."""
    match codec:
        case Compression.NONE:
            return _within(bytes(data), limit)
        case Compression.SNAPPY:
            return _snappy(data, limit)
        case Compression.GZIP:
            return _bounded(cramjam.gzip.decompress_into, data, limit)
        case Compression.LZ4:
            return _bounded(cramjam.lz4.decompress_into, data, limit)
        case Compression.ZSTD:
            return _bounded(cramjam.zstd.decompress_into, data, limit)
        case _:
            raise WireError(f"unknown compression codec {codec}")


def _level(codec: Compression, level: int | None) -> int:
    """Return the level to use; Kafka writes the default level of gzip as -1."""
    return DEFAULT_LEVEL[codec] if level is None or (level == -1 and codec is Compression.GZIP) else level


def _within(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise WireError(f"{len(data)} bytes exceed the limit of {limit}")
    return data


def _bounded(decompress_into: Callable[[Buffer, bytearray], int], data: Buffer, limit: int) -> bytes:
    """Decode into ever larger buffers: neither these formats nor the library tell the size beforehand."""
    size = min(max(FIRST_GUESS, 4 * len(data)), limit)
    while True:
        out = bytearray(size)
        try:
            return bytes(memoryview(out)[: decompress_into(data, out)])
        except cramjam.DecompressionError as error:
            if size >= limit or TOO_SMALL not in str(error):
                raise WireError(f"not decompressed within {limit} bytes: {error}") from None
        size = min(4 * size, limit)


def _snappy(data: Buffer, limit: int) -> bytes:
    if bytes(data[:8]) != XERIAL[:8]:
        return _snappy_block(data, limit)
    out = bytearray()
    for block in _xerial_split(memoryview(data)):
        out += _snappy_block(block, limit - len(out))
    return bytes(out)


def _snappy_block(data: Buffer, limit: int) -> bytes:
    """Decompress a raw block, whose declared size is checked against the limit first."""
    try:
        size = cramjam.snappy.decompress_raw_len(data)
        if size > limit:
            raise WireError(f"a snappy block of {size} bytes exceeds the limit of {limit}")
        return bytes(cramjam.snappy.decompress_raw(data))
    except cramjam.DecompressionError as error:
        raise WireError(f"damaged snappy block: {error}") from None


def _xerial_split(data: memoryview) -> Iterator[memoryview]:
    """Yield the blocks of a xerial stream; streams may follow one another, each with its header."""
    position, end = len(XERIAL), len(data)
    while position + 4 <= end:
        if bytes(data[position : position + 8]) == XERIAL[:8]:
            position += len(XERIAL)
            continue
        (size,) = _int.unpack_from(data, position)
        position += 4
        if not 0 <= size <= end - position:
            raise WireError(f"a snappy block of {size} bytes where {end - position} are left")
        yield data[position : position + size]
        position += size
    if position != end:
        raise WireError("a snappy stream ends within a block's size")


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    yield XERIAL
    for start in range(0, len(data), XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK]))
        yield _int.pack(len(block))
        yield block


def _lz4_blocks(data: bytes, level: int | None) -> Iterator[bytes]:
    yield LZ4_HEADER
    for start in range(0, len(data), LZ4_BLOCK):
        raw = data[start : start + LZ4_BLOCK]
        block = _lz4_block(raw, level)
        stored = len(block) >= len(raw)
        yield _little.pack(len(raw) | LZ4_STORED if stored else len(block))
        yield raw if stored else block
    yield _little.pack(0)


def _lz4_block(raw: bytes, level: int | None) -> bytes:
    if level is None or level == LZ4_FAST:
        return bytes(cramjam.lz4.compress_block(raw, store_size=False))
    return bytes(cramjam.lz4.compress_block(raw, mode="high_compression", compression=level, store_size=False))
