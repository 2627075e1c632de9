"""`moldau log`: files of logs on disk, Moldau's or Apache Kafka's, without a broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from moldau.admin.mistakes import NO, Mistake, misused
from moldau.cli import segments
from moldau.cli.commands import NO_CLUSTER, noun
from moldau.cli.kafka import internal_records as internal
from moldau.cli.kafka.record_json import compact
from moldau.cli.options import flag, option
from moldau.cli.output import Column, pick, progress, size, time_of
from moldau.cli.session import Session
from moldau.records.envelope import text_or_base64
from moldau.wire.compression import Compression
from moldau.wire.errors import WireError
from moldau.wire.records import Batch, ControlType, Record, control_type, records

cli, verb = noun(NO_CLUSTER)

Paths = Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files of logs, or directories with such files.")]
Parser = Callable[[int, bytes | None, bytes | None], internal.Text]
CODECS = {codec.value: codec.name.lower() for codec in Compression}


@verb(
    "dump",
    "moldau log dump moldau-data/orders-0",
    "moldau log dump moldau-data/orders-0/00000000000000000000.log --records --from-offset 10 --limit 5",
    "moldau log dump moldau-data/orders-0/00000000000000000000.timeindex -o json",
    "moldau log dump moldau-data/__consumer_offsets-7 --records  (committed offsets of groups)",
)
def dump(
    session: Session,
    paths: Paths,
    with_records: bool = flag("--records -r", "Print records, not only batches."),
    from_offset: int = option("--from-offset", "Start at this offset.", 0, min=0),
    limit: int | None = option("--limit -n", "Print at most this many rows.", min=1),
) -> None:
    """Print batches, records or index entries. Records of Kafka's internal topics are decoded."""
    rows: list[dict[str, Any]] = []
    for file in (file for path in paths for file in segments.find_files(path, segments.LOG)):
        for row in _rows(file, with_records, from_offset):
            if limit is not None and len(rows) >= limit:
                break
            rows.append(row)
    session.show(rows, _columns(rows) if session.for_people else (), "There is nothing in it.")


def _rows(file: Path, with_records: bool, from_offset: int) -> Any:
    match file.suffix:
        case segments.LOG:
            return _batch_rows(file, with_records, from_offset)
        case segments.INDEX:
            return ({"offset": o, "position": p} for o, p in segments.offset_index(file) if o >= from_offset)
        case segments.TIME_INDEX:
            return (
                {"timestamp": t, "time": time_of(t), "offset": o}
                for t, o in segments.time_index(file)
                if o >= from_offset
            )
    raise misused(f"{file} is not a .log, .index or .timeindex file.")


def _batch_rows(file: Path, with_records: bool, from_offset: int) -> Any:
    parse = parser(file)
    try:
        for placed in segments.batches(file):
            if placed.batch.last_offset < from_offset:
                continue
            if not with_records:
                yield _batch(file, placed)
                continue
            for record in records(placed.batch):
                if record.offset >= from_offset:
                    yield _record(placed.batch, record, parse)
    except WireError as error:
        raise Mistake(f"{file}: {error}. `moldau log verify` checks the whole file.") from None


def cell(value: Any) -> str:
    """Write a key or a value for a table."""
    return "" if value is None else value if isinstance(value, str) else compact(value)


SIZE = Column("size", "size", size)
BATCH_COLUMNS = ("first", "last", "records", "position", SIZE, "compression", "time", "producer")
RECORD_COLUMNS = ("offset", "time", Column("key", text=cell), Column("value", text=cell), "headers")


def _columns(rows: list[dict[str, Any]]) -> Any:
    if not rows or ("first" not in rows[0] and "value" not in rows[0]):
        return ()
    return BATCH_COLUMNS if "first" in rows[0] else RECORD_COLUMNS


def _batch(file: Path, placed: segments.Placed) -> dict[str, Any]:
    batch = placed.batch
    return {
        "file": file.name,
        **pick(batch, "first=base_offset", "last=last_offset", "records=count"),
        "position": placed.position,
        "size": batch.size,
        "compression": CODECS.get(batch.compression, str(batch.compression)),
        "time": time_of(batch.max_timestamp),
        "timestamp": batch.max_timestamp,
        "log_append_time": bool(batch.timestamp_type),
        "producer": batch.producer_id if batch.has_producer_id else None,
        **pick(batch, "producer_epoch", "sequence=base_sequence", "leader_epoch=partition_leader_epoch"),
        **pick(batch, "transactional=is_transactional", "control=is_control", "crc"),
        "valid": batch.is_valid(),
    }


def parser(file: Path) -> Parser | None:
    """Return what decodes the records of a file of an internal topic; None for files of other topics."""
    topic = file.absolute().parent.name.rpartition("-")[0]
    if topic not in (internal.OFFSETS, internal.TRANSACTIONS, internal.SHARES, internal.METADATA):
        return None
    return internal.dump_metadata if topic == internal.METADATA else partial(internal.dump_coordinator, topic)


def _record(batch: Batch, record: Record, parse: Parser | None) -> dict[str, Any]:
    key: Any
    value: Any
    if batch.is_control:
        kind = control_type(record.key)
        key, value = ControlType(kind).name if kind in list(ControlType) else str(kind), "(marker)"
    elif parse is not None:
        key, value = map(_document, parse(record.offset, record.key, record.value))
    else:
        key, value = text_or_base64(record.key)[0], text_or_base64(record.value)[0]
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "time": time_of(record.timestamp),
        "key": key,
        "value": value,
        "headers": {json.dumps(name)[1:-1]: text_or_base64(data)[0] for name, data in record.headers},
    }


def _document(text: str | None) -> Any:
    """Return what a program gets: the document, or None for a record that deletes."""
    if text is None or text == internal.DELETED:
        return None
    return json.loads(text) if text.startswith("{") else text


@verb("verify", "moldau log verify moldau-data", "moldau log verify moldau-data/orders-0 --shallow -o json")
def verify(
    session: Session,
    paths: Paths,
    shallow: bool = flag("--shallow", "Do not decode the records of batches whose CRC is right."),
) -> None:
    """Check every batch and index; if something is wrong, exit with code 3."""
    files = [file for path in paths for file in segments.find_files(path, segments.LOG)]
    if not files:
        raise Mistake(f"There are no segments in {', '.join(map(str, paths))}.")
    checked = []
    with progress("segments", sum(file.stat().st_size for file in files)) as bar:
        for file in files:
            checked.append(segments.check(file, deep=not shallow))
            bar.advance(checked[-1].size)
    problems = [
        {"file": str(one.file), "position": one.position, "problem": one.what}
        for done in checked
        for one in done.problems
    ]
    facts = {
        "segments": len(checked),
        "batches": sum(one.batches for one in checked),
        "records": sum(one.records for one in checked),
        "size": sum(one.size for one in checked),
        "problems": problems,
    }
    if session.for_people:
        session.show({**facts, "problems": len(problems)}, ["segments", "batches", "records", SIZE, "problems"])
        session.show(problems)
    else:
        session.show(facts)
    if problems:
        raise typer.Exit(NO)
