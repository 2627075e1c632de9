"""What is known at a glance is right by its schema too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from moldau.http.documents import ref
from moldau.rest.schemas import DOCUMENTS
from moldau.rest.shapes import KNOWN

ODD = st.sampled_from((None, True, -1, 0, 1, 1.0, 2**31, "x", "\0", [], {}, {"type": "JSON", "data": 1}))
DATA = st.fixed_dictionaries({"type": st.sampled_from(("JSON", "AVRO", "X", None)), "data": ODD}) | ODD
HEADERS = st.lists(st.fixed_dictionaries({"name": ODD, "value": ODD}) | ODD, max_size=2) | ODD
RECORD = st.dictionaries(
    st.sampled_from(("key", "value", "headers", "partition_id", "timestamp", "other")), DATA | HEADERS, max_size=4
)
V2_RECORD = st.dictionaries(st.sampled_from(("key", "value", "partition", "other")), ODD, max_size=3)
V2_RECORDS = st.fixed_dictionaries({"records": st.lists(V2_RECORD | ODD, max_size=3)}, optional={"key_schema": ODD})
BODIES = {"NewRecord": RECORD | ODD, "V2Records": V2_RECORDS | ODD}


@pytest.mark.parametrize("name", KNOWN)
@given(data=st.data())
def test_a_body_that_is_known_is_right(name: str, data: Any) -> None:
    body = data.draw(BODIES[name])
    if KNOWN[name](body):
        Draft202012Validator({**ref(name), "components": {"schemas": DOCUMENTS.components}}).validate(body)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("NewRecord", {"key": {"type": "JSON", "data": 1}, "headers": [{"name": "h", "value": ""}], "partition_id": 0}),
        ("NewRecord", {}),
        ("V2Records", {"records": [{"key": 1, "value": None, "partition": 3}, {}]}),
    ],
)
def test_common_bodies_are_known(name: str, body: Any) -> None:
    assert KNOWN[name](body)
