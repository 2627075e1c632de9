"""Confluent's frame: ids, GUIDs in headers, message indexes; and whatever else bytes may be."""

from __future__ import annotations

import io
import uuid

import pytest
from confluent_kafka.schema_registry.common.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SchemaRef, frame, unframe

paths = st.none() | st.lists(st.integers(0, 2**20), min_size=1, max_size=8).map(tuple)


@given(st.integers(0, 2**32 - 1), paths, st.binary())
def test_an_id_before_the_payload_comes_back_and_is_confluents(
    id: int, path: tuple[int, ...] | None, payload: bytes
) -> None:
    written = frame(SchemaRef(id, None, path), payload, Context("t"), in_header=False)
    assert unframe(written, Context("t"), indexes=path is not None) == (SchemaRef(id, None, path), payload)
    theirs = SchemaId("PROTOBUF" if path else "AVRO", id, None, list(path) if path else None)
    assert written == theirs.id_to_bytes() + payload


@given(st.uuids(), paths, st.binary(), st.sampled_from(["key", "value"]))
def test_a_guid_in_the_header_comes_back_and_is_confluents(
    guid: uuid.UUID, path: tuple[int, ...] | None, payload: bytes, field: str
) -> None:
    context = Context("t", field)  # type: ignore[arg-type]
    assert frame(SchemaRef(None, guid, path), payload, context, in_header=True) == payload
    name, carried = context.headers[0]
    assert name == f"__{field}_schema_id" and carried is not None
    assert unframe(payload, context, indexes=path is not None) == (SchemaRef(None, guid, path), payload)
    theirs = SchemaId("PROTOBUF" if path else "AVRO")
    theirs.from_bytes(io.BytesIO(carried))
    assert (theirs.guid, theirs.message_indexes) == (guid, list(path) if path else None)


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_a_frame_or_one_kind_of_error(data: bytes, indexes: bool) -> None:
    try:
        unframe(data, Context("t"), indexes=indexes)
    except SerdeError:
        return
    assert data[0] in (0, 1) and len(data) >= 5


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0", b"\x01" + b"x" * 15, b"\x02abcd", b"hello"])
def test_bytes_without_a_schema_are_refused_with_what_they_begin_with(data: bytes) -> None:
    with pytest.raises(SerdeError, match="not written with a schema registry"):
        unframe(data, Context("t"))
