"""The workloads of `benchmarks.streams` that Quix Streams has, in an environment of its own: `quix_job.py WORKLOAD ID
SERVERS FOLDER`, until it is ended.
"""

import sys
from typing import Any

from quixstreams import Application


def words(app: Any) -> None:
    lines = app.dataframe(app.topic("lines", key_deserializer="str", value_deserializer="str"))
    words = lines.apply(lambda line: line.split(" "), expand=True).group_by(lambda word: word, name="word")
    counts = words.apply(lambda word, state: add(state), stateful=True)
    counts.to_topic(app.topic("out", key_serializer="str", value_serializer="int"))


def windows(app: Any) -> None:
    events = app.dataframe(app.topic("events", key_deserializer="str", value_deserializer="str"))
    counts = events.tumbling_window(duration_ms=60_000, grace_ms=60_000).count().current()
    counts.apply(lambda found: found["value"]).to_topic(app.topic("out", key_serializer="str", value_serializer="int"))


def add(state: Any) -> int:
    count = state.get("count", 0) + 1
    state.set("count", count)
    return count


def main(workload: str, identity: str, servers: str, folder: str) -> None:
    app = Application(
        broker_address=servers,
        consumer_group=identity,
        state_dir=folder,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=0.1,
    )
    {"words": words, "windows": windows}[workload](app)
    app.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
