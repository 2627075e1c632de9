"""Apache Kafka starts on what our kafka-storage has written, and we read the snapshots that it writes then."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.client import Client
from moldau.machines.metadata.checkpoints import Checkpoint, read_checkpoint
from moldau.wire import messages as m
from tests.cluster.formatted import nodes, quorum, voters
from tests.cluster.mixed import eventually

pytestmark = pytest.mark.needs("java", "kafka-jars")
LEVELS = {"metadata.version": 27, "group.version": 1, "transaction.version": 1, "eligible.leader.replicas.version": 1}


def newest(folder: Path) -> Checkpoint:
    """Read the newest snapshot, which has a broker once Kafka has written one."""
    read = read_checkpoint(max(folder.glob("*.checkpoint")).read_bytes())
    assert any(isinstance(record, m.RegisterBrokerRecord) for record in read.records)
    return read


def test_kafka_starts_as_the_only_voter_with_the_levels_and_users_of_its_format(
    kafka_libs: Path, tmp_path: Path
) -> None:
    (node,) = nodes(tmp_path, 1)
    users = ("--add-scram", "SCRAM-SHA-256=[name=alice,password=secret,iterations=5000]")
    node.format("--standalone", "--release-version", "4.1", "--feature", "transaction.version=1", *users)
    with node.kafka(kafka_libs) as process:
        node.await_port(process)
        with Client({"bootstrap.servers": node.address}) as client:
            assert voters(quorum(client)) == {1: node.directory_id}
            features = client.send(m.ApiVersionsRequest("test", "1")).finalized_features
            assert {one.name: one.max_version_level for one in features} == {**LEVELS, "kraft.version": 1}
            (user,) = client.send(m.DescribeUserScramCredentialsRequest(None)).results
            assert (user.user, [one.iterations for one in user.credential_infos]) == ("alice", [5000])
        written = eventually(lambda: newest(node.data / "__cluster_metadata-0"))
    assert written.kraft_version == 1 and written.voters is not None
    assert [one.voter_directory_id for one in written.voters.voters] == [node.directory_id]
    levels = {one.name: one.feature_level for one in written.records if isinstance(one, m.FeatureLevelRecord)}
    assert levels == LEVELS
    assert [one.name for one in written.records if isinstance(one, m.UserScramCredentialRecord)] == ["alice"]
