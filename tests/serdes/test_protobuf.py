"""Protobuf, both ways with confluent-kafka's serializer: message indexes, imports as references, dicts, bad bytes."""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import SerializationContext
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.protobuf import Protobuf
from moldau.serdes.registry import Registry
from tests.serdes.protos import Inner, Person, Place

JAN: Any = json_format.ParseDict(
    {
        "name": "Jan ☃",
        "age": 7,
        "home": {"town": "Praha", "height": 0.5},
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "colour": "GREEN",
        "at": "2026-01-02T03:04:05.678Z",
        "big": 2**64 - 1,
        "inners": [{"x": -1}],
    },
    Person(),
)
THERE = SerializationContext("t", "value")
HERE = Context("t")


@pytest.mark.parametrize(("kind", "value"), [(Person, JAN), (Inner, Inner(x=5)), (Place, Place(town="x"))])
def test_both_write_the_same_and_read_each_other(registry: Registry, client: Any, kind: Any, value: Any) -> None:
    ours = Protobuf.of(registry, kind)
    data = ours.to_bytes(value, HERE)
    assert data == ProtobufSerializer(kind, client)(value, THERE)
    assert ProtobufDeserializer(kind, schema_registry_client=client)(data, THERE) == value
    assert ours.from_bytes(data, HERE) == value


def test_without_a_class_one_is_made_from_the_registry(registry: Registry, client: Any) -> None:
    data = ProtobufSerializer(Inner, client)(Inner(x=5), THERE)
    read = Protobuf.of(registry).from_bytes(data, HERE)
    assert read.DESCRIPTOR.full_name == "org.Person.Inner" and read.x == 5
    data = ProtobufSerializer(Person, client)(JAN, THERE)
    read = Protobuf.of(registry).from_bytes(data, HERE)
    assert json_format.MessageToDict(read) == json_format.MessageToDict(JAN)


def test_a_dict_is_written_as_the_message_of_the_latest_schema(registry: Registry) -> None:
    Protobuf.of(registry, Person).to_bytes(JAN, HERE)
    serde = Protobuf.of(registry, message="org.Person", settings={"use.latest.version": True})
    data = serde.to_bytes(json_format.MessageToDict(JAN), HERE)
    assert Protobuf.of(registry, Person).from_bytes(data, HERE) == JAN
    with pytest.raises(SerdeError, match=r"does not fit the message org\.Person"):
        serde.to_bytes({"nome": "x"}, HERE)


def test_a_guid_in_the_header_names_message_and_all(registry: Registry) -> None:
    here = Context("t")
    data = Protobuf.of(registry, Inner, settings={"schema.id.in": "header"}).to_bytes(Inner(x=1), here)
    assert data == b"\x08\x02"
    assert Protobuf.of(registry).from_bytes(data, here).x == 1


def test_imports_are_registered_under_their_names(registry: Registry, client: Any) -> None:
    Protobuf.of(registry, Person).to_bytes(JAN, HERE)
    assert sorted(client.get_subjects()) == ["place.proto", "t-value"]


def test_a_message_of_another_class_is_refused(registry: Registry) -> None:
    with pytest.raises(SerdeError, match="is a Place, not a Person"):
        Protobuf.of(registry, Person).to_bytes(Place(), HERE)


@pytest.mark.parametrize("path", [b"\x02\x7e", b"\x04\x02\x08", b"\x7f", b"\xff\xff\xff\xff\xff\xff"])
def test_a_message_index_that_leads_nowhere_is_refused(registry: Registry, path: bytes) -> None:
    Protobuf.of(registry, Person).to_bytes(JAN, HERE)
    with pytest.raises(SerdeError):
        Protobuf.of(registry).from_bytes(b"\0\0\0\0\x02" + path, HERE)


@cache
def framed() -> tuple[Protobuf, bytes]:
    serde = Protobuf.of(Registry.connect({"schema.registry.url": "mock://damaged"}), Person)
    written = serde.to_bytes(JAN, HERE)
    assert written is not None
    return serde, written[:6]


@given(st.binary(max_size=60))
def test_damaged_bytes_give_a_message_or_one_kind_of_error(payload: bytes) -> None:
    serde, frame = framed()
    with contextlib.suppress(SerdeError):
        serde.from_bytes(frame + payload, HERE)
