"""`moldau produce`: records from stdin or files to a topic, as kcat -P does."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, AnyStr, Literal

import typer

from moldau.admin import configs, topics
from moldau.admin.mistakes import INTERRUPTED, misused
from moldau.cli.commands import Topic, command
from moldau.cli.options import epilog, flag, option
from moldau.cli.record_options import Count, Delimiter, Formats, KeyDelimiter, Quiet
from moldau.cli.session import Session
from moldau.client import Client, ClientError
from moldau.records import lines
from moldau.records.formats import Wanted, codec, connect_registry
from moldau.records.partitioners import PARTITIONERS
from moldau.records.template import delimiter as delimiter_of
from moldau.records.writing import BATCH_BYTES, Writer
from moldau.wire.compression import Compression

EPILOG = epilog(
    "echo hello | moldau produce orders",
    "moldau produce orders --key-delimiter : --file orders.txt",
    "echo '{\"id\": 1}' | moldau produce orders --value-format avro --value-schema order.avsc",
    "echo '7:' | moldau produce customers -K : --null",
    "moldau consume orders -J --exit | moldau produce copy -J",
    "moldau produce orders --file orders.txt --compression zstd --transactional-id load-1",
)
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


def produce(
    session: Session,
    topic: Topic,
    *,
    file: list[str] | None = option("--file -l", "Read lines from this file instead of stdin; repeatable."),
    whole: bool = flag("--whole", "Make each --file one record."),
    partition: int | None = option("--partition -p", "Write all records to this partition.", min=0),
    key: str | None = option("--key -k", "Use this key for all records."),
    key_delimiter: KeyDelimiter = None,
    delimiter: Delimiter = "\\n",
    header: list[str] | None = option("--header -H", "Add a header to all records; repeatable.", metavar="NAME=VALUE"),
    null: bool = flag("--null -Z", "Make empty values and keys null."),
    envelope: bool = flag("--json -J", "Read lines of JSON, as consume -J prints them."),
    timestamp: int | None = option("--timestamp", "Timestamp of all records, in ms.", min=0),
    compression: Codec = option("--compression -z", "Compression of batches.", "none"),
    level: int | None = option("--compression-level", "Compression level."),
    partitioner: Literal["murmur2", "crc32", "random"] = option(
        "--partitioner", "Choose partitions by key as Java's clients do, as librdkafka does, or at random.", "murmur2"
    ),
    acks: int | None = option("--acks", "Acknowledgements to wait for; -1 means all replicas in sync.", min=-1, max=1),
    transactional_id: str | None = option(
        "--transactional-id", "Write all records in one transaction; an error or Ctrl-C aborts it."
    ),
    count: Count = None,
    quiet: Quiet = False,
    formats: Formats,
    strategy: str | None = option("--subject-strategy", "Name subjects by TOPIC, RECORD or TOPIC_RECORD."),
) -> None:
    """Write a record for each line of stdin or of files.

    With -K the key stands before the value. With a format, lines are JSON (avro, json-schema, protobuf, json) or text
    in that form (hex, base64, long ...). -J reads whole records. The number of records is printed on stderr.
    """
    if whole and not file:
        raise misused("--whole needs --file.")
    if key is not None and key_delimiter is not None:
        raise misused("Give --key or --key-delimiter, not both.")
    rules = lines.Rules(
        topic,
        _codec(session, formats.key(strategy)),
        _codec(session, formats.value(strategy)),
        None if key_delimiter is None else delimiter_of(key_delimiter, "--key-delimiter"),
        key,
        tuple(_header(text) for text in header or ()),
        null,
        envelope,
        partition,
        timestamp,
    )
    client, codec = session.client, Compression[compression.upper()]
    chosen = PARTITIONERS[partitioner]
    writer = Writer(client, topic, _partitions(client, topic), chosen, codec, level, transactional_id, acks)
    writer.batch_bytes = _batch_bytes(client, topic)
    files = [Path(name) for name in file or ()]
    end = delimiter_of(delimiter, "--delimiter")
    mark = rules.between if rules.plain and not whole else None
    if mark is not None:
        texts = limit(lines.pieces(files, lines.latin1(end), lines.latin1), count)
        _run(writer, lambda: _write_keyed(writer, lines.latin1(mark), texts), quiet)
    else:
        source = limit(lines.whole(files) if whole else lines.pieces(files, end, bytes), count)
        _run(writer, lambda: _write(writer, rules, source), quiet)


cli = command(produce, without=("output", "registry_user"))


def _codec(session: Session, wanted: Wanted) -> Any:
    return codec(wanted, partial(connect_registry, session.connection), writing=True)


def _run(writer: Writer, write: Callable[[], None], quiet: bool) -> None:
    try:
        write()
        writer.close()
    except KeyboardInterrupt:
        aborted = writer.transactional_id is not None
        if aborted:
            writer.abort()
        else:
            writer.close()
        print(f"{writer.count} records {'aborted' if aborted else 'written'}", file=sys.stderr)
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


def limit(source: Iterator[list[AnyStr]], count: int | None) -> Iterator[list[AnyStr]]:
    """Cut off after this many lines."""
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
    """Count the partitions; with allow.auto.create.topics the cluster creates a topic that is missing."""
    if client.config["allow.auto.create.topics"]:
        return len(client.topic(topic).partitions)
    return len(topics.described(client, [topic])[0].partitions)


def _batch_bytes(client: Client, topic: str) -> int:
    """Return the batch size that the topic allows, if we may read it; the broker refuses a larger record."""
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
