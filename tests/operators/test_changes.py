"""Changes as bytes, as Kafka Streams 4.3 writes them to the repartition topic of a grouped table."""

from __future__ import annotations

import pytest

from moldau.operators.changes import ChangeSerde
from moldau.operators.record import Change
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.primitive import STRING

HERE = Context("t")


@pytest.mark.parametrize(
    ("change", "data"),
    [
        (Change("new", None), b"new\x01"),
        (Change(None, "old"), b"old\x00"),
        (Change("new", "old"), b"\x06newold\x02"),
        (Change("", "old"), b"\x00old\x02"),
        (None, None),
    ],
)
def test_a_change_is_written_with_its_flag_last(change: Change | None, data: bytes | None) -> None:
    serde = ChangeSerde(STRING)
    assert serde.to_bytes(change, HERE) == data
    assert serde.from_bytes(data, HERE) == change


def test_a_change_from_nothing_to_nothing_is_refused() -> None:
    with pytest.raises(SerdeError, match="from nothing to nothing"):
        ChangeSerde(STRING).to_bytes(Change(None, None), HERE)
    with pytest.raises(SerdeError, match="flag 9"):
        ChangeSerde(STRING).from_bytes(b"x\x09", HERE)
