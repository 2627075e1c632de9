"""Records scored by a model of scikit-learn, from topic to topic, exactly once. It needs: pip install scikit-learn

    python examples/spark/topic_to_prediction.py --model model.pickle --topic flowers --to species

Values are JSON arrays of numbers; the model is anything with `predict`, pickled. Rows cross into Python as Arrow
columns, and the model sees a whole batch at once.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from moldau.spark import run, session


def scorer(model: bytes) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow: key and features in, key and prediction out."""

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        predictor = pickle.loads(model)
        for batch in batches:
            found = predictor.predict(batch.column("features").to_pylist()) if batch.num_rows else []
            values = pa.array([str(one) for one in found], pa.string())
            yield pa.RecordBatch.from_arrays([batch.column("key"), values], ["key", "value"])

    return score


def definition(servers: str, topic: str, target: str, model: bytes, follow: bool):
    def query(spark):
        records = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )
        features = records.selectExpr("key", "from_json(CAST(value AS STRING), 'array<double>') AS features")
        scored = features.where("features IS NOT NULL").mapInArrow(scorer(model), "key binary, value string")
        writer = scored.writeStream.format("moldau").option("kafka.bootstrap.servers", servers).option("topic", target)
        return writer.trigger(processingTime="1 second") if follow else writer.trigger(availableNow=True)

    return query


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-servers", default="localhost:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, help="a topic")
    parser.add_argument("--model", required=True, type=Path, help="a pickled model of your own")
    parser.add_argument("--state-dir", default="./checkpoints")
    parser.add_argument("--follow", action="store_true", help="go on until it is stopped")
    given = parser.parse_args(arguments)
    copy = definition(given.bootstrap_servers, given.topic, given.to, given.model.read_bytes(), given.follow)
    run({f"{given.topic}-to-{given.to}": copy}, session("topic to prediction"), state_dir=given.state_dir)


if __name__ == "__main__":
    main()
