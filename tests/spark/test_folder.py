"""The folder of an application is seen through Spark's file systems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from moldau.plan.conveyor.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_written_is_read_and_batches_are_seen(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    folder = Folder(spark, f"{scheme}{tmp_path}/app")
    assert folder.read("a.json") is None
    assert not folder.has_batches()
    folder.write("a.json", {"one": 1})
    folder.write("a.json", {"two": [2, "ü"]})
    assert folder.read("a.json") == {"two": [2, "ü"]}
    offsets = tmp_path / "app/checkpoint/offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.tmp").touch()
    assert not folder.has_batches()
    (offsets / "0").touch()
    assert folder.has_batches()
