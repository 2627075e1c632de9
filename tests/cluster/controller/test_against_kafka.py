"""The same questions to Apache Kafka's controller and to ours: see judge.py. SEED and ROUNDS ask others, or more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from moldau.wire.errors import Error
from tests.cluster.controller.judge import Judge, TooSlow, choices
from tests.cluster.mixed import KAFKA, cluster

pytestmark = pytest.mark.needs("java", "kafka-jars")
SESSION_MS = 5000
ROUNDS, QUESTIONS = int(os.environ.get("ROUNDS", "1")), 200


@pytest.fixture(scope="module")
def port(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    settings = {"broker_session_timeout_ms": str(SESSION_MS), "broker_heartbeat_interval_ms": "20000"}
    settings |= {"metadata_max_idle_interval_ms": "0"}  # above: a heartbeat that waits for half of it is not answered
    for topic in ("offsets_topic", "transaction_state_log", "share_coordinator_state_topic"):
        settings[f"{topic}_replication_factor"] = "1"
    folder = tmp_path_factory.mktemp("controller")
    with cluster(kafka_libs, folder, {100: (KAFKA, "controller")}, **settings) as made:
        yield made[100].controller_port


def test_both_decide_the_same(port: int) -> None:
    try:
        ask_both(port)
    except TooSlow as reason:
        pytest.skip(f"this machine is too busy: {reason}")


def ask_both(port: int) -> None:
    judge = Judge(port, SESSION_MS, seed=int(os.environ.get("SEED", "1")))
    for broker in judge.brokers.values():
        judge.register(broker)
        judge.heartbeat(broker)
    judge.create("one", {0: [1], 1: [2]})
    judge.create("three", {index: [1 + (index + rank) % 4 for rank in range(3)] for index in range(4)})
    judge.create("two", {0: [1, 2], 1: [3, 4]}, min_insync_replicas="2")
    for number in range(ROUNDS):
        wander(judge)
        broker = judge.brokers[1 + number % len(judge.brokers)]
        judge.expire(broker)
        broker.incarnation += 1
        previous = broker.epoch - 1 if number % 2 else broker.epoch
        assert judge.register(broker, previous).error_code == Error.NONE
    wander(judge)


def wander(judge: Judge) -> None:
    for question in islice(choices(judge), QUESTIONS):
        question()
        judge.keep_alive(rarely=True)
