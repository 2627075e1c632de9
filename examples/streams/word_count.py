"""How often each word was said: the topic `sentences` becomes the table `word-counts`.

`python examples/streams/word_count.py` runs it on localhost:9092.
"""

import re

from moldau.streams import StreamsBuilder, String

builder = StreamsBuilder("word-count")
(
    builder.stream("sentences", key=String(), value=String())
    .flat_map_values(lambda sentence: re.findall(r"\w+", sentence.lower()))
    .group_by(lambda key, word: word, key=String(), value=String())
    .count(store="counts")
    .to_stream()
    .to("word-counts")
)

if __name__ == "__main__":
    builder.run()
