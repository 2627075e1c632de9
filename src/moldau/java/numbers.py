"""Java's text of numbers, and the numbers that Java reads in a text."""

from __future__ import annotations

import re
import struct as binary
from decimal import Decimal

BITS_OF = {"BYTE": 8, "SHORT": 16, "INT": 32, "LONG": 64}
SPACE = "".join(map(chr, range(33)))  # what String.trim removes
_INT = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)
_HEX_FLOAT = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)


def wrap(value: int, bits: int) -> int:
    """Keep the low bits of an integer, as Java's narrowing does."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def to_float32(value: float) -> float:
    """Round to the nearest Float; what is too large becomes infinite."""
    try:
        return binary.unpack("f", binary.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def trim(text: str) -> str:
    return text.strip(SPACE)


def parse_int(text: str, bits: int) -> int:
    """Read an integer as Integer.parseInt and its siblings do; a ValueError is a NumberFormatException."""
    if not _INT.fullmatch(text):
        raise ValueError(f'For input string: "{text}"')
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f'For input string: "{text}"')
    return value


def parse_double(text: str) -> float:
    """Read a number as Double.parseDouble does."""
    text = trim(text)
    if _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("fFdD") if "p" in text.lower() else text)
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    if not _FLOAT.fullmatch(text):
        raise ValueError(f'For input string: "{text}"' if text else "empty String")
    return float(text if text[-1] in "Ny" else text.rstrip("fFdD"))


def parse_float(text: str) -> float:
    """Read a number as Float.parseFloat does."""
    return to_float32(parse_double(text))


def double_text(value: float) -> str:
    """Write a number as Double.toString does: the shortest text that reads back, E notation outside 0.001 to 10^7.

    Java writes two digits at least, and the nearest ones: 4.9E-324 where one digit would be 5.
    """
    if 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    two = f"{value:.1e}"
    return _float_text(value, two if float(two) == value else repr(float(value)))


def float_text(value: float) -> str:
    """Write a number as Float.toString does."""
    if value != value or value in (float("inf"), float("-inf")) or value == 0:
        return double_text(value)
    shortest = next(text for digits in range(1, 18) if to_float32(float(text := f"{value:.{digits}g}")) == value)
    return _float_text(value, repr(float(shortest)))


def _float_text(value: float, text: str) -> str:
    if value != value:
        return "NaN"
    sign = "-" if text.startswith("-") else ""
    if value in (float("inf"), float("-inf")):
        return sign + "Infinity"
    _, digits, exponent = Decimal(text).normalize().as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits))
    if shown == "0":
        return sign + "0.0"
    point = len(shown) + exponent  # digits before the decimal point
    if -3 < point <= 7:
        whole = shown[: max(point, 0)].ljust(max(point, 0), "0") or "0"
        return f"{sign}{whole}.{'0' * max(-point, 0) + shown[max(point, 0) :] or '0'}"
    return f"{sign}{shown[0]}.{shown[1:] or '0'}E{point - 1}"


def decimal_text(value: Decimal) -> str:
    """Write a number as BigDecimal.toString does, which Python's str does too but for the sign of zero."""
    return str(value if value else value.copy_abs())


def plain_text(value: Decimal) -> str:
    """Write a number as BigDecimal.toPlainString does."""
    return f"{value if value else value.copy_abs():f}"


def class_of(text: object) -> str:
    return type(text).__qualname__
