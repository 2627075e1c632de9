"""Any bytes decode to a message or to a WireError, in room that the input's size bounds."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.wire import messages as m
from moldau.wire import schema
from moldau.wire.codec import decode, encode
from moldau.wire.errors import WireError
from tests.wire.message_values import EVERY, QUICK, full, ids, message

CLAIMS = (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xff")


def survives(cls: type[Any], version: int, data: bytes) -> None:
    with contextlib.suppress(WireError):
        assert isinstance(decode(cls, version, data), cls)


def mutations(data: bytes, dice: random.Random) -> list[bytes]:
    """Cut short, with bytes changed, inserted and taken out."""
    places = [dice.randrange(len(data) + 1) for _ in range(8)]
    noise = dice.randbytes(1)
    return [
        *(data[:i] for i in places),
        *(data[:i] + noise + data[i + 1 :] for i in places),
        *(data[:i] + noise + data[i:] for i in places),
        *(data[:i] + data[i + 1 :] for i in places),
    ]


@pytest.mark.parametrize("case", EVERY, ids=ids)
def test_a_decoder_gives_a_message_or_a_wire_error(case: tuple[str, int]) -> None:
    name, version = case
    cls = m.message(name)

    @QUICK
    @given(message(name, version), st.binary(max_size=60), st.integers(0, 1 << 30))
    def check(value: object, noise: bytes, seed: int) -> None:
        survives(cls, version, noise)
        for data in mutations(encode(value, version), random.Random(seed)):
            survives(cls, version, data)

    check()


def test_every_truncation_is_refused() -> None:
    """A message cut short is never taken for a whole one."""
    for name, version in EVERY:
        cls = m.message(name)
        data = encode(full(schema.message(name), version), version)
        for size in range(len(data)):
            with pytest.raises(WireError):
                decode(cls, version, data[:size])


def test_no_claim_of_a_length_makes_a_decoder_take_room() -> None:
    """Wherever a huge length or count is put, what a decoder allocates stays near the size of its input."""
    latest = dict(EVERY)
    whole = {name: encode(full(schema.message(name), version), version) for name, version in latest.items()}
    for name, version in latest.items():
        survives(m.message(name), version, whole[name])  # compiles the decoder
    tracemalloc.start()
    try:
        for name, data in whole.items():
            for at in range(0, len(data), 1 + len(data) // 20):
                claim = CLAIMS[at % len(CLAIMS)]
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                survives(m.message(name), latest[name], data[:at] + claim + data[at:])
                peak = tracemalloc.get_traced_memory()[1] - before
                assert peak < 100_000 + 100 * len(data), (name, at, claim)
    finally:
        tracemalloc.stop()


def test_time_is_linear_in_the_input() -> None:
    """Many tagged fields, many elements, one long string: no more steps than bytes."""
    tags = b"\xff\xff\x03" + b"\x01\x00" * 65535
    assert decode(m.ResponseHeader, 1, bytes(4) + tags) == m.ResponseHeader(0)
    with pytest.raises(WireError):
        decode(m.ResponseHeader, 1, bytes(4) + b"\xff\xff\xff\xff\x0f" + b"\x01\x00" * 65535)
    many = m.OffsetDeleteRequest("g", [m.OffsetDeleteRequest_OffsetDeleteRequestTopic("t")] * 50_000)
    assert len(decode(m.OffsetDeleteRequest, 0, encode(many, 0)).topics) == 50_000
