"""One broker and one proxy for all tests of the proxy that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker, broker
from tests.rest.running import BROKER, Running, running


@pytest.fixture(scope="session")
def rest_broker() -> Iterator[Broker]:
    with broker(BROKER) as started:
        yield started


@pytest.fixture(scope="session")
def rest(rest_broker: Broker) -> Iterator[Running]:
    with running(rest_broker.bootstrap_servers) as started:
        yield started
