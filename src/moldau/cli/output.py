"""How results are written: as a table for people, as JSON or YAML for programs; and a progress bar.

Results are dicts; programs get all of them, a table only some columns. A table in a pipe has one line a row.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

MANY = 500  # rows; for more of them rich takes seconds to lay out a table
PATIENCE_S = 2.0  # before a progress bar is shown
UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
KILO = 1000
Output = Literal["table", "json", "yaml"]  # how results are written


class Column(NamedTuple):
    """A column of a table: its key in the rows, its title, and how values are written for people."""

    key: str
    title: str = ""
    text: Callable[[Any], str] | None = None


Columns = Sequence[Column | str]


def pick(one: Any, *names: str) -> dict[str, Any]:
    """Make a row from attributes of an object; "group=id" puts the attribute `id` under the key `group`."""
    pairs = (name.partition("=") for name in names)
    return {key: getattr(one, attribute or key) for key, _, attribute in pairs}


def write(output: Output, result: Any, columns: Columns = ()) -> None:
    """Write a list of rows, or one object."""
    if output == "json":
        print(json.dumps(result, indent=2, ensure_ascii=False, default=str))
    elif output == "yaml":
        import yaml

        print(yaml.safe_dump(plain(result), sort_keys=False, allow_unicode=True), end="")
    elif isinstance(result, Mapping):
        print_card(result, columns)
    else:
        print_table(list(result), columns)


def print_card(facts: Mapping[str, Any], columns: Columns = ()) -> None:
    """Print one object, a line for each fact."""
    chosen = [_column(one) for one in columns or facts]
    width = max((len(_title(one)) for one in chosen), default=0)
    for one in chosen:
        print(f"{_title(one):<{width}}  {_cell(one, facts.get(one.key))}".rstrip())


def print_table(rows: Sequence[Mapping[str, Any]], columns: Columns = ()) -> None:
    """Print many objects, a row each."""
    if not rows:
        return
    chosen = [_column(one) for one in columns or rows[0]]
    cells = [[_cell(one, row.get(one.key)) for one in chosen] for row in rows]
    right = [_is_numeric([row.get(one.key) for row in rows]) for one in chosen]
    if sys.stdout.isatty() and len(rows) < MANY:
        _print_rich([_title(one) for one in chosen], cells, right)
    else:
        sys.stdout.writelines(_lines([[_title(one) for one in chosen], *cells], right))


def _print_rich(titles: Sequence[str], cells: Iterable[Sequence[str]], right: Sequence[bool]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, number in zip(titles, right, strict=True):
        table.add_column(title, justify="right" if number else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))  # names come from others: they are not markup
    Console(highlight=False).print(table)


def _lines(cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        parts = [
            f"{cell:>{width}}" if number else f"{cell:<{width}}"
            for cell, width, number in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(parts).rstrip() + "\n"


def _column(one: Column | str) -> Column:
    return one if isinstance(one, Column) else Column(one)


def _title(one: Column) -> str:
    return one.title or one.key.replace("_", " ")


def _cell(one: Column, value: Any) -> str:
    if value is None:
        return "-"
    return printable(one.text(value) if one.text else plain_text(value))


def plain_text(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(plain_text, value))
        case dict():
            return ", ".join(f"{key}={plain_text(inner)}" for key, inner in value.items())
    return str(value)


def printable(text: str) -> str:
    """Escape what would control a terminal: names and metadata come from others."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _is_numeric(values: Sequence[Any]) -> bool:
    """Return whether a column has only numbers and gaps."""
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in known)


def plain(value: Any) -> Any:
    """Reduce a value to the types that YAML knows."""
    match value:
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(inner) for inner in value]
        case bool() | int() | float() | None:
            return value
    return str(value)


def size(count: float | None) -> str:
    """Write a number of bytes for people: 12.3 MB."""
    if count is None:
        return "-"
    unit = 0
    while abs(count) >= KILO and unit < len(UNITS) - 1:
        count, unit = count / KILO, unit + 1
    return f"{count:.0f} {UNITS[unit]}" if unit == 0 else f"{count:.1f} {UNITS[unit]}"


def time_of(ms: int | None) -> str | None:
    """Write a timestamp of Kafka in UTC."""
    if ms is None or ms < 0:
        return None
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return str(ms)


class Progress:
    """A progress bar on stderr, shown after two seconds, and only on a terminal."""

    def __init__(self, what: str, total: float | None) -> None:
        self.what, self.total, self.done = what, total, 0.0
        self.begin = time.monotonic()
        self.quiet = not sys.stderr.isatty()
        self.bar: Any = None

    def advance(self, more: float = 1) -> None:
        self.done += more
        if self.quiet:
            return
        if self.bar is None:
            if time.monotonic() - self.begin < PATIENCE_S:
                return
            self.bar = self._open()
        self.bar.update(self.task, completed=self.done)

    def _open(self) -> Any:
        from rich.console import Console
        from rich.progress import Progress as Bar

        bar = Bar(console=Console(stderr=True), transient=True)
        bar.start()
        self.task = bar.add_task(self.what, total=self.total)
        return bar

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Progress]:
    """Show a progress bar during a `with`."""
    bar = Progress(what, total)
    try:
        yield bar
    finally:
        bar.close()
