"""The commands of the tutorial run, one after the other, and print what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.testing import Broker
from moldau.testing.sql import Ksql
from tests.test_docs import BLOCKS, DOCS, Place, run

TUTORIAL = DOCS / "sql-tutorial.md"


def test_tutorial_runs_from_nothing_to_a_pull_query(
    ksql: Ksql, kafka_shared: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOLDAU_SQL_SERVER", ksql.url)
    blocks = [text for kind, text in BLOCKS.findall(TUTORIAL.read_text()) if kind == "sh"]
    assert len(blocks) == 4
    for text in blocks:
        run(Place(kafka_shared.bootstrap_servers, "http://127.0.0.1:1"), text, tmp_path)
