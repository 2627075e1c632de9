"""Neighbours that lie or are broken: what three real nodes make of them. The rules alone are tested beside their code.

Elsewhere: votes for another cluster, voter or directory (test_raft.py), a lost disk that does not count and one that
joins anew (test_raft.py, test_voters.py), a second process with a broker's id and directories of others
(controller/test_registration.py), brokers that flap (controller/test_heartbeats.py, chaos), followers that ask below
the start of the log (test_following.py), a full disk (simulation), a taken port (tests/test_platform.py).
"""
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from moldau.broker.call import call
from moldau.client import Client
from moldau.testing import BrokerFailed, Cluster, cluster, eventually
from moldau.testing.ports import free_port
from moldau.wire import messages as m
from moldau.wire.errors import Error

SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "request.timeout.ms": "5000",  # how long a broker looks for a controller
    "initial.broker.registration.timeout.ms": "6000",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
METADATA = "__cluster_metadata"


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    with cluster(3, SETTINGS, proxied=False) as made:
        create(made, "t", 3, 3)
        yield made


def admin(made: Cluster, *nodes: int) -> AdminClient:
    servers = ",".join(made[node].bootstrap_servers for node in nodes) or made.bootstrap_servers
    return AdminClient({"bootstrap.servers": servers, "broker.address.family": "v4", "log_level": 0})


def create(made: Cluster, topic: str, partitions: int, replicas: int) -> None:
    client = admin(made)  # to drop it would end the request
    client.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(30)


def in_sync(made: Cluster) -> set[int]:
    parts = admin(made).list_topics("t", timeout=20).topics["t"].partitions.values()
    return set.intersection(*(set(part.isrs) for part in parts))


def quorum(made: Cluster) -> Any:
    asked = m.DescribeQuorumRequest_TopicData(METADATA, [m.DescribeQuorumRequest_PartitionData(0)])
    with Client({"bootstrap.servers": made.bootstrap_servers}) as client:
        return client.send(m.DescribeQuorumRequest([asked])).topics[0].partitions[0]


def controller(made: Cluster, node: int) -> tuple[str, int]:
    return "127.0.0.1", int(made[node].settings["listeners"].rpartition(":")[2])


def cluster_id(made: Cluster) -> str:
    lines = Path(made[1].data_dir, "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["cluster.id"]


def vote(made: Cluster, **changes: Any) -> m.VoteRequest:
    epoch = quorum(made).leader_epoch
    row = {"replica_epoch": epoch + 1, "replica_id": 2, "last_offset_epoch": epoch, "last_offset": 10**9, **changes}
    named = row.pop("cluster_id", cluster_id(made))
    part = m.VoteRequest_PartitionData(0, **row)
    return m.VoteRequest(named, row.get("voter_id", 1), [m.VoteRequest_TopicData(METADATA, [part])])


LIES = {
    "another cluster": {"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"},
    "an epoch that is over": {"replica_epoch": 0},
    "a log that ends in an epoch that has not begun": {"last_offset_epoch": 10**6},
}


@pytest.mark.parametrize("lie", LIES)
def test_who_lies_gets_no_vote_and_the_leader_stays(three: Cluster, lie: str) -> None:
    before = quorum(three)
    follower = 1 + before.leader_id % 3
    answer = call(controller(three, follower), vote(three, **LIES[lie]), 1)
    row = answer.topics[0].partitions[0] if answer.topics else None
    assert answer.error_code or (row is not None and row.error_code and not row.vote_granted)
    after = quorum(three)
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)


def test_a_fetch_from_an_epoch_of_the_future_is_refused(three: Cluster) -> None:
    known = quorum(three)
    row = m.FetchRequest_FetchPartition(0, current_leader_epoch=known.leader_epoch + 7, last_fetched_epoch=0)
    topic = m.FetchRequest_FetchTopic(METADATA, bytes(15) + b"\1", [row])
    request = m.FetchRequest(
        cluster_id(three), replica_state=m.FetchRequest_ReplicaState(2, -1), session_epoch=-1, topics=[topic]
    )
    answer = call(controller(three, known.leader_id), request, 17)
    assert answer.responses[0].partitions[0].error_code == Error.UNKNOWN_LEADER_EPOCH


