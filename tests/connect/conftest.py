"""One broker and one worker for all tests of Connect that do not need their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from tests.connect.running import BROKER, Running, running, settings
from tests.services import cluster
from tests.spark.postgres import postgres


@pytest.fixture(scope="session")
def connect_broker() -> Iterator[Broker]:
    """A broker; CONFORMANCE_BOOTSTRAP names another, Apache Kafka say."""
    with cluster(BROKER) as started:
        yield started


@pytest.fixture(scope="session")
def connect(connect_broker: Broker) -> Iterator[Running]:
    with running(settings(connect_broker.bootstrap_servers)) as started:
        yield started


@pytest.fixture(scope="session")
def cdc_postgres() -> Iterator[str]:
    """The address of a PostgreSQL whose changes can be captured; each test makes a database of its own in it."""
    with postgres(wal_level="logical", max_replication_slots="100", max_wal_senders="100") as dsn:
        yield dsn
