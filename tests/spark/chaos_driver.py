"""The query under attack: topic to topic, exactly once, supervised. It ends when it is told to, or for good."""

from __future__ import annotations

import logging
import sys
from typing import Any

from moldau.spark import session
from moldau.spark.runner import Policy, run

PATIENT = Policy(first_pause_s=0.1, most_pause_s=1.0, restarts=1000)


def definition(bootstrap: str, source: str, target: str, rows: int, tasks: int) -> Any:
    """A copy in small batches, so that there are many moments to die in."""

    def copy(spark: Any) -> Any:
        frame = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", rows)
            .load()
            .selectExpr("key", "value")
        )
        if tasks:
            frame = frame.repartition(tasks, "key")
        return (
            frame.writeStream.format("moldau")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .trigger(processingTime="0 seconds")
        )

    return copy


def main(bootstrap: str, source: str, target: str, state_dir: str, rows: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    spark = session("chaos", "local[2]", **{"spark.driver.memory": "600m"})
    spark.sparkContext.setLogLevel("OFF")
    run(
        {"copy": definition(bootstrap, source, target, int(rows), 0)},
        spark,
        state_dir=state_dir,
        policy=PATIENT,
        progress=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
