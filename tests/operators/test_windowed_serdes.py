"""Windowed keys, subscriptions and answers as Kafka writes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from moldau.operators.foreign_key import Answer, AnswerSerde, Instruction, Subscription, SubscriptionSerde
from moldau.operators.windowed import LAST_TIME, Windowed
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.primitive import STRING

HERE = Context("topic", "key")
TIMES = some.integers(0, LAST_TIME)
KEYS = some.sampled_from(["", "a", "key", "schlüssel", "k" * 40])


@given(KEYS, TIMES, some.integers(1, 2**40))
@settings(max_examples=50, deadline=None)
def test_a_time_windowed_key_ends_in_its_start(key: str, start: int, size: int) -> None:
    serde = TimeWindowedSerde(STRING, size)
    window = Windowed(key, start, min(start + size, LAST_TIME))
    data = serde.to_bytes(window, HERE)
    assert data == key.encode() + start.to_bytes(8, "big")
    assert serde.from_bytes(data, HERE) == window


@given(KEYS, TIMES, TIMES)
@settings(max_examples=50, deadline=None)
def test_a_session_windowed_key_ends_in_its_end_and_start(key: str, one: int, other: int) -> None:
    session = Windowed(key, min(one, other), max(one, other))
    data = SessionWindowedSerde(STRING).to_bytes(session, HERE)
    assert data == key.encode() + session.end.to_bytes(8, "big") + session.start.to_bytes(8, "big")
    assert SessionWindowedSerde(STRING).from_bytes(data, HERE) == session


def test_the_key_of_a_window_stores_changelog_has_a_number_behind_the_start() -> None:
    serde = TimeWindowedSerde(STRING, 10, changelog=True)
    assert serde.from_bytes(b"k" + (20).to_bytes(8, "big") + bytes(4), HERE) == Windowed("k", 20, 30)


def test_null_and_nothing_are_no_key_and_too_few_bytes_are_refused() -> None:
    for serde in (TimeWindowedSerde(STRING, 10), SessionWindowedSerde(STRING)):
        assert serde.to_bytes(None, HERE) is None
        assert serde.from_bytes(None, HERE) is None
        assert serde.from_bytes(b"", HERE) is None
        with pytest.raises(SerdeError, match="too few for a windowed key"):
            serde.from_bytes(b"1234567", HERE)


def test_a_windowed_key_reads_as_kafka_prints_it() -> None:
    assert str(Windowed("card", 0, 5_000)) == f"{Windowed('card', 0, 5_000)}" == "[card@0/5000]"
    assert Windowed("card", 0, 5_000).window.end == 5_000


@pytest.mark.parametrize("hashed", [None, bytes(range(16))])
def test_subscriptions_and_answers_have_kafkas_frames(hashed: bytes | None) -> None:
    subscriptions, answers = SubscriptionSerde(STRING), AnswerSerde(STRING)
    subscription = Subscription(hashed, Instruction.ANSWER_ALWAYS, "key", 3)
    data = subscriptions.to_bytes(subscription, HERE)
    assert data == bytes((0x81 if hashed is None else 1, 2)) + (hashed or b"") + b"key\0\0\0\3"
    assert subscriptions.from_bytes(data, HERE) == subscription
    for value in ("found", None):
        data = answers.to_bytes(Answer(hashed, value, 3), HERE)
        assert data == bytes((0x80 if hashed is None else 0,)) + (hashed or b"") + (value or "").encode()
        assert answers.from_bytes(data, HERE) == Answer(hashed, value)
    with pytest.raises(SerdeError, match="version 2 is not known"):
        subscriptions.from_bytes(b"\2\2key\0\0\0\3", HERE)
