"""The tools against the broker of the command line's tests, and names that no other test has used."""

from __future__ import annotations

import itertools
import os

import pytest

from moldau.testing import Broker
from tests.cli.kafka.running import Kafka

_numbers = itertools.count()


@pytest.fixture
def kafka_tools(cluster: Broker) -> Kafka:
    return Kafka(cluster.bootstrap_servers)


@pytest.fixture
def name() -> str:
    return f"k{os.getpid()}-{next(_numbers)}"