def test_the_epoch_of_another_process_is_stale(three: Cluster) -> None:
    leader = quorum(three).leader_id
    heartbeat = m.BrokerHeartbeatRequest(broker_id=2, broker_epoch=10**6, current_metadata_offset=0)
    assert call(controller(three, leader), heartbeat, 1).error_code == Error.STALE_BROKER_EPOCH
    alter = m.AlterPartitionRequest(broker_id=2, broker_epoch=0, topics=[])
    assert call(controller(three, leader), alter, 3).error_code == Error.STALE_BROKER_EPOCH
    assert in_sync(three) == {1, 2, 3}


def start_beside(made: Cluster, node: int, folder: Path) -> subprocess.Popen[str]:
    """Start one more broker with the id of a node, on a port of its own."""
    broker = free_port()
    address = f"PLAINTEXT://127.0.0.1:{broker}"
    settings = made[node].settings | {"process.roles": "broker", "listeners": address, "advertised.listeners": address}
    command = [sys.executable, "-m", "moldau", "broker", "--data-dir", str(folder)]
    command += [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)


def ended(process: subprocess.Popen[str]) -> str:
    try:
        _, errors = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == 1, errors
    return errors


def test_a_second_node_with_the_same_id_is_not_let_in(three: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "second"
    folder.mkdir()
    lines = "version=1", f"cluster.id={cluster_id(three)}", "node.id=2", "directory.id=b0fPvdZBRDmb5CRbF4nBFw"
    (folder / "meta.properties").write_text("\n".join(lines) + "\n")
    assert "DUPLICATE_BROKER_REGISTRATION" in ended(start_beside(three, 2, folder))
    assert in_sync(three) == {1, 2, 3}


def test_a_clone_of_a_data_directory_is_not_let_in(three: Cluster, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(three[2].data_dir, clone, ignore=shutil.ignore_patterns(".lock"))
    assert "DUPLICATE_BROKER_REGISTRATION" in ended(start_beside(three, 2, clone))
    assert in_sync(three) == {1, 2, 3}


def test_a_node_of_another_cluster_is_not_let_in(three: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    lines = "version=1", "cluster.id=AAAAAAAAAAAAAAAAAAAAAA", "node.id=2", "directory.id=b0fPvdZBRDmb5CRbF4nBFw"
    (folder / "meta.properties").write_text("\n".join(lines) + "\n")
    assert "do not belong to cluster AAAA" in ended(start_beside(three, 2, folder))


def test_a_snapshot_that_was_cut_short_is_refused_and_never_taken_for_all_there_is(three: Cluster) -> None:
    node = 1 + quorum(three).leader_id % 3
    folder = Path(three[node].data_dir, f"{METADATA}-0")

    def snapshots() -> list[Path]:
        create(three, f"more-{os.urandom(4).hex()}", 10, 1)
        return sorted(path for path in folder.glob("*.checkpoint") if not path.name.startswith("0" * 20))

    newest = eventually(snapshots)[-1]
    three.kill(node)
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokerFailed, match=r"metadata in .* is damaged"):
        three.start_again(node)
    newest.write_bytes(whole)
    three.start_again(node)
    eventually(lambda: in_sync(three) == {1, 2, 3})


def test_without_a_majority_healthy_partitions_serve_and_changes_time_out_with_a_sentence(three: Cluster) -> None:
    client = admin(three)
    new = NewTopic("alone", replica_assignment=[[1]], num_partitions=1, config={"min.insync.replicas": "1"})
    client.create_topics([new])["alone"].result(30)
    one = {"bootstrap.servers": three[1].bootstrap_servers, "broker.address.family": "v4", "log_level": 0}
    producer = Producer({**one, "acks": "all", "message.timeout.ms": 60_000})
    producer.produce("alone", b"before")
    assert producer.flush(60) == 0
    three.kill(2)
    three.kill(3)
    try:
        failures: list[Any] = []
        producer.produce("alone", b"after", on_delivery=lambda error, _: error and failures.append(error))
        assert producer.flush(60) == 0 and not failures
        consumer = Consumer({**one, "group.id": "unused", "enable.auto.commit": False, "session.timeout.ms": 6000})
        consumer.assign([TopicPartition("alone", 0, 0)])
        seen = [record.value() for record in consumer.consume(2, 30)]
        consumer.close()
        assert seen == [b"before", b"after"]
        lonely = admin(three, 1)
        with pytest.raises(KafkaException, match="REQUEST_TIMED_OUT"):
            lonely.create_topics([NewTopic("never", 1, 1)], request_timeout=60)["never"].result(60)
    finally:
        three.start_again(2, 3)
    eventually(lambda: in_sync(three) == {1, 2, 3})
