"""Numbers as Kafka writes and hashes them: varints, the murmur2 of its partitioner, and Java's hash of strings.

A varint has seven bits to a byte, the lowest first. A signed one is zigzag: 0, -1, 1, -2 are 0, 1, 2, 3.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from moldau.wire.compression import Buffer
from moldau.wire.errors import WireError

T = TypeVar("T")
WORD = 0xFFFFFFFF
MOST_KEPT = 1 << 16  # zigzag varints that are kept in a table
MURMUR2_SEED, MURMUR2_M = 0x9747B28C, 0x5BD1E995
HASHES = 1 << 14  # ids whose hashes are remembered


def varint(data: Buffer, at: int) -> tuple[int, int]:
    """Read a varint of at most 32 bits, without undoing its zigzag: the number and the position after it."""
    n, at = varlong(data, at)
    if n >> 32:
        raise WireError("a varint of more than 32 bits")
    return n, at


def varlong(data: Buffer, at: int) -> tuple[int, int]:
    """Read a varint of at most 64 bits in the same way."""
    first = data[at]
    if first < 128:
        return first, at + 1
    second = data[at + 1]
    if second < 128:
        return first - 128 | second << 7, at + 2
    n = first & 127 | (second & 127) << 7
    for place in range(2, 10):
        byte = data[at + place]
        n |= (byte & 127) << 7 * place
        if byte < 128:
            if n >> 64:
                break
            return n, at + place + 1
    raise WireError("a varint of more than 64 bits")


def uvarint(n: int) -> bytes:
    """Write an unsigned varint."""
    if n < 128:
        return _ONE_BYTE[n]
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n: int) -> bytes:
    """Write a signed varint, of 32 or of 64 bits."""
    return uvarint(n << 1 if n >= 0 else ~(n << 1))


_ONE_BYTE = [bytes((n,)) for n in range(128)]
KEPT = 1024
ZIGZAGS = [zigzag(n) for n in range(KEPT)]  # at least so many; looking one up costs a fifth of the call


def zigzags(count: int) -> list[bytes]:
    """Return the varints of 0, 1, 2 ... in a table of at least `count` numbers, at most MOST_KEPT."""
    assert count <= MOST_KEPT
    if len(ZIGZAGS) < count:
        ZIGZAGS.extend(map(zigzag, range(len(ZIGZAGS), min(MOST_KEPT, 2 * count))))
    return ZIGZAGS


@lru_cache(1 << 16)  # a stream has the same keys again and again
def murmur2(data: bytes) -> int:
    """Hash a key as Kafka's default partitioner does, made positive as it does."""
    size = len(data)
    hashed = (MURMUR2_SEED ^ size) & WORD
    whole = size & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * MURMUR2_M & WORD
        k = (k ^ k >> 24) * MURMUR2_M & WORD
        hashed = (hashed * MURMUR2_M & WORD) ^ k
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * MURMUR2_M & WORD
    hashed = (hashed ^ hashed >> 13) * MURMUR2_M & WORD
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF


def java_hash(text: str) -> int:
    """Compute String.hashCode over UTF-16, as an unsigned number."""
    result = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        result = (result * 31 + (data[at] << 8 | data[at + 1])) & WORD
    return result


@lru_cache(HASHES)
def coordinator_hash(text: str) -> int:
    """Hash an id as Kafka does to choose its coordinator's partition: Java's hash without its sign."""
    result = java_hash(text)
    return min(result, 2**32 - result) & 0x7FFFFFFF  # the lowest number has no counterpart: Kafka takes it for 0


def hash_order(keys: Iterable[T], hash_of: Callable[[T], int], capacity: int = 16) -> list[T]:
    """List keys in the order in which a Java HashMap gives them: by bucket, then as they were put in."""
    unique = list(dict.fromkeys(keys))
    size = 1
    while size < capacity or len(unique) > size * 3 // 4:
        size *= 2

    def bucket(key: T) -> int:
        code = hash_of(key)
        return (code ^ code >> 16) & size - 1

    return sorted(unique, key=bucket)
