"""The query under attack: topic to topic, exactly once, supervised. It ends when it is told to, or for good."""

from __future__ import annotations

import logging
import sys
from typing import Any

from moldau.spark import session
from moldau.spark.runner import Policy, run

PATIENT = Policy(first_pause_s=0.1, most_pause_s=1.0, restarts=1000)


def definition(bootstrap: str, source: str, target: str, rows: int, tasks: int) -> Any:
    """A copy in small batches, so that there are many moments to die in, of so many tasks at least; 0: as many as the
    source likes.
    """
    least = {"minPartitions": tasks} if tasks else {}

    def copy(spark: Any) -> Any:
        frame = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", rows)
            .options(**least)
            .load()
            .selectExpr("key", "value")
        )
        return (
            frame.writeStream.format("moldau")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", target)
            .trigger(processingTime="0 seconds")
        )

    return copy


def main(bootstrap: str, source: str, target: str, state_dir: str, rows: str, tasks: str) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    spark = session("chaos", "local[2]", **{"spark.driver.memory": "600m"})
    spark.sparkContext.setLogLevel("OFF")
    run(
        {"copy": definition(bootstrap, source, target, int(rows), int(tasks))},
        spark,
        state_dir=state_dir,
        policy=PATIENT,
        progress=False,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
