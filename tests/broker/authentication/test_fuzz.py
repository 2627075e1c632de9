"""A little of `make fuzz-gate`: damaged input of strangers is refused, and nobody comes in."""

from __future__ import annotations

import hmac
import time
from pathlib import Path

import pytest

from tests.broker.authentication.fuzz import FUZZERS, Inputs, feed, shared_out

EACH_S = 7.0  # a minute in all
FEW = 500


@pytest.mark.parametrize("name", FUZZERS)
def test_damaged_input_is_refused_and_nobody_comes_in(name: str, tmp_path: Path) -> None:
    seed, first, end = int(time.time()), 0, time.monotonic() + EACH_S
    while time.monotonic() < end:
        feed(Inputs(name, range(first, first + FEW), seed, tmp_path))
        first += FEW


def test_every_input_is_fed_once(tmp_path: Path) -> None:
    fed = [(inputs.name, number) for inputs in shared_out(2_000, 1, tmp_path, at_once=30) for number in inputs.numbers]
    assert len(fed) == len(set(fed)) == 2_000


def test_who_would_come_in_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: True)
    with pytest.raises(AssertionError, match="was admitted with"):
        feed(Inputs("PLAIN", range(200), 1, tmp_path))
    assert capsys.readouterr().err.startswith("seed 1, PLAIN, input")
