"""The host of Java plugins with the sample plugin, one for all tests of a process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.connect.jvm import catalogue, libs
from moldau.connect.jvm.connector import JavaConnector
from moldau.connect.jvm.host import Host
from tests.needs import find

NUMBERS, KEEPER = "sample.Sample$Numbers", "sample.Sample$Keeper"
SUFFIX, LONG_KEY, BACKWARDS = "sample.Sample$Suffix", "sample.Sample$LongKey", "sample.Sample$Backwards"


def plugin_settings() -> dict[str, str]:
    """Settings of a worker that has the sample plugin."""
    return {"plugin.path": str(find("sample-plugin").path), libs.LIBS: str(find("kafka-jars").path)}


class Java:
    """A host and the connectors of the sample plugin."""

    def __init__(self, host: Host) -> None:
        self.host = host
        place = find("sample-plugin").path
        assert place is not None
        self.entries = {one.class_name: one for one in catalogue.scanned(host, place / "sample")}

    def connector(self, name: str) -> JavaConnector:
        return JavaConnector(self.host, self.entries[name])


@pytest.fixture(scope="session")
def java() -> Iterator[Java]:
    host = Host(str(find("kafka-jars").path))
    try:
        yield Java(host)
    finally:
        host.close()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"
