"""`moldau consume`: records of topics to stdout, as kcat -C does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Literal

import typer

from moldau.admin import TopicPartition, topics
from moldau.admin.mistakes import INTERRUPTED, misused
from moldau.cli.commands import Partitions, Topics, command
from moldau.cli.options import epilog, flag, option
from moldau.cli.printing import Printer
from moldau.cli.record_options import Count, Delimiter, Formats, KeyDelimiter, Quiet
from moldau.cli.session import Session
from moldau.records import positions, template
from moldau.records.formats import Raw, codec, connect_registry, part
from moldau.records.reading import Chunk, Reader

EPILOG = epilog(
    "moldau consume orders  (from the beginning, then new records)",
    "moldau consume orders -o end  (only new records)",
    "moldau consume orders -o -10 --exit  (the last ten of each partition)",
    "moldau consume orders -o s@-1h -o e@now -f '%T %k: %s\\n'",
    "moldau consume orders --value-format avro -J --count 5",
    "moldau consume orders --group billing",
)
DIRECT = "Print records by a template: " + ", ".join(
    f"%{name} {token.meaning}" for name, token in template.TOKENS.items()
)
WAYS = ("json", "text")


def consume(
    session: Session,
    names: Topics,
    *,
    start: list[str] | None = option(
        "--offset -o --from",
        "Start at beginning, end, an offset, -N before the end or s@TIME; end at e@TIME; or json, as -J.",
        metavar="POSITION",
    ),
    partition: Partitions = None,
    count: Count = None,
    exit_at_end: bool = flag("--exit -e", "Stop at the end of all partitions."),
    tail: bool = flag("--tail -t", "Read only new records, as -o end."),
    group: str | None = option("--group -G", "Read as a member of this group, and commit what was printed."),
    layout: str | None = option("--format -f", DIRECT, metavar="TEMPLATE"),
    as_json: bool = flag("--json -J", "Print each record with its metadata as a line of JSON."),
    key_delimiter: KeyDelimiter = None,
    delimiter: Delimiter = "\\n",
    null: bool = flag("--null -Z", "Print NULL for null, instead of nothing."),
    isolation: Literal["committed", "uncommitted"] = option(
        "--isolation", "Read open and aborted transactions too, or only committed ones.", "committed"
    ),
    skip_bad: bool = flag("--skip-bad", "Skip records that do not fit their format."),
    quiet: Quiet = False,
    formats: Formats,
) -> None:
    """Read records and print their values, one a line.

    Without --exit or --count it waits for more records, as tail -f does. Ctrl-C stops it. The number of records is
    printed on stderr. As a member of a --group it continues where the group stopped.
    """
    words = [text for text in start or () if text not in WAYS]
    as_json = as_json or "json" in (start or ())
    span = positions.parse([*words, *(["end"] if tail else [])])
    registry = partial(connect_registry, session.connection)
    printer = Printer(
        codec(formats.key(), registry, writing=False),
        codec(formats.value(), registry, writing=False),
        skip_bad,
        b"NULL" if null else b"",
    )
    _choose(printer, layout, as_json, key_delimiter, delimiter)
    level = f"read_{isolation}"
    if group is not None:
        if partition or span.until_ms is not None or span.since_ms is not None or span.offset is not None:
            raise misused("A --group decides itself where it reads: omit --partition, and offsets and times in -o.")
        source = _read_as_member(session, names, group, span, exit_at_end, count, level)
    else:
        begin, stops = _span(session, names, partition, span)
        reader = Reader(session.client, begin, stops, exit_at_end, level, printer.wanted)
        source = limit(iter(reader), count)
    _run(printer, source, quiet)


cli = command(consume, without=("output", "registry_user"))


def _choose(printer: Printer, layout: str | None, as_json: bool, between: str | None, delimiter: str) -> None:
    """Choose how records are printed."""
    if as_json:
        if layout is not None:
            raise misused("Give --format or --json, not both.")
        printer.by_envelope()
        return
    key = part(2, printer.key, lambda: printer.topic, printer.null)
    value = part(3, printer.value, lambda: printer.topic, printer.null)
    end = template.delimiter(delimiter, "--delimiter")
    if layout is not None:
        printer.by_template(template.compiled(layout, key, value))
    elif between is None and isinstance(printer.value, Raw):
        printer.values_alone(end)
    else:
        mark = None if between is None else template.delimiter(between, "--key-delimiter")
        made = template.delimited(end, mark, key, value)
        if mark is not None and printer.is_plain:
            printer.keys_and_values(mark, end, made)
        else:
            printer.by_template(made)


def _span(
    session: Session, names: list[str], partitions: list[int] | None, span: positions.Span
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int] | None]:
    """Return where to start in each partition, and where to end, if that is given."""
    if span.word == positions.STORED:
        raise misused("-o stored means the committed offsets of a group: give --group.")
    places: list[TopicPartition] = topics.partitions(session.client, names)
    if partitions:
        places = [place for place in places if place[1] in partitions]
        if not places:
            raise misused(f"{', '.join(names)} has no partition {', '.join(map(str, partitions))}.")
    return positions.starts(session.client, span, places), positions.stops(session.client, span, places)


def _read_as_member(
    session: Session,
    names: list[str],
    group: str,
    span: positions.Span,
    exit_at_end: bool,
    count: int | None,
    level: str,
) -> Iterator[list[Chunk]]:
    from moldau.records.grouped import chunks

    topics.described(session.client, names)
    first = {
        "group.id": group,
        "client.id": "moldau",
        "auto.offset.reset": "latest" if span.word == positions.END else "earliest",
        "isolation.level": level,
    }
    settings = {**first, **session.connection.kafka_settings}
    return chunks(settings, names, to_end=exit_at_end, most=count, tell=session.tell)


def limit(source: Iterator[list[Chunk]], count: int | None) -> Iterator[list[Chunk]]:
    """Cut off after this many records."""
    left = count
    while left is None or left > 0:
        chunks = next(source, None)
        if chunks is None:
            return
        if left is not None:
            cut = []
            for chunk in chunks:
                cut.append(chunk.first(left))
                left -= cut[-1].size
            chunks = cut
        yield chunks


def _run(printer: Printer, source: Iterator[list[Chunk]], quiet: bool) -> None:
    """Print until the end, or Ctrl-C."""
    code = 0
    try:
        for chunks in source:
            for chunk in chunks:
                printer.write(chunk)
            sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        sys.stdout.buffer.flush()
        if not quiet:
            bad = f", {printer.bad} skipped" if printer.bad else ""
            print(f"{printer.count} records{bad}", file=sys.stderr)
    if code:
        raise typer.Exit(code)
