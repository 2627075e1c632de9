"""`moldau produce`: records from stdin or files to a topic, as kcat -P does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, AnyStr

import typer

from moldau.admin import configs, topics
from moldau.admin.mistakes import INTERRUPTED, misused
from moldau.cli.commands import Topic, command, epilog
from moldau.cli.record_options import (
    Count,
    Delimiter,
    Files,
    FixedHeaders,
    KeyDelimiter,
    KeyFormat,
    KeySchema,
    Quiet,
    Strategy,
    TransactionalId,
    ValueFormat,
    ValueMessage,
    ValueSchema,
)
from moldau.cli.session import Session
from moldau.client import Client, ClientError
from moldau.records import lines
from moldau.records.formats import Wanted, codec, connect_registry
from moldau.records.partitioners import PARTITIONERS
from moldau.records.template import delimiter as delimiter_of
from moldau.records.writing import BATCH_BYTES, Writer
from moldau.wire.compression import Compression

EXAMPLES = (
    "echo hello | moldau produce orders",
    "moldau produce orders --key-delimiter : --file orders.txt",
    "echo '{\"id\": 1}' | moldau produce orders --value-format avro --value-schema order.avsc",
    "echo '7:' | moldau produce customers -K : --null",
    "moldau consume orders -J --exit | moldau produce copy -J",
    "moldau produce orders --file orders.txt --compression zstd --transactional-id load-1",
)
EPILOG = epilog(EXAMPLES)


class Codec(StrEnum):
    """Compression."""

    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


class Chooser(StrEnum):
    """Partitioners."""

    murmur2 = "murmur2"
    crc32 = "crc32"
    random = "random"


def produce(
    session: Session,
    topic: Topic,
    file: Files = None,
    whole: Annotated[bool, typer.Option("--whole", help="Each --file is one record.")] = False,
    partition: Annotated[int | None, typer.Option("--partition", "-p", min=0, help="All to this one.")] = None,
    key: Annotated[str | None, typer.Option("--key", "-k", help="The key of all records.")] = None,
    key_delimiter: KeyDelimiter = None,
    delimiter: Delimiter = "\\n",
    header: FixedHeaders = None,
    null: Annotated[bool, typer.Option("--null", "-Z", help="Empty values and keys are null.")] = False,
    envelope: Annotated[bool, typer.Option("--json", "-J", help="Lines are JSON, as consume -J writes them.")] = False,
    timestamp: Annotated[int | None, typer.Option("--timestamp", min=0, help="Of all records, in ms.")] = None,
    compression: Annotated[Codec, typer.Option("--compression", "-z", help="How batches are compressed.")] = Codec.none,
    level: Annotated[int | None, typer.Option("--compression-level", help="As the codec counts.")] = None,
    partitioner: Annotated[
        Chooser, typer.Option("--partitioner", help="By key: as Java's clients, as librdkafka's, or anywhere.")
    ] = Chooser.murmur2,
    acks: Annotated[int | None, typer.Option("--acks", min=-1, max=1, help="-1 for all replicas in sync.")] = None,
    transactional_id: TransactionalId = None,
    count: Count = None,
    quiet: Quiet = False,
    key_format: KeyFormat = "string",
    key_schema: KeySchema = None,
    value_format: ValueFormat = "string",
    value_schema: ValueSchema = None,
    value_message: ValueMessage = None,
    subject_strategy: Strategy = None,
) -> None:
    """Write records: a line each, from stdin or files.

    Keys stand in front of values with -K. With a format, lines are JSON (avro, json-schema, protobuf, json), or text in
    that form (hex, base64, long ...). -J reads whole records. How many were written is told on stderr.
    """
    if whole and not file:
        raise misused("--whole needs --file.")
    if key is not None and key_delimiter is not None:
        raise misused("Give --key or --key-delimiter, not both.")
    rules = lines.Rules(
        topic,
        _codec(session, Wanted(key_format, key_schema, None, subject_strategy)),
        _codec(session, Wanted(value_format, value_schema, value_message, subject_strategy)),
        None if key_delimiter is None else delimiter_of(key_delimiter, "--key-delimiter"),
        key,
        tuple(_header(text) for text in header or ()),
        null,
        envelope,
        partition,
        timestamp,
    )
    client, codec = session.client, Compression[compression.value.upper()]
    chosen = PARTITIONERS[partitioner.value]
    writer = Writer(client, topic, _partitions(client, topic), chosen, codec, level, transactional_id, acks)
    writer.batch_bytes = _batch_bytes(client, topic)
    files = [Path(name) for name in file or ()]
    end = delimiter_of(delimiter, "--delimiter")
    mark = rules.between if rules.plain and not whole else None
    if mark is not None:
        texts = limited(lines.pieces(files, lines.latin1(end), lines.latin1), count)
        _run(writer, lambda: _write_keyed(writer, lines.latin1(mark), texts), quiet)
    else:
        source = limited(lines.whole(files) if whole else lines.pieces(files, end, bytes), count)
        _run(writer, lambda: _write(writer, rules, source), quiet)


cli = command(produce, without=("output",))


def _codec(session: Session, wanted: Wanted) -> Any:
    return codec(wanted, partial(connect_registry, session.connection), writing=True)


def _run(writer: Writer, write: Callable[[], None], quiet: bool) -> None:
    try:
        write()
        writer.close()
    except KeyboardInterrupt:
        undone = writer.transactional_id is not None
        if undone:
            writer.abort()
        else:
            writer.close()
        print(f"{writer.count} records {'undone' if undone else 'written'}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    except Exception:
        writer.abort()
        raise
    if not quiet:
        print(f"{writer.count} records written to {writer.topic}", file=sys.stderr)


def _write(writer: Writer, rules: lines.Rules, source: Iterator[list[bytes]]) -> None:
    number = 0
    for piece in source:
        if rules.plain and rules.between is None:
            writer.values(piece)
        else:
            writer.put(rules.item(line, number + at) for at, line in enumerate(piece, 1))
            number += len(piece)
            writer.flush()


def _write_keyed(writer: Writer, mark: str, source: Iterator[list[str]]) -> None:
    for piece in source:
        writer.keyed(piece, mark)


def limited(source: Iterator[list[AnyStr]], count: int | None) -> Iterator[list[AnyStr]]:
    """At most so many lines."""
    left = count
    while left is None or left > 0:
        piece = next(source, None)
        if piece is None:
            return
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        yield piece


def _partitions(client: Client, topic: str) -> int:
    """How many there are; a topic that the cluster makes when it is asked for is asked for by settings."""
    if client.config["allow.auto.create.topics"]:
        return len(client.topic(topic).partitions)
    return len(topics.described(client, [topic])[0].partitions)


def _batch_bytes(client: Client, topic: str) -> int:
    """As many as the topic takes, if it may be asked; a record that is larger is the broker's to refuse."""
    try:
        [entry] = configs.described(client, configs.Resource(configs.Kind.TOPIC, topic), ["max.message.bytes"])
    except (ClientError, ValueError):
        return BATCH_BYTES
    return max(1, min(BATCH_BYTES, int(entry.value or BATCH_BYTES) * 9 // 10))


def _header(text: str) -> tuple[str, bytes | None]:
    name, equals, value = text.partition("=")
    if not name:
        raise misused(f"--header {text!r} is not NAME=VALUE.")
    return name, value.encode() if equals else None
