"""Typed values of settings by Java's rules: parsing, the column `valid`, and writing them as Kafka does."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.settings.table import Row

_BITS = {"short": 16, "int": 32, "long": 64}
_DURATION = re.compile(
    r"P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?", re.IGNORECASE
)
_UNITS_MS = 86_400_000, 3_600_000, 60_000, 1000


class SettingError(ValueError):
    """An invalid setting: its name, its value, the reason, and the Kafka error that a client gets."""

    def __init__(self, name: str, value: str | None, reason: str, error: str = "INVALID_CONFIG") -> None:
        self.name, self.value, self.reason, self.error = name, value, reason, error
        super().__init__(f"{name} cannot be {value!r}: {reason}" if value is not None else f"{name}: {reason}")


def parse(row: Row, text: str) -> Any:
    """Parse a text; refuse what the row does not allow."""
    text = text.strip()
    value = _PARSERS[row.type](row, text)
    if reason := _objection(row, value):
        raise SettingError(row.name, text, reason)
    return value


def _boolean(row: Row, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise SettingError(row.name, text, "it must be true or false")
    return text.lower() == "true"


def _integer(row: Row, text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    bits = _BITS[row.type]
    if not (digits.isascii() and digits.isdigit()):
        raise SettingError(row.name, text, f"it must be a whole number ({row.type})")
    value = int(text) if len(digits) < 25 else 1 << 64
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise SettingError(row.name, text, f"it must be a whole number of {bits} bits ({row.type})")
    return value


def _double(row: Row, text: str) -> float:
    body = text.lstrip("+-") if text.lstrip("+-") in ("NaN", "Infinity") else text.rstrip("dDfF")
    try:
        if body in ("NaN", "Infinity"):
            return float(text)
        if set(body) <= set("0123456789.eE+-"):
            return float(body)
    except ValueError:
        pass
    raise SettingError(row.name, text, "it must be a number (double)")


def _list(row: Row, text: str) -> tuple[str, ...]:
    """Split into elements, stripped; a repeated element counts once, as in Kafka."""
    if not text:
        return ()
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in parts:
        raise SettingError(row.name, text, "its elements must not be empty")
    return parts


def _text(row: Row, text: str) -> str:
    return text


_PARSERS: dict[str, Callable[[Row, str], Any]] = {
    "boolean": _boolean,
    "short": _integer,
    "int": _integer,
    "long": _integer,
    "double": _double,
    "list": _list,
    "string": _text,
    "class": _text,
    "password": _text,
}


def _objection(row: Row, value: Any) -> str | None:
    """Return what the column `valid` has against a typed value."""
    valid = row.valid
    if valid == "-":
        return None
    if valid[0] == "{":
        return _not_among(valid, value)
    if ".." in valid:
        return _out_of_range(valid, value)
    if valid == "offset-reset":
        head, _, span = value.partition(":")
        good = value in ("earliest", "latest") or (head == "by_duration" and _DURATION.fullmatch(span))
        return None if good else "it must be earliest, latest or by_duration:P…, with an ISO 8601 duration"
    if valid in _ELEMENTS:
        element, wish = _ELEMENTS[valid]
        parts = value if isinstance(value, tuple) else [part.strip() for part in value.split(",") if part]
        good = all(re.fullmatch(element, part) for part in parts) or (valid == "replicas" and value == ("*",))
        return None if good else f"it must be a list of {wish}"
    return None if value else "it must not be empty"


# What the elements of a list look like, and what they are called.
_ELEMENTS = {
    "replicas": (r"\d+:\d+", "partition:broker pairs, or *"),
    "limits": (r".+:\d+", "host:number pairs"),
    "servers": (r"[^\s,@]+:\d+", "host:port pairs"),
    "voters": (r"\d+@[^\s,]+:\d+", "id@host:port entries"),
}


def _out_of_range(valid: str, value: float) -> str | None:
    span, _, other = valid.partition("|")
    low, _, high = span.partition("..")
    if (other and value == int(other)) or not (value < float(low) or (high and value > float(high))):
        return None
    wish = f"between {low} and {high}" if high else f"at least {low}"
    return f"it must be {wish}" + (f", or {other}" if other else "")


def _not_among(valid: str, value: Any) -> str | None:
    names, _, flags = valid[1:].partition("}")
    choices = names.split(",")
    given = value if isinstance(value, tuple) else (value,)
    if "i" in flags:
        given = tuple(one.lower() for one in given)
    if all(one in choices for one in given) and (given or "+" not in flags):
        return None
    return f"it must be {'one' if not isinstance(value, tuple) else 'some'} of {', '.join(choices)}"


def duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration of days and less."""
    found = _DURATION.fullmatch(text)
    assert found, f"{text} is not a duration"
    return sum(int(float(part) * unit) for part, unit in zip(found.groups("0"), _UNITS_MS, strict=True))


def format_value(value: Any) -> str | None:
    """Format a typed value as Kafka does."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _format_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _format_double(value: float) -> str:
    """Format as Java's Double.toString: plain between a thousandth and ten million, otherwise with an exponent."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    scientific = next(text for p in range(18) if float(text := f"{value:.{p}e}") == value)
    digits, _, exponent = scientific.partition("e")
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
