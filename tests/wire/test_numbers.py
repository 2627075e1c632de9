"""Varints round-trip within their widths, and hashes are those of Kafka and Java."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from moldau.wire.errors import WireError
from moldau.wire.numbers import coordinator_hash, hash_order, java_hash, murmur2, varint, varlong, zigzag, zigzags

KAFKAS = {  # Utils.murmur2(...) of Kafka
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(number: int) -> None:
    raw = zigzag(number)
    n, at = varlong(raw, 0)
    assert ((n >> 1) ^ -(n & 1), at) == (number, len(raw))


@pytest.mark.parametrize("raw", ["ffffffffffffffffffff01", "ffffffffffffffffff03", "808080808080808080808001"])
def test_overlong_varints_are_refused(raw: str) -> None:
    with pytest.raises(WireError):
        varlong(bytes.fromhex(raw), 0)


def test_a_varint_of_33_bits_is_no_length() -> None:
    with pytest.raises(WireError):
        varint(bytes.fromhex("ffffffff1f"), 0)


def test_the_table_of_varints_grows_to_what_is_needed() -> None:
    assert zigzags(3000)[:3000] == [zigzag(n) for n in range(3000)]
    assert len(zigzags(1 << 16)) == 1 << 16


@pytest.mark.parametrize("data", KAFKAS, ids=lambda data: data.decode())
def test_murmur2_is_kafkas(data: bytes) -> None:
    assert murmur2(data) == KAFKAS[data] & 0x7FFFFFFF


@given(st.binary(max_size=40))
def test_keys_go_where_java_sends_them(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("text", "hashed", "without_sign"),
    [
        ("", 0, 0),
        ("a", 97, 97),
        ("hello", 99162322, 99162322),
        ("\U0001f600", 1772899, 1772899),
        ("my-group", 2**32 - 1906497762, 1906497762),
        ("polygenelubricants", 1 << 31, 0),
    ],
)
def test_the_hash_of_strings_is_javas(text: str, hashed: int, without_sign: int) -> None:
    assert (java_hash(text), coordinator_hash(text)) == (hashed, without_sign)


def test_keys_come_in_the_order_of_a_java_map() -> None:
    assert hash_order(["version", "brokers", "version"], java_hash) == ["brokers", "version"]
