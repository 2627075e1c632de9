"""Values as Java writes them: floating-point numbers, byte strings, ids, tables, log lines."""

from __future__ import annotations

import base64
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from decimal import Decimal


def double_text(value: float) -> str:
    """Write a number as Double.toString: with a digit after the point, and an exponent outside 0.001 to 10 million."""
    return _floating(repr(value))


def float_text(value: float) -> str:
    """Write a number as Float.toString: in the fewest digits that give the same 32 bits."""
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
    point = len(written) + exponent  # the position of the point, counted from the first digit
    written = written.rstrip("0") or "0"
    if -3 < point <= 7:
        whole = written[: max(point, 0)].ljust(point, "0") or "0"
        fraction = "0" * max(-point, 0) + written[max(point, 0) :]
        return f"{minus}{whole}.{fraction or '0'}"
    return f"{minus}{written[0]}.{written[1:] or '0'}E{point - 1}"


def bytes_text(data: bytes) -> str:
    """Write bytes as Kafka's Bytes.toString: printable ones as they are, the others in hexadecimal."""
    return "".join(chr(one) if 32 <= one <= 126 and one != 92 else f"\\x{one:02X}" for one in data)


def base64_id(raw: bytes) -> str:
    """Write an id as Kafka does: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the lines of a table with its headers: columns padded with blanks, and a tab after each."""
    cells = [list(headers), *([str(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    return "\n".join("".join(f"{text:<{width}}\t" for text, width in zip(row, widths, strict=True)) for row in cells)


def log(level: str, sentence: str, logger: str, exception: str = "") -> None:
    """Print a line on stderr as Kafka's tools log, and below it the exception that it is about."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    print(f"[{stamp},{int(now * 1000) % 1000:03d}] {level} {sentence} ({logger})", file=sys.stderr)
    if exception:
        print(exception, file=sys.stderr)
