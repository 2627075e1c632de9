"""The broker of the tests: the real one, in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.broker.call import messages
from moldau.testing import Broker, BrokerFailed, broker, eventually

pytest_plugins = ["pytester"]


def topics(kafka: Broker) -> dict[str, int]:
    response = kafka.call(messages.MetadataRequest(topics=None), 12)
    return {topic.name: len(topic.partitions) for topic in response.topics if not topic.is_internal}


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_topic_gets_what_was_asked_for(kafka_shared: Broker) -> None:
    name = kafka_shared.create_topic(partitions=3, config={"cleanup.policy": "compact"}, retention_ms=1000)
    assert topics(kafka_shared)[name] == 3
    resource = messages.DescribeConfigsRequest_DescribeConfigsResource(resource_type=2, resource_name=name)
    found = kafka_shared.call(messages.DescribeConfigsRequest(resources=[resource]), 4).results[0].configs
    values = {entry.name: entry.value for entry in found}
    assert (values["cleanup.policy"], values["retention.ms"]) == ("compact", "1000")


def test_a_topic_that_cannot_be_is_refused(kafka_shared: Broker) -> None:
    with pytest.raises(BrokerFailed, match="not created"):
        kafka_shared.create_topic("no/slash")


@pytest.mark.kafka(num_partitions=5)
def test_a_marker_sets_what_the_broker_starts_with(kafka: Broker) -> None:
    name = kafka.create_topic(partitions=-1)
    assert topics(kafka)[name] == 5


def test_topics_survive_a_restart_and_a_kill_on_the_same_address(kafka: Broker) -> None:
    address, name = kafka.bootstrap_servers, kafka.create_topic(partitions=2)
    kafka.restart()
    assert topics(kafka) == {name: 2}
    kafka.kill()
    assert kafka.pid is None
    kafka.start()
    assert topics(kafka) == {name: 2}
    assert kafka.bootstrap_servers == address


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with broker() as kafka:
        pid, folder = kafka.pid, kafka.data_dir
        assert pid is not None
        assert alive(pid)
    assert not alive(pid)
    assert not os.path.exists(folder)


def test_a_data_directory_of_the_user_stays(tmp_path: Path) -> None:
    with broker(data_dir=str(tmp_path)) as kafka:
        name = kafka.create_topic()
    with broker(data_dir=str(tmp_path)) as kafka:
        assert topics(kafka) == {name: 1}


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(BrokerFailed, match=r"num\.partitions"), broker(num_partitions="many"):
        pass


SCRIPT = """
import sys, time
from moldau.testing import Broker
kafka = Broker(data_dir=sys.argv[1]).start()
print(kafka.pid, flush=True)
time.sleep(60)
"""


def test_the_broker_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    script = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE)
    assert script.stdout is not None
    with script.stdout:
        pid = int(script.stdout.readline())
    script.send_signal(signal.SIGKILL)
    script.wait()
    eventually(lambda: not alive(pid), what="the end of the broker")


def test_the_fixture_gives_a_broker_and_a_failure_shows_its_log(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_works(kafka):
            assert kafka.create_topic("orders", partitions=2) == "orders"

        def test_shared(kafka_shared):
            assert kafka_shared.bootstrap_servers.startswith("127.0.0.1:")

        def test_fails(kafka):
            assert kafka.port == 0
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*- broker 127.0.0.1:* -*", "*ready*listeners=*"])
