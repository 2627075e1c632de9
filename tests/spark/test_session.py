"""The session: which settings it has where, and that Spark keeps to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.session import EVERYWHERE, LOCAL, LOGGING, cores_of, settings
from moldau.spark.session.private import file_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOME = Path("/nowhere")


def test_a_session_runs_on_this_machine_unless_told_otherwise() -> None:
    assert settings(None, HOME)["spark.master"] == "local[*]"
    assert settings("spark://host:7077", HOME)["spark.master"] == "spark://host:7077"
    assert "spark.master" not in settings(None, HOME, in_a_job=True)


def test_a_cluster_gets_no_settings_that_hold_on_one_machine_only() -> None:
    found = settings("spark://host:7077", HOME)
    assert set(found) == {row.name for row in EVERYWHERE} | {"spark.master"}
    assert {row.name for row in LOCAL} <= set(settings("local", HOME))


def test_every_setting_has_its_reason() -> None:
    assert all(row.reason for row in (*EVERYWHERE, *LOCAL))


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2, 4]", 2)])
def test_there_are_as_many_state_stores_as_cores(master: str, cores: int) -> None:
    assert cores_of(master) == cores
    assert settings(master, HOME)["spark.sql.shuffle.partitions"] == str(cores)


def test_spark_has_the_settings(spark: SparkSession) -> None:
    for row in (*EVERYWHERE, *LOCAL):
        assert spark.conf.get(row.name) == row.value
    assert spark.sparkContext.defaultParallelism == 2


def test_queries_take_turns(spark: SparkSession) -> None:
    """A fair scheduler gives free cores to the first pool by name: if queries are many, some have no turn."""
    assert spark.sparkContext.getConf().get("spark.scheduler.mode", "FIFO") == "FIFO"


def test_checkpoints_go_through_the_plain_file_system_where_it_was_compiled(spark: SparkSession) -> None:
    named = spark.conf.get("spark.hadoop.fs.file.impl", None)
    if named is not None:
        files, _ = file_system(spark, "file:///tmp")
        assert files.getClass().getName() == named


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("Unable to load native-hadoop library for your platform...", "DENY"),
        ("Disabling AQE since AQE is not supported in stateful workloads.", "DENY"),
        ("spark.sql.adaptive.enabled is not supported in streaming DataFrames/Datasets", "DENY"),
        ("Lost task 0.0 in stage 3.0: Failed to cancel job group x", "NEUTRAL"),
    ],
)
def test_warnings_that_nobody_can_do_anything_about_are_not_told(spark: SparkSession, sentence: str, told: str) -> None:
    java: Any = spark.sparkContext._jvm
    logs = java.org.apache.logging.log4j
    configured = logs.LogManager.getContext(False).getConfiguration()
    assert configured.getConfigurationSource().getLocation() == str(LOGGING)
    chosen = configured.getAppender("stderr").getFilter()
    message = logs.message.SimpleMessage(sentence)
    assert chosen.filter(None, logs.Level.WARN, None, message, None).toString() == told
