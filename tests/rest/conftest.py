"""One broker and one proxy for all tests of the proxy that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker, broker
from tests.registry.running import Running as Registry
from tests.registry.running import running as running_registry
from tests.rest.running import BROKER, Running, running


@pytest.fixture(scope="session")
def rest_broker() -> Iterator[Broker]:
    with broker(BROKER) as started:
        yield started


@pytest.fixture(autouse=True)
def no_consumers_left(request: pytest.FixtureRequest) -> Iterator[None]:
    proxies = [request.getfixturevalue(name) for name in ("rest", "typed") if name in request.fixturenames]
    before = [len(proxy.instances) for proxy in proxies]
    yield
    for proxy, first in zip(proxies, before, strict=True):
        proxy.delete_instances(first)


@pytest.fixture(scope="session")
def rest(rest_broker: Broker) -> Iterator[Running]:
    with running(rest_broker.bootstrap_servers) as started:
        yield started


@pytest.fixture(scope="session")
def rest_registry(rest_broker: Broker) -> Iterator[Registry]:
    with running_registry(rest_broker.bootstrap_servers) as started:
        yield started


@pytest.fixture(scope="session")
def typed(rest_broker: Broker, rest_registry: Registry) -> Iterator[Running]:
    """A proxy that knows a Schema Registry."""
    with running(rest_broker.bootstrap_servers, registry=rest_registry.url) as started:
        yield started
