"""Daemons of Python workers that were killed are forgotten, and others are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from moldau.spark.runner import Policy, QueryFailed, run
from moldau.spark.runner.lost_daemons import FACTORY, factories, forget_lost_daemons, hidden

from .chaos import kill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def in_python(spark: SparkSession) -> int:
    return spark.range(4).mapInArrow(lambda batches: batches, "id long").count()


def daemons(spark: SparkSession) -> list[Any]:
    return [one for factory in factories(spark) if (one := hidden(spark, FACTORY, "daemon", factory)) is not None]


def kill_daemons(spark: SparkSession) -> int:
    alive = daemons(spark)
    for daemon in alive:
        kill(daemon.pid())
        daemon.waitFor()
    return len(alive)


def test_daemons_that_were_killed_are_forgotten_and_others_are_not(spark: SparkSession) -> None:
    assert in_python(spark) == 4
    alive = len(daemons(spark))
    assert alive
    assert forget_lost_daemons(spark) == 0
    assert len(daemons(spark)) == alive
    assert kill_daemons(spark) == alive
    assert forget_lost_daemons(spark) == alive
    assert daemons(spark) == []


def test_a_query_that_is_started_again_meets_no_daemon_that_was_killed(spark: SparkSession) -> None:
    assert in_python(spark) == 4
    met: list[int] = []

    def definition(spark: SparkSession) -> Any:
        met.append(len(daemons(spark)))
        kill_daemons(spark)
        raise ConnectionError("Connection refused" if len(met) == 1 else "enough")

    with pytest.raises(QueryFailed, match="enough"):
        run({"again": definition}, spark, policy=Policy(first_pause_s=0.1))
    assert met[0] > 0
    assert met[1:] == [0]
    assert in_python(spark) == 4


def test_with_spark_connect_there_is_nothing_to_look_at() -> None:
    assert forget_lost_daemons(object()) == 0
