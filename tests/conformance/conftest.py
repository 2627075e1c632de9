"""One broker for all conformance tests of a worker, and topics with names of their own.

`CONFORMANCE_BOOTSTRAP=host:port` runs the same tests against another broker, so that what they claim of Kafka can be
checked on Apache Kafka itself.
"""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.java_tools import Tools, started

OTHER = "CONFORMANCE_BOOTSTRAP"


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    return os.environ.get(OTHER) or request.getfixturevalue("kafka_shared").bootstrap_servers


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture(scope="session")
def jvm(kafka_libs: Path) -> Iterator[subprocess.Popen[str]]:
    """One JVM for all of Kafka's tools: to start it takes longer than most of them."""
    with started(kafka_libs) as process:
        yield process


@pytest.fixture(scope="session")
def run(jvm: subprocess.Popen[str], bootstrap: str) -> Tools:
    """Runs a tool against the broker."""
    return Tools(jvm, bootstrap)


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[str], str]:
    """Names that no other test, worker or run has used: the broker may be a shared one."""
    numbers = itertools.count()
    return lambda stem: f"{stem}-{os.getpid()}-{os.urandom(3).hex()}-{next(numbers)}"


@pytest.fixture
def new_topic(admin: AdminClient, fresh_name: Callable[[str], str]) -> Callable[..., str]:
    def make(partitions: int = 1, **config: str) -> str:
        name = fresh_name("t")
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, -1, config=settings)])[name].result(120)
        deadline = time.monotonic() + 60
        while name not in admin.list_topics(timeout=60).topics:  # Apache Kafka learns of it a moment later
            assert time.monotonic() < deadline, f"{name} was created and does not show up"
        return name

    return make


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    return new_topic()
