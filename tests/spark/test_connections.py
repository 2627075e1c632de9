"""Clients that the tasks of a process share."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from moldau.spark import connections
from moldau.spark.connections import MOST, client_for


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(connections, "_clients", {})
    yield


def settings(number: int) -> dict[str, str]:
    return {"bootstrap.servers": f"127.0.0.1:{number + 1}"}


def test_a_client_in_use_stays_open_when_others_need_its_place() -> None:
    used = client_for(settings(0))
    for number in range(MOST):
        client_for(settings(number + 1))
    assert not used.brokers.closed
    assert client_for(settings(0)) is not used, "its place is taken"


def test_a_client_that_nobody_uses_any_more_is_closed() -> None:
    brokers = client_for(settings(0)).brokers
    for number in range(MOST):
        client_for(settings(number + 1))
    gc.collect()
    assert brokers.closed


def test_the_client_that_was_not_used_for_longest_makes_room() -> None:
    first = client_for(settings(0))
    for number in range(1, MOST):
        client_for(settings(number))
    assert client_for(settings(0)) is first
    client_for(settings(MOST))
    assert client_for(settings(0)) is first
    assert len(connections._clients) == MOST
    assert {pid for pid, _ in connections._clients} == {os.getpid()}
