"""docs/spark.md says what is true: its examples run; and the page of options is that of the tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.spark.page import page
from tests.spark.conftest import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_examples_of_the_page_run(spark: SparkSession, cluster: Cluster, url: str, checkpoint: str) -> None:
    scope = {"bootstrap_servers": cluster.servers, "schema_registry_url": url, "checkpoint": checkpoint}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "spark.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(DOCS / "spark.md"), "exec"), scope)


def test_the_page_of_options_is_made_from_the_tables() -> None:
    assert (DOCS / "spark-options.md").read_text() == page(), "run make docs"
