"""`moldau consume`: records of topics to stdout, as kcat -C does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer

from moldau.admin import TopicPartition, topics
from moldau.admin.mistakes import INTERRUPTED, misused
from moldau.cli.commands import Topics, command, epilog
from moldau.cli.printing import Printer
from moldau.cli.record_options import (
    Count,
    Delimiter,
    KeyDelimiter,
    KeyFormat,
    KeySchema,
    Quiet,
    Start,
    ValueFormat,
    ValueMessage,
    ValueSchema,
)
from moldau.cli.session import Session
from moldau.records import positions, template
from moldau.records.formats import Raw, Wanted, codec, connect_registry, part
from moldau.records.reading import Chunk, Reader

EXAMPLES = (
    "moldau consume orders  (from the beginning, and then what comes)",
    "moldau consume orders -o end  (only what comes)",
    "moldau consume orders -o -10 --exit  (the last ten of each partition)",
    "moldau consume orders -o s@-1h -o e@now -f '%T %k: %s\\n'",
    "moldau consume orders --value-format avro -J --count 5",
    "moldau consume orders --group billing",
)
EPILOG = epilog(EXAMPLES)
DIRECT = "Lay records out: " + ", ".join(f"%{name} {token.meaning}" for name, token in template.TOKENS.items())
WAYS = ("json", "text")


class Isolation(StrEnum):
    """Whether open and aborted transactions are seen."""

    committed = "committed"
    uncommitted = "uncommitted"


def consume(
    session: Session,
    names: Topics,
    start: Start = None,
    partition: Annotated[list[int] | None, typer.Option("--partition", "-p", help="Only these; repeatable.")] = None,
    count: Count = None,
    exit_at_end: Annotated[bool, typer.Option("--exit", "-e", help="Stop at the end of all partitions.")] = False,
    tail: Annotated[bool, typer.Option("--tail", "-t", help="Only what comes from now on: -o end.")] = False,
    group: Annotated[
        str | None, typer.Option("--group", "-G", help="As a member of this group, which commits what was written.")
    ] = None,
    layout: Annotated[str | None, typer.Option("--format", "-f", metavar="TEMPLATE", help=DIRECT)] = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="A line of JSON with all of a record.")] = False,
    key_delimiter: KeyDelimiter = None,
    delimiter: Delimiter = "\\n",
    null: Annotated[bool, typer.Option("--null", "-Z", help="Write NULL for null, which is empty otherwise.")] = False,
    isolation: Annotated[
        Isolation, typer.Option("--isolation", help="Whether to see open and aborted transactions.")
    ] = Isolation.committed,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Go on where a record does not fit its format.")] = False,
    quiet: Quiet = False,
    key_format: KeyFormat = "string",
    key_schema: KeySchema = None,
    value_format: ValueFormat = "string",
    value_schema: ValueSchema = None,
    value_message: ValueMessage = None,
) -> None:
    """Read records and write them to stdout: values, one a line.

    Without --exit or --count it waits for more, as tail -f does. Ctrl-C stops it; how many records there were is told
    on stderr. As a member of a --group it goes on where the group left off.
    """
    words = [text for text in start or () if text not in WAYS]
    as_json = as_json or "json" in (start or ())
    span = positions.parse([*words, *(["end"] if tail else [])])
    registry = partial(connect_registry, session.connection)
    printer = Printer(
        codec(Wanted(key_format, key_schema), registry, writing=False),
        codec(Wanted(value_format, value_schema, value_message), registry, writing=False),
        skip_bad,
        b"NULL" if null else b"",
    )
    _choose(printer, layout, as_json, key_delimiter, delimiter)
    level = f"read_{isolation.value}"
    if group is not None:
        if partition or span.until_ms is not None or span.since_ms is not None or span.offset is not None:
            raise misused("A --group says itself where it reads: leave out --partition, and offsets and times of -o.")
        source = _grouped(session, names, group, span, exit_at_end, count, level)
    else:
        begin, stops = _span(session, names, partition, span)
        reader = Reader(session.client, begin, stops, exit_at_end, level, printer.wanted)
        source = limited(iter(reader), count)
    _run(printer, source, quiet)


cli = command(consume, without=("output",))


def _choose(printer: Printer, layout: str | None, as_json: bool, between: str | None, delimiter: str) -> None:
    """How records are laid out."""
    if as_json:
        if layout is not None:
            raise misused("Give --format or --json, not both.")
        printer.by_envelope()
        return
    key = part(2, printer.key, lambda: printer.topic, printer.null)
    value = part(3, printer.value, lambda: printer.topic, printer.null)
    behind = template.delimiter(delimiter, "--delimiter")
    if layout is not None:
        printer.by_template(template.compiled(layout, key, value))
    elif between is None and isinstance(printer.value, Raw):
        printer.values_alone(behind)
    else:
        mark = None if between is None else template.delimiter(between, "--key-delimiter")
        made = template.delimited(behind, mark, key, value)
        if mark is not None and printer.is_plain:
            printer.keys_and_values(mark, behind, made)
        else:
            printer.by_template(made)


def _span(
    session: Session, names: list[str], partitions: list[int] | None, span: positions.Span
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int] | None]:
    """Where to begin in each partition, and where to end, if that was said."""
    if span.word == positions.STORED:
        raise misused("-o stored is what a group has committed: give --group.")
    places: list[TopicPartition] = topics.partitions(session.client, names)
    if partitions:
        places = [place for place in places if place[1] in partitions]
        if not places:
            raise misused(f"{', '.join(names)} has no partition {', '.join(map(str, partitions))}.")
    return positions.starts(session.client, span, places), positions.stops(session.client, span, places)


def _grouped(
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


def limited(source: Iterator[list[Chunk]], count: int | None) -> Iterator[list[Chunk]]:
    """At most so many records."""
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
    """Write until there is no more, or Ctrl-C."""
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
