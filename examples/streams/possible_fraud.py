"""Cards with more than three attempts within five seconds, from `authorization_attempts` (key: the card's number) to
`possible_fraud`. `python examples/streams/possible_fraud.py` runs it on localhost:9092.
"""

from moldau.streams import Json, StreamsBuilder, String, TimeWindows

builder = StreamsBuilder("possible-fraud")
(
    builder.stream("authorization_attempts", key=String(), value=Json())
    .group_by_key()
    .windowed_by(TimeWindows.of("5 seconds", grace="30 seconds"))
    .count(store="attempts")
    .to_stream()
    .filter(lambda card, attempts: attempts > 3)
    .to("possible_fraud")
)

if __name__ == "__main__":
    builder.run()
