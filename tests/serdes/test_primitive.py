"""Serdes without a schema, against confluent-kafka's and Kafka's forms."""

from __future__ import annotations

import pickle
import uuid
from typing import Any

import pytest
from confluent_kafka import serialization as theirs
from hypothesis import given
from hypothesis import strategies as st

from moldau.serdes.context import Context, SerdeError
from moldau.serdes.primitive import PLAIN, Plain

HERE = Context("t")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "bytes": st.binary(),
    "short": st.integers(-(2**15), 2**15 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "json": st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.dictionaries(st.text(), inner),
        max_leaves=5,
    ).filter(lambda value: value is not None),
}


@given(st.data())
@pytest.mark.parametrize("name", PLAIN)
def test_a_value_comes_back(name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[name])
    written = PLAIN[name].to_bytes(value, HERE)
    assert PLAIN[name].from_bytes(written, HERE) == value


@pytest.mark.parametrize(
    ("name", "value", "their"),
    [
        ("integer", -7, theirs.IntegerSerializer()),
        ("double", 0.5, theirs.DoubleSerializer()),
        ("string", "Vltava ř", theirs.StringSerializer()),
    ],
)
def test_the_bytes_are_those_of_confluents_serializers(name: str, value: Any, their: Any) -> None:
    assert PLAIN[name].to_bytes(value, HERE) == their(value)


@pytest.mark.parametrize("name", PLAIN)
def test_null_is_handed_through(name: str) -> None:
    assert PLAIN[name].to_bytes(None, HERE) is None
    assert PLAIN[name].from_bytes(None, HERE) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("short", 40000),
        ("integer", 2**40),
        ("long", "x"),
        ("string", 3),
        ("bytes", "x"),
        ("uuid", "no"),
        ("json", {1, 2}),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SerdeError, match=name):
        PLAIN[name].to_bytes(value, HERE)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("short", b"1"),
        ("integer", b"12345"),
        ("string", b"\xff"),
        ("uuid", b"no"),
        ("json", b"{"),
        ("json", b"NaN"),
        ("json", b"[" * 100_000),
    ],
)
def test_bytes_of_another_kind_are_refused(name: str, data: bytes) -> None:
    with pytest.raises(SerdeError):
        PLAIN[name].from_bytes(data, HERE)


def test_a_uuid_may_be_given_as_text() -> None:
    value = uuid.UUID(int=7)
    assert PLAIN["uuid"].to_bytes(str(value), HERE) == str(value).encode()


@pytest.mark.parametrize("serde", PLAIN.values(), ids=list(PLAIN))
def test_a_serde_is_itself_again_in_another_process(serde: Plain) -> None:
    assert pickle.loads(pickle.dumps(serde)) is serde
