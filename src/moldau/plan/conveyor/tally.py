"""The fallbacks (`fallbacks.py`) of all workers, added up by Spark in the driver when tasks end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.accumulators import Accumulator, AccumulatorParam

from moldau.spark.runner.reports import Fallback

from ..fallbacks import Counts, add

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Tally = Accumulator[Any]


class Adding(AccumulatorParam[Any]):
    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:
        return add(value1, value2)


def tally_of(spark: SparkSession) -> Tally:
    return spark.sparkContext.accumulator({}, Adding())


def fallbacks_of(tally: Tally | None) -> tuple[Fallback, ...]:
    counts: Counts = {} if tally is None else tally.value
    return tuple(Fallback(group, count, reason) for (group, reason), count in sorted(counts.items()))
