"""Values as Java writes them: numbers of floating point, byte strings, lines of a log."""

from __future__ import annotations

import struct
import sys
import time
from decimal import Decimal


def double_text(value: float) -> str:
    """Double.toString: at least one digit behind the point, and an exponent outside 0.001 to 10 million."""
    return _floating(repr(value))


def float_text(value: float) -> str:
    """Float.toString: the fewest digits that mean the same number of 32 bits."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return _floating(text)
    return _floating(repr(value))


def _floating(text: str) -> str:
    if text.lstrip("-") in ("inf", "nan"):
        return text.replace("inf", "Infinity").replace("nan", "NaN")
    sign, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    minus = "-" if sign else ""
    if not written:
        return f"{minus}0.0"
    point = len(written) + exponent  # where the point stands, counted from the first digit
    written = written.rstrip("0") or "0"
    if -3 < point <= 7:
        whole = written[: max(point, 0)].ljust(point, "0") or "0"
        fraction = "0" * max(-point, 0) + written[max(point, 0) :]
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{point - 1}"


def bytes_text(data: bytes) -> str:
    """Bytes.toString of Kafka: what is printable as it is, the rest in hexadecimal."""
    return "".join(chr(one) if 32 <= one <= 126 and one != 92 else f"\\x{one:02X}" for one in data)


def log(level: str, sentence: str, logger: str, exception: str = "") -> None:
    """A line on stderr as Kafka's tools log, and below it the exception that it is about."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    print(f"[{stamp},{int(now * 1000) % 1000:03d}] {level} {sentence} ({logger})", file=sys.stderr)
    if exception:
        print(exception, file=sys.stderr)
