"""A little of `make fuzz-gate`: damaged input of strangers is refused, and nobody comes in."""

from __future__ import annotations

import hmac
import time

import pytest

from tests.broker.authentication.fuzz import run


def test_damaged_input_is_refused_and_nobody_comes_in() -> None:
    assert sum(inputs for _, inputs, _ in run(2_000, int(time.time()))) == 2_000


def test_who_would_come_in_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: True)
    with pytest.raises(AssertionError, match="was admitted with"):
        list(run(200, 1))
    assert capsys.readouterr().err.startswith("seed 1, PLAIN, input")
