"""The pages of Connect say what is true: their shell blocks run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from moldau.testing import Broker
from tests.connect.running import Running
from tests.connect.test_cdc_postgres import Database
from tests.test_docs import BLOCKS, DOCS, Place, run

PAGES = {"index": (), "taps": (), "lake": ("deltalake", "pyiceberg"), "dlt": ("dlt",)}  # and the packages they need


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(
    page: str, connect: Running, connect_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing := [name for name in PAGES[page] if find_spec(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    monkeypatch.setenv("MOLDAU_CONNECT_URL", connect.url)
    place = Place(connect_broker.bootstrap_servers, "http://127.0.0.1:8081")
    for _, text in BLOCKS.findall((DOCS / "connect" / f"{page}.md").read_text()):
        run(place, text, tmp_path)


@pytest.mark.needs("postgres")
def test_the_page_of_postgres_runs(
    connect: Running, connect_broker: Broker, cdc_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(cdc_postgres)
    names = {"PGHOST": database.config["database.hostname"], "PGUSER": "test", "PGDATABASE": database.name}
    for name, value in {**names, "MOLDAU_CONNECT_URL": connect.url}.items():
        monkeypatch.setenv(name, value)
    place = Place(connect_broker.bootstrap_servers, "http://127.0.0.1:8081")
    try:
        for _, text in BLOCKS.findall((DOCS / "connect" / "postgres-cdc.md").read_text()):
            run(place, text, tmp_path)
    finally:
        database.close()
