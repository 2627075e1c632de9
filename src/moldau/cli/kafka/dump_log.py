"""kafka-dump-log: prints the files of a log, without a broker."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from moldau.cli.kafka import internal_records as internal
from moldau.cli.kafka.deserializers import KNOWN
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, require
from moldau.cli.kafka.internal_records import Text
from moldau.cli.kafka.record_json import compact, to_json
from moldau.cli.kafka.running import OK, Terse
from moldau.log.index import ABORTED_ENTRY, OFFSET_ENTRY, TIME_ENTRY
from moldau.wire import codec, messages
from moldau.wire.compression import Compression
from moldau.wire.errors import WireError
from moldau.wire.records import HEADER_SIZE, MAGIC, Batch, Record, control_type, records

MOST = 2**31 - 1
CODECS = {codec.value: codec.name.lower() for codec in Compression}
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
STRING = "org.apache.kafka.tools.api.StringDecoder"
DECODERS = {
    "StringDecoder": lambda data: data.decode(errors="replace"),
    "DefaultDecoder": lambda data: repr(data),
    "IntegerDecoder": lambda data: KNOWN["Integer"](data).decode(),
    "LongDecoder": lambda data: KNOWN["Long"](data).decode(),
}
# Control records -> how the tool names them, and what they are.
CONTROLS = {
    2: ("LeaderChange:", "LeaderChangeMessage"),
    3: ("SnapshotHeader", "SnapshotHeaderRecord"),
    4: ("SnapshotFooter", "SnapshotFooterRecord"),
    5: ("KRaftVersion", "KRaftVersionRecord"),
    6: ("KRaftVoters", "VotersRecord"),
}
Parser = Callable[[int, bytes | None, bytes | None], Text]
INTERNAL: dict[str, Parser] = {
    "offsets-decoder": partial(internal.dump_coordinator, internal.OFFSETS),
    "transaction-log-decoder": partial(internal.dump_coordinator, internal.TRANSACTIONS),
    "cluster-metadata-decoder": internal.dump_metadata,
    "share-group-state-decoder": partial(internal.dump_coordinator, internal.SHARES),
}
PRINTING = ("print-data-log", *INTERNAL, "value-decoder-class", "key-decoder-class")


class Findings:
    """The problems found in files, printed at the end."""

    def __init__(self) -> None:
        self.problems: dict[str, list[str]] = {}

    def add(self, heading: str, line: str) -> None:
        self.problems.setdefault(heading, []).append(line)

    def print(self) -> None:
        for heading, lines in self.problems.items():
            print(heading, *lines, sep="\n", file=sys.stderr)


def run(options: Options) -> int:
    require(options, "files")
    findings = Findings()
    for name in options["files"].split(","):
        print(f"Dumping {name}")
        path = Path(name)
        dump = DUMPS.get(path.suffix)
        if dump is None:
            print(f"Ignoring unknown file {name}", file=sys.stderr)
        else:
            dump(path, options, findings)
    findings.print()
    return OK


def parser(options: Options) -> Parser:
    for name, parse in INTERNAL.items():
        if name in options:
            return parse
    key, value = (decoder(options[f"{what}-decoder-class"]) for what in ("key", "value"))
    return lambda offset, k, v: (None if k is None else key(k), None if v is None else value(v))


def decoder(name: str) -> Callable[[bytes], str]:
    found = DECODERS.get(name.rpartition(".")[2])
    if found is None:
        known = ", ".join(DECODERS)
        raise Usage(f"The decoder {name} is a class of Java, which cannot be run here; there are {known}.")
    return found


def start_offset(path: Path) -> int:
    text = path.name.split(".")[0]
    if not text.isdecimal():
        raise Terse(f'For input string: "{text}"')
    return int(text)


def batches(data: memoryview) -> Iterator[tuple[int, Batch]]:
    """Yield batches and their positions, up to the first bytes that are not a batch."""
    at = 0
    while len(data) - at >= HEADER_SIZE:
        try:
            batch = Batch(data, at)
        except WireError:
            return
        if not batch.is_whole:
            return
        yield at, batch
        at += batch.size


def dump_segment(path: Path, options: Options, findings: Findings) -> None:
    print(title(path))
    limit = options["max-bytes"]
    data = memoryview(path.read_bytes())[:limit]
    prints = bool(options.given(*PRINTING))
    parse = parser(options) if prints else None
    valid, last = 0, -1
    out = sys.stdout
    for at, batch in batches(data):
        out.write(batch_line(at, batch) + "\n")
        valid = at + batch.size
        if prints or "deep-iteration" in options:
            for record in records(batch):
                if last >= 0 and record.offset != last + 1:
                    heading = f"Non-consecutive offsets in {path.absolute()}"
                    findings.add(heading, f"  {last} is followed by {record.offset}")
                last = record.offset
                out.write(record_line(batch, record, parse, "skip-record-metadata" in options) + "\n")
    if len(data) > valid and limit == MOST:
        print(f"Found {len(data) - valid} invalid bytes at the end of {path.name}")


def title(path: Path) -> str:
    if path.suffix == ".log":
        return f"Log starting offset: {start_offset(path)}"
    match = re.fullmatch(r"(\d+)-(\d+)\.checkpoint", path.name)
    if not match:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {int(match[1])}, epoch: {int(match[2])}"


def batch_line(at: int, batch: Batch) -> str:
    horizon = "OptionalLong.empty" if batch.delete_horizon is None else f"OptionalLong[{batch.delete_horizon}]"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_java(batch.is_transactional)} isControl: {_java(batch.is_control)} "
        f"deleteHorizonMs: {horizon} position: {at} {TIMESTAMP_TYPES[batch.timestamp_type]}: {batch.max_timestamp} "
        f"size: {batch.size} magic: {MAGIC} compresscodec: {CODECS.get(batch.compression, 'unknown')} "
        f"crc: {batch.crc} isvalid: {_java(batch.is_valid())}"
    )


def _java(value: bool) -> str:
    return str(value).lower()


def record_line(batch: Batch, record: Record, parse: Parser | None, without_metadata: bool) -> str:
    line = "|"
    if not without_metadata:
        sequence = -1 if batch.base_sequence < 0 else batch.base_sequence + record.offset - batch.base_offset & MOST
        line += (
            f" offset: {record.offset} {TIMESTAMP_TYPES[batch.timestamp_type]}: {record.timestamp} "
            f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {sequence} "
            f"headerKeys: [{','.join(name for name, _ in record.headers)}]"
        )
        if batch.is_control:
            line += control_text(record)
    if parse and not batch.is_control:
        key, payload = parse(record.offset, record.key, record.value)
        line += f" key: {key}" if key is not None else ""
        line += f" payload: {payload}" if payload is not None else ""
    return "" if line == "|" else line


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def control_text(record: Record) -> str:
    kind = control_type(record.key)
    if kind in (0, 1):
        epoch = int.from_bytes((record.value or b"")[2:6], signed=True)
        return f" endTxnMarker: {'COMMIT' if kind == 1 else 'ABORT'} coordinatorEpoch: {epoch}"
    if kind not in CONTROLS:
        return f" controlType: UNKNOWN({kind})"
    name, cls = CONTROLS[kind]
    version = int.from_bytes((record.value or b"")[:2], signed=True)
    found = codec.decode(messages.message(cls), version, record.value or b"", 0)
    return f" {name} {compact(to_json(found, version))}"


def dump_index(path: Path, options: Options, findings: Findings) -> None:
    entries = list(OFFSET_ENTRY.iter_unpack(_whole(path, OFFSET_ENTRY.size)))
    base = start_offset(path)
    if not entries:
        print(f"{path} is empty.")
        return
    if "index-sanity-check" in options:
        check_index(path, entries, base)
        return
    log = memoryview(path.with_suffix(".log").read_bytes())
    for number, (relative, position) in enumerate(entries):
        if number and not relative:
            return  # the rest was never written
        found = next((batch.last_offset for _, batch in batches(log[position:])), -1)
        if found != base + relative:
            line = f"  Index offset: {base + relative}, log offset: {found}"
            findings.add(f"Mismatches in :{path.absolute()}", line)
        if "verify-index-only" not in options:
            print(f"offset: {base + relative} position: {position}")


def check_index(path: Path, entries: list[tuple[int, ...]], base: int) -> None:
    if path.stat().st_size % OFFSET_ENTRY.size or entries[-1][0] < 0 or (len(entries) > 1 and not entries[-1][0]):
        raise Terse(f"Corrupt index found, index file ({path}) has non-zero size but the last offset is {base}.")
    print(f"{path} passed sanity check.")


def _whole(path: Path, size: int) -> bytes:
    data = path.read_bytes()
    return data[: len(data) - len(data) % size]


def dump_time_index(path: Path, options: Options, findings: Findings) -> None:
    entries = list(TIME_ENTRY.iter_unpack(_whole(path, TIME_ENTRY.size)))
    if "index-sanity-check" in options:
        print(f"{path} passed sanity check.")
        return
    base, where, before = start_offset(path), path.absolute(), -1
    by_last = {batch.last_offset: batch for _, batch in batches(memoryview(path.with_suffix(".log").read_bytes()))}
    for number, (timestamp, relative) in enumerate(entries):
        if number and not relative:
            return
        offset = base + relative
        batch = by_last.get(offset)
        if batch is None:
            found = min((last for last in by_last if last > offset), default=-1)
            heading = "The following indexed offsets are not found in the log."
            findings.add(heading, f"Indexed offset: {offset}, found log offset: {found}")
        else:
            newest = max((record.timestamp for record in records(batch)), default=-1)
            if newest != timestamp:
                line = f"  Index timestamp: {timestamp}, log timestamp: {newest}"
                findings.add(f"Found timestamp mismatch in :{where}", line)
            if before >= timestamp:
                line = f"  Index timestamp: {timestamp}, Previously indexed timestamp: {before}"
                findings.add(f"Found out of order timestamp in :{where}", line)
        if "verify-index-only" not in options:
            print(f"timestamp: {timestamp} offset: {offset}")
        before = timestamp


def dump_aborted(path: Path, options: Options, findings: Findings) -> None:
    for version, producer, first, last, stable in ABORTED_ENTRY.iter_unpack(_whole(path, ABORTED_ENTRY.size)):
        print(
            f"version: {version} producerId: {producer} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )


def dump_producers(path: Path, options: Options, findings: Findings) -> None:
    data = path.read_bytes()
    try:
        found = codec.decode(messages.ProducerSnapshot, int.from_bytes(data[:2], signed=True), data, 2)
    except WireError as error:
        print(f"Snapshot failed schema validation: {error}", file=sys.stderr)
        return
    for row in found.producer_entries:
        line = (
            f"producerId: {row.producer_id} producerEpoch: {row.epoch} coordinatorEpoch: {row.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(row.current_txn_first_offset)} lastTimestamp: {row.timestamp} "
        )
        if row.last_offset >= 0:
            first = row.last_sequence - row.offset_delta & MOST
            line += (
                f"firstSequence: {first} lastSequence: {row.last_sequence} lastOffset: {row.last_offset} "
                f"offsetDelta: {row.offset_delta} timestamp: {row.timestamp}"
            )
        print(line)


def _optional(value: int) -> str:
    return "OptionalLong.empty" if value < 0 else f"OptionalLong[{value}]"


DUMPS = {
    ".log": dump_segment,
    ".checkpoint": dump_segment,
    ".index": dump_index,
    ".timeindex": dump_time_index,
    ".snapshot": dump_producers,
    ".txnindex": dump_aborted,
}

TOOL = Tool(
    "kafka-dump-log",
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment.",
    (
        Flag("files", "file1, file2, ...", "Print .log, .index, .timeindex, .snapshot, .txnindex, .checkpoint files."),
        Flag("print-data-log", help="Print records with their keys and values; decoders do so too."),
        Flag("verify-index-only", help="Check indexes without printing them."),
        Flag("index-sanity-check", help="Only check whether a broker would accept the indexes."),
        Flag("max-message-size", "size", "Size of the largest record.", int, 5 * 1024 * 1024),
        Flag("max-bytes", "size", "Read this many bytes of a .log.", int, MOST),
        Flag("deep-iteration", help="Print records, not only batches."),
        Flag("value-decoder-class", "class", "Decode values with this class.", default=STRING, optional=True),
        Flag("key-decoder-class", "class", "Decode keys with this class.", default=STRING, optional=True),
        Flag("offsets-decoder", help="Decode records of __consumer_offsets."),
        Flag("transaction-log-decoder", help="Decode records of __transaction_state."),
        Flag("cluster-metadata-decoder", help="Decode records of the cluster's metadata."),
        Flag(
            "remote-log-metadata-decoder",
            help="Decode records of tiered storage.",
            refused="there is no tiered storage here; --print-data-log shows the bytes.",
        ),
        Flag("share-group-state-decoder", help="Decode records of __share_group_state."),
        Flag("skip-record-metadata", help="Print only keys and values of records."),
    ),
    run,
)
