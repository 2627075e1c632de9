"""A broker for the tests of commands, and the command line that talks to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Client
from moldau.testing import Broker
from tests import services
from tests.cli.running import SMALL, Moldau


@pytest.fixture(scope="session")
def cluster() -> Iterator[Broker]:
    """Shared: every test uses topics of its own."""
    with services.cluster(SMALL) as found:
        yield found


@pytest.fixture
def moldau(cluster: Broker, tmp_path: Path) -> Moldau:
    return Moldau(cluster.bootstrap_servers, tmp_path)


@pytest.fixture
def client(cluster: Broker) -> Iterator[Client]:
    with Client({"bootstrap.servers": cluster.bootstrap_servers}) as made:
        yield made
