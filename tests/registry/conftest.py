"""One broker and one registry for all tests of the registry that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker, broker, eventually
from tests.registry.running import BROKER, Running, running, unique


@pytest.fixture(scope="session")
def registry_broker() -> Iterator[Broker]:
    with broker(BROKER) as started:
        yield started


@pytest.fixture(scope="session")
def registry(registry_broker: Broker) -> Iterator[Running]:
    with running(registry_broker.bootstrap_servers) as started:
        eventually(lambda: started.get("/master_available") == {"master_available": True})  # it leads
        yield started


@pytest.fixture
def subject() -> str:
    return unique()
