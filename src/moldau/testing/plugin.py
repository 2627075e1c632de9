"""The pytest plugin. Every test run where Moldau is installed loads it, so it imports nothing early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.testing import Broker, Cluster
    from moldau.testing.connectors import Connect
    from moldau.testing.sql import Ksql

BROKERS = pytest.StashKey[list[Any]]()
# Tests write records of any age, and a run may be long: retention must not delete them meanwhile.
OF_A_RUN = {"log.retention.check.interval.ms": 24 * 3600 * 1000}


@contextmanager
def _started(node: pytest.Item | pytest.Session, settings: dict[str, Any]) -> Iterator[Broker]:
    from moldau.testing import broker

    with broker(settings) as started:
        brokers = node.stash.setdefault(BROKERS, [])
        brokers.append(started)
        try:
            yield started
        finally:
            brokers.remove(started)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Run a broker for this test alone. `@pytest.mark.kafka(num_partitions=3)` gives it settings."""
    settings = {
        key.replace("_", "."): value
        for marker in reversed(list(request.node.iter_markers("kafka")))
        for key, value in marker.kwargs.items()
    }
    with _started(request.node, settings) as started:
        yield started


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cluster]]:
    """Start clusters for this test alone: `kafka_cluster(3)`; see `moldau.testing.Cluster` for what can befall them."""
    from moldau.testing import cluster

    with ExitStack() as started:

        def start(count: int = 3, **settings: Any) -> Cluster:
            named = {key.replace("_", "."): str(value) for key, value in settings.items()}
            made = started.enter_context(cluster(count, named))
            request.node.stash.setdefault(BROKERS, []).extend(made.brokers.values())
            return made

        yield start


@pytest.fixture(scope="session")
def kafka_shared(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """Run one broker for all tests: faster, if each test uses its own topics (`kafka_shared.create_topic()`)."""
    with _started(request.session, OF_A_RUN) as started:
        yield started


@pytest.fixture
def connect(kafka_shared: Broker) -> Iterator[Connect]:
    """Run a worker of Connect in this process: `connect.run(weather, topic="weather")` starts a connector."""
    from moldau.testing.connectors import connect

    with connect(kafka_shared.bootstrap_servers) as started:
        yield started


@pytest.fixture(scope="session")
def ksql(kafka_shared: Broker) -> Iterator[Ksql]:
    """Run one SQL server for all tests: `ksql.execute("CREATE STREAM ...;")`, `ksql.until("SELECT ...;", rows)`."""
    from moldau.testing.sql import sql_server

    with sql_server(kafka_shared.bootstrap_servers) as started:
        yield started


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "kafka(**settings): settings of the broker that the fixture `kafka` starts")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Show the log of the broker if a test failed."""
    report = yield
    if report.failed:
        shared = item.session.stash.get(BROKERS, []) if "kafka_shared" in getattr(item, "fixturenames", ()) else []
        for started in (*item.stash.get(BROKERS, []), *shared):
            report.sections.append((f"broker {started.bootstrap_servers}", started.log[-20_000:]))
    return report
