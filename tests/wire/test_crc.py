"""CRC-32C: known values, and the same value by every way to it."""

import google_crc32c
import pytest

from moldau.wire.crc import LARGE, crc32c

KNOWN = [  # from RFC 3720, appendix B.4, and the check value of the polynomial
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize(("data", "wanted"), KNOWN, ids=lambda value: str(value)[:12])
def test_known_values(data: bytes, wanted: int) -> None:
    assert crc32c(memoryview(data)) == wanted


@pytest.mark.parametrize("size", [LARGE - 1, LARGE, LARGE + 1, 1_000_003])
def test_writable_and_read_only_views_have_one_value(size: int) -> None:
    data = bytearray(bytes(range(251)) * (size // 251 + 1))[:size]
    wanted = google_crc32c.value(bytes(data))
    assert (
        crc32c(memoryview(data)) == crc32c(memoryview(data).toreadonly()) == crc32c(memoryview(bytes(data))) == wanted
    )
    assert crc32c(memoryview(b"xyz" + data)[3:]) == wanted
    data.append(0)  # no view of it is left behind
