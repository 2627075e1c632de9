"""Compression: what other clients write is read, what is written they read, and no bomb goes off."""

import contextlib
import gzip
import resource

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.wire import compression
from moldau.wire.compression import Compression, compress, decompress
from moldau.wire.errors import WireError

TEXT = b"Moldau " * 300
REAL = [codec for codec in Compression if codec]

# TEXT as the Java client's libraries write it.
GOLDEN = {
    "gzip": (
        Compression.GZIP,
        bytes.fromhex("1f8b08000000000000fff3cdcf49492c55f01da546a9516a941aa546a9516a94c24701008aac00e434080000"),
    ),
    "snappy": (
        Compression.SNAPPY,
        bytes.fromhex(
            "82534e415050590000000001000000010000006db410184d6f6c64617520fe0700fe0700fe0700fe0700fe0700fe0700fe07"
            "00fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe"
            "0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700fe0700b20700"
        ),
    ),
    "zstd": (Compression.ZSTD, bytes.fromhex("28b52ffd0058740000384d6f6c6461752001002a905f8c010000")),
    "lz4": (
        Compression.LZ4,
        bytes.fromhex("04224d18604082190000007f4d6f6c646175200700ffffffffffffffff1d506c6461752000000000"),
    ),
    "lz4 with block checksums": (
        Compression.LZ4,
        bytes.fromhex("04224d187040ad190000007f4d6f6c646175200700ffffffffffffffff1d506c64617520cb76cad500000000"),
    ),
    "lz4 with its size and all checksums": (
        Compression.LZ4,
        bytes.fromhex(
            "04224d187c4034080000000000005a190000007f4d6f6c646175200700ffffffffffffffff1d506c64617520cb76cad50000"
            "00005c5a0413"
        ),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_what_java_writes_is_read(name: str) -> None:
    codec, data = GOLDEN[name]
    assert decompress(codec, data, len(TEXT)) == TEXT


@given(st.sampled_from(Compression), st.binary(max_size=500), st.integers(1, 400))
@settings(deadline=None)
def test_what_is_compressed_comes_back(codec: Compression, seed: bytes, times: int) -> None:
    data = seed * times
    assert decompress(codec, compress(codec, data), len(data)) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data))), len(data)) == data


@pytest.mark.parametrize("codec", REAL)
@pytest.mark.parametrize("level", [None, 1, 9, 12])
def test_levels_change_the_size_alone(codec: Compression, level: int | None) -> None:
    level = min(level, 9) if level and codec is Compression.GZIP else level
    assert decompress(codec, compress(codec, TEXT, level), 1 << 20) == TEXT


@pytest.mark.parametrize("codec", REAL)
def test_frames_that_follow_one_another_are_all_read(codec: Compression) -> None:
    assert decompress(codec, compress(codec, TEXT) + compress(codec, b"x" * 70_000), 1 << 20) == TEXT + b"x" * 70_000


def test_raw_snappy_is_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), 1 << 20) == TEXT


def test_lz4_frames_with_dependent_blocks_are_read() -> None:
    text = TEXT * 100
    assert decompress(Compression.LZ4, bytes(cramjam.lz4.compress(text)), 1 << 20) == text


def test_lz4_frames_are_written_with_independent_blocks() -> None:
    assert compress(Compression.LZ4, TEXT * 100)[4] == 0x60
    assert compress(Compression.LZ4, TEXT) == GOLDEN["lz4"][1]


def test_incompressible_lz4_blocks_are_stored() -> None:
    noise = gzip.compress(bytes(range(256)) * 4)[:100]
    assert len(compress(Compression.LZ4, noise)) <= len(noise) + 15
    assert decompress(Compression.LZ4, compress(Compression.LZ4, noise), 1000) == noise


@pytest.mark.parametrize("codec", Compression)
def test_the_limit_is_exact(codec: Compression) -> None:
    data = compress(codec, TEXT)
    assert decompress(codec, data, len(TEXT)) == TEXT
    with pytest.raises(WireError):
        decompress(codec, data, len(TEXT) - 1)


def bomb(codec: Compression) -> bytes:
    """512 MB of zeros in as little as the codec can."""
    if codec is Compression.SNAPPY:
        return b"\x80\x80\x80\x80\x02" + bytes(100)
    megabytes = b"\0" * (1 << 22)
    once = compress(codec, megabytes)
    return once * 128


@pytest.mark.parametrize("codec", REAL)
def test_bombs_are_refused_in_little_memory(codec: Compression) -> None:
    data = bomb(codec)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(WireError):
        decompress(codec, data, 10_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


@given(st.sampled_from(REAL), st.binary(max_size=200), st.booleans())
def test_any_bytes_are_data_or_a_wire_error(codec: Compression, noise: bytes, framed: bool) -> None:
    data = compress(codec, TEXT)[:20] + noise if framed else noise
    with contextlib.suppress(WireError):
        assert len(decompress(codec, data, 5000)) <= 5000


@given(st.sampled_from(REAL), st.data())
def test_cut_data_is_refused(codec: Compression, data: st.DataObject) -> None:
    whole = compress(codec, TEXT)
    cut = data.draw(st.integers(1, len(whole) - 1))
    try:
        found = decompress(codec, whole[:cut], 5000)
    except WireError:
        return
    assert codec is Compression.SNAPPY and cut == len(compression.XERIAL) and found == b""


def test_unknown_codecs_are_refused() -> None:
    for codec in (5, 6, 7, -1):
        with pytest.raises(WireError):
            compress(codec, TEXT)
        with pytest.raises(WireError):
            decompress(codec, TEXT, 10)
