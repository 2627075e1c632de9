"""A crash under Kafka Streams with either protocol, for every run of the tests; `make crash` does ten."""

from pathlib import Path

import pytest

from tests.crash.word_count import PROTOCOLS, Trial


@pytest.mark.needs("java", "javac", "kafka-jars")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_words_are_counted_once_through_kill_9(protocol: str, kafka_libs: Path):
    with Trial(kafka_libs, protocol) as trial:
        trial.feed()
        trial.check()
        trial.round()
        assert trial.seen.total() > 0
