"""Kafka Streams and its tools: kafka-streams-groups on the streams protocol, the reset tool on the classic one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conformance.java_tools import Tools
from tests.crash.word_count import Trial

pytestmark = pytest.mark.needs("java", "javac", "kafka-jars")

GROUP = ["--group", "word-count"]
INTERNAL = {"word-count-words-repartition", "word-count-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"}


def table(run: Tools, *arguments: str) -> list[list[str]]:
    """What kafka-streams-groups shows, without the heading."""
    return [line.split() for line in run("kafka-streams-groups", *arguments).lines()][1:]


def own_topics(run: Tools) -> set[str]:
    return {name for name in run("kafka-topics", "--list").lines() if name.startswith("word-count-")}


def test_streams_groups_are_listed_described_reset_and_deleted(jvm: subprocess.Popen[str], kafka_libs: Path) -> None:
    with Trial(kafka_libs, "streams") as trial:
        run = Tools(jvm, trial.broker.bootstrap_servers)
        trial.feed()
        trial.check()
        assert table(run, "--list", "--state") == [["word-count", "Stable"]]
        assert own_topics(run) == INTERNAL
        offsets = table(run, "--describe", *GROUP)
        assert [row[1:] for row in offsets if row[1] == "input"] == [["input", str(index), "0"] for index in range(3)]
        members = table(run, "--describe", "--members", *GROUP)
        assert len(members) == 2
        refused = run("kafka-streams-groups", "--delete", *GROUP)
        assert "is not EMPTY" in refused.out + refused.err
        trial.stop_application()
        assert table(run, "--list", "--state") == [["word-count", "Empty"]]
        scope = ["--all-input-topics", "--to-earliest", "--execute", "--delete-all-internal-topics"]
        assert [row[3] for row in table(run, "--reset-offsets", *GROUP, *scope)] == ["0", "0", "0"]
        assert own_topics(run) == set()
        trial.start_anew()
        trial.check()
        trial.stop_application()
        done = run("kafka-streams-groups", "--delete", *GROUP)
        assert done.lines() == ["Deletion of requested streams groups ('word-count') was successful."]
        assert run("kafka-streams-groups", "--list").lines() == []


def test_an_application_is_reset_and_counts_everything_again(jvm: subprocess.Popen[str], kafka_libs: Path) -> None:
    with Trial(kafka_libs, "classic") as trial:
        run = Tools(jvm, trial.broker.bootstrap_servers)
        trial.feed()
        trial.check()
        trial.stop_application()
        reset = ["--application-id", "word-count", "--input-topics", "input"]
        run("kafka-streams-application-reset", *reset, "--force")
        assert own_topics(run) == set()
        trial.start_anew()
        trial.check()
