"""Checkpoints of the metadata: what is written is read, and what makes no sense is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.machines.metadata import checkpoints
from moldau.machines.metadata.checkpoints import (
    Checkpoint,
    checkpoint,
    control,
    metadata_values,
    read_checkpoint,
    voter_controls,
)
from moldau.wire import messages as m
from moldau.wire.errors import WireError
from moldau.wire.records import ControlType, Record, batches, build, control_record, records

NOW, EPOCH = 1_700_000_000_000, 3
FEATURES = [m.FeatureLevelRecord("metadata.version", 30), m.FeatureLevelRecord("group.version", 1)]
HEADER, FOOTER = control(m.SnapshotHeaderRecord(0, NOW), NOW), control(m.SnapshotFooterRecord(0), NOW)
VERSION_1 = control(m.KRaftVersionRecord(0, 1), NOW)


def voter(node: int) -> m.VotersRecord_Voter:
    endpoint = m.VotersRecord_Endpoint("CONTROLLER", "localhost", 9093 + node)
    return m.VotersRecord_Voter(node, bytes([node]) * 16, [endpoint], m.VotersRecord_KRaftVersionFeature(0, 1))


def voters(*nodes: int) -> m.VotersRecord:
    return m.VotersRecord(0, [voter(node) for node in nodes])


def joined(*groups: tuple[bool, Sequence[Record]]) -> bytes:
    """Batches of control records and of others, one after the other."""
    parts, offset = [], 0
    for is_control, some in groups:
        parts.append(build(some, base_offset=offset, control=is_control))
        offset += len(some)
    return b"".join(parts)


@given(
    count=st.integers(0, 2500),
    nodes=st.sets(st.integers(1, 255), max_size=5),
    epoch=st.integers(0, 2**31 - 1),
)
def test_what_is_written_is_read(count: int, nodes: set[int], epoch: int):
    changes = [m.FeatureLevelRecord(f"f{number}", number) for number in range(count)]
    controls = voter_controls(voters(*nodes), NOW) if nodes else []
    data = checkpoint(controls, metadata_values(changes, NOW), NOW, epoch)
    assert read_checkpoint(data) == Checkpoint(changes, voters(*nodes) if nodes else None, 1 if nodes else 0)
    found = list(batches(data))
    assert {batch.partition_leader_epoch for batch in found} == {epoch}
    offsets = [record.offset for batch in found for record in records(batch)]
    assert offsets == list(range(count + len(controls) + 2))
    assert max(batch.count for batch in found) <= checkpoints.BATCH_RECORDS


def test_the_header_and_the_voters_are_one_batch_as_kafka_writes_them():
    data = checkpoint(voter_controls(voters(1), NOW), metadata_values(FEATURES, NOW), NOW, EPOCH)
    assert [(batch.is_control, batch.count) for batch in batches(data)] == [(True, 3), (False, 2), (True, 1)]


def test_the_header_says_how_new_the_newest_record_is():
    data = checkpoint([], [], NOW, EPOCH, contained_ms=0)
    (header,) = records(next(batches(data)))
    assert header == control(m.SnapshotHeaderRecord(0, 0), NOW)


def test_the_records_of_a_log_are_not_a_checkpoint():
    change = control_record(ControlType.LEADER_CHANGE, b"\0\0\0\0\0\1\1\1\0", NOW)
    with pytest.raises(WireError, match="type 2"):
        read_checkpoint(joined((True, [HEADER, change, FOOTER])))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        joined((True, [FOOTER])),
        joined((True, [HEADER])),
        joined((True, [HEADER, HEADER, FOOTER])),
        joined((True, [HEADER, FOOTER, FOOTER])),
        joined((True, [HEADER, FOOTER]), (False, metadata_values(FEATURES, NOW))),
        joined((False, metadata_values(FEATURES, NOW)), (True, [HEADER, FOOTER])),
        joined((True, [HEADER]), (False, [Record(0, NOW, None, b"")]), (True, [FOOTER])),
        joined((True, [HEADER]), (False, [Record(0, NOW, None, b"\1\xff\0")]), (True, [FOOTER])),
        joined((True, [HEADER, control(voters(1), NOW), FOOTER])),
        joined((True, [HEADER, VERSION_1, control(voters(), NOW), FOOTER])),
        joined((True, [HEADER, VERSION_1, control(voters(1, 1), NOW), FOOTER])),
        joined((True, [HEADER, control(m.KRaftVersionRecord(1, 1), NOW), FOOTER])),
    ],
    ids=[
        "empty",
        "no header",
        "no footer",
        "two headers",
        "two footers",
        "records after the footer",
        "records before the header",
        "a record without a value",
        "a record of an unknown type",
        "voters without kraft.version",
        "no voters",
        "one voter twice",
        "a control record of a later version",
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes):
    with pytest.raises(WireError):
        read_checkpoint(data)


def test_every_cut_and_every_flipped_byte_is_noticed():
    data = checkpoint(voter_controls(voters(1, 2), NOW), metadata_values(FEATURES, NOW), NOW, EPOCH)
    for size in range(len(data)):
        with pytest.raises(WireError):
            read_checkpoint(data[:size])
    epochs = {at + byte for batch, at in positions(data) for byte in range(12, 16)}  # the CRC does not cover the epoch
    for at in set(range(len(data))) - epochs:
        with pytest.raises(WireError):
            read_checkpoint(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def test_a_batch_that_is_missing_is_noticed():
    data = checkpoint(voter_controls(voters(1), NOW), metadata_values(FEATURES, NOW), NOW, EPOCH)
    first, values, last = (bytes(batch.view) for batch in batches(data))
    read_checkpoint(first + values + last)
    with pytest.raises(WireError, match="offset 5 where 3 is due"):
        read_checkpoint(first + last)


def positions(data: bytes):
    at = 0
    for batch in batches(data):
        yield batch, at
        at += batch.size
