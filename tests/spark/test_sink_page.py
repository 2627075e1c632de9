"""docs/spark-sink.md says what is true: its examples run, one after the other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from moldau.testing import Broker
from tests.registry.running import running
from tests.spark.conftest import Cluster
from tests.spark.sinks import committed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark-sink.md"


def test_the_examples_of_the_page_run(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    cluster = Cluster(kafka.bootstrap_servers)
    with running(cluster.servers) as registry:
        scope = {
            "spark": spark,
            "servers": cluster.servers,
            "schema_registry_url": registry.url,
            "folder": str(tmp_path),
        }
        blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
        assert blocks
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), scope)
        assert registry.get("/subjects") == ["orders-value"]
    assert committed(cluster.client, "capitals") == Counter(["FIRST", "SECOND"])
    assert committed(cluster.client, "shouts") == Counter(["first!", "second!"])
    cluster.client.close()
