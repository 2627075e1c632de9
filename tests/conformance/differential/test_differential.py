"""Every script that is not slow, played to Apache Kafka and to Moldau; with DIFFERENTIAL=all the slow ones, too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.broker.outbox import Peer
from moldau.wire import messages as m
from tests.broker.test_peers import Asking, run
from tests.conformance.differential.brokers import pair
from tests.conformance.differential.case import Script
from tests.conformance.differential.play import play
from tests.conformance.differential.scripts import SCRIPTS
from tests.conformance.differential.target import Target

PLAYED = [script for script in SCRIPTS if not script.slow or os.environ.get("DIFFERENTIAL") == "all"]


@pytest.fixture(scope="module")
def brokers(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Target]]:
    with pair(kafka_libs, tmp_path_factory.mktemp("differential")) as both:
        yield both


@pytest.mark.needs("java", "kafka-jars")
@pytest.mark.parametrize("script", PLAYED, ids=lambda script: script.name)
def test_both_answer_alike(brokers: tuple[Target, Target], script: Script) -> None:
    judgement = play(script, *brokers)
    assert not judgement.failures, "\n" + "\n".join(judgement.failures)


@pytest.mark.needs("java", "kafka-jars")
def test_a_node_asks_both_in_versions_that_they_agree_on(brokers: tuple[Target, Target]) -> None:
    async def scenario(asking: Asking) -> None:
        for target in brokers:
            peer = Peer("127.0.0.1", target.port)
            cluster, groups = asking.ask(peer, m.DescribeClusterRequest()), asking.ask(peer, m.ListGroupsRequest())
            assert [broker.port for broker in (await cluster).brokers] == [target.port]
            assert (await groups).error_code == 0

    run(scenario)


def test_a_name_of_a_topic_is_used_by_one_script() -> None:
    names = [name for script in SCRIPTS for name in script.topics]
    assert sorted(names) == sorted(set(names))
