"""Errors of `monitoring_stream` by code and minute: when a minute is over, its counts go to `error_counts`.

`python examples/streams/error_counts.py` runs it on localhost:9092.
"""

from moldau.streams import BufferConfig, Json, StreamsBuilder, String, Suppressed, TimeWindows

builder = StreamsBuilder("error-counts")
(
    builder.stream("monitoring_stream", key=String(), value=Json())
    .filter(lambda host, event: event["type"] == "ERROR")
    .group_by(lambda host, event: event["error_code"], key=String(), value=Json())
    .windowed_by(TimeWindows.of("1 minute", grace="10 seconds"))
    .count(store="errors")
    .suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    .to_stream()
    .to("error_counts")
)

if __name__ == "__main__":
    builder.run()
