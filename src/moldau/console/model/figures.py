"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import datetime as dt

UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


def count(number: float | None) -> str:
    """Format 1234567 as 1,234,567; small rates keep a digit."""
    if number is None:
        return "–"
    if isinstance(number, float) and 0 < number < 10:
        return f"{number:.1f}"
    return f"{round(number):,}"


def size(number: int | None) -> str:
    """Format bytes in a suitable unit."""
    if number is None or number < 0:
        return "–"
    value, unit = float(number), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{number} B" if unit == 0 else f"{value:.1f} {UNITS[unit]}"


def moment(ms: int | None) -> str:
    """Format a timestamp in UTC; a record may have one that no calendar has."""
    if ms is None or ms < 0:
        return "–"
    try:
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{ms % 1000:03d}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
