"""The sampler rests after a round that took long, but not after one that failed."""

from __future__ import annotations

import threading
import time

import pytest

from moldau.client import Client, ClientError, Error
from moldau.console import sampler


@pytest.mark.parametrize("fails", [True, False])
def test_a_round_that_failed_is_soon_followed_by_another(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    rounds, again = list[float](), threading.Event()

    def sample(*_: object) -> sampler.Sample:
        rounds.append(time.monotonic())
        if len(rounds) > 1:
            again.set()
        time.sleep(1)  # a round that fails has waited for a broker
        if fails:
            raise ClientError(Error.BROKER_NOT_AVAILABLE, "The cluster has no broker 3 just now.")
        return sampler.Sample(0.0, sampler.clusters.ClusterState("c", 1, ()), (), {}, {})

    monkeypatch.setattr(sampler, "sample", sample)
    monkeypatch.setattr(sampler, "WATCHED_S", 0.1)
    one = sampler.Sampler(Client({"bootstrap.servers": "127.0.0.1:1"}))
    one.watch()
    one.start()
    try:
        assert again.wait(6) == fails, "ten seconds of rest follow a second of work"
    finally:
        one.close()
