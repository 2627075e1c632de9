"""The examples of examples/spark do what they say, by their one command."""

from __future__ import annotations

import importlib.util
import pickle
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.client import Record
from tests.spark.conftest import Cluster
from tests.spark.postgres import postgres
from tests.spark.sinks import committed, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "spark"
MAY = 1_777_593_600_000  # 2026-05-01 in UTC


def example(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_topic_is_in_parquet_files_and_a_second_run_adds_what_is_new(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    topic, folder, main = cluster.topic(partitions=2), str(tmp_path / "files"), example("topic_to_parquet").main
    for values in (("a", "b"), ("c",)):
        cluster.put(topic, *values)
        main(["--bootstrap-servers", cluster.servers, "--topic", topic, "--to", folder])
    assert sorted(row.value for row in spark.read.parquet(folder).collect()) == ["a", "b", "c"]


@pytest.mark.needs("postgres")
def test_a_topic_is_in_a_table_of_postgresql_once(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    import psycopg

    topic, main = cluster.topic(), example("topic_to_postgres").main
    cluster.put(topic, Record(timestamp=MAY, key=b"k", value=b"a"), "b")
    with postgres() as dsn:
        for folder in ("one", "another"):  # with a new checkpoint everything is read again
            given = ["--bootstrap-servers", cluster.servers, "--topic", topic, "--table", "orders", "--dsn", dsn]
            main([*given, "--state-dir", str(tmp_path / folder)])
        with psycopg.connect(dsn) as connection:
            found = connection.execute('SELECT "offset", key, value FROM orders ORDER BY 1').fetchall()
    assert found == [(0, "k", "a"), (1, None, "b")]


def test_records_are_scored_by_a_model(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(random_state=0).fit([[0.0, 0.0], [1.0, 1.0]], ["low", "high"])
    file = tmp_path / "model.pickle"
    file.write_bytes(pickle.dumps(model))
    topic, target = cluster.topic(), cluster.topic()
    cluster.put(topic, "[0.1, 0.2]", "[0.9, 0.8]", "nonsense")
    given = ["--bootstrap-servers", cluster.servers, "--topic", topic, "--to", target]
    example("topic_to_prediction").main([*given, "--model", str(file), "--state-dir", str(tmp_path)])
    assert committed(cluster.client, target) == Counter(["low", "high"])


def test_a_day_is_filled_in_once_however_often_the_job_runs(spark: SparkSession, cluster: Cluster) -> None:
    topic, target = cluster.topic(), cluster.topic()
    day = 86_400_000
    headers = (("source", b"shop"),)
    rows = [Record(timestamp=MAY + number * day // 2, value=b"%d" % number, headers=headers) for number in range(-2, 6)]
    cluster.put(topic, *rows)
    main = example("backfill").main
    for _ in range(2):
        given = ["--bootstrap-servers", cluster.servers, "--topic", topic, "--to", target]
        main([*given, "--since", "2026-05-01", "--until", "2026-05-02"])
    found = [(record.value, record.timestamp, record.headers) for _, record in stored(cluster.client, target)]
    assert found == [(b"0", MAY, headers), (b"1", MAY + day // 2, headers)]
