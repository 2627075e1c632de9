"""Nothing is answered before it is committed: here the test decides when a sync is done, or that it fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.machines.metadata.acls import ALLOW, LITERAL, READ, TOPIC
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.broker.conftest import FEW, Client, Held, World
from tests.broker.test_coordinators import commit, fetch
from tests.broker.transactional import Transactional, read

DELAYED = "markers of a transaction cannot be written yet"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
TOPIC_RESOURCE, SET = 2, 0


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
def world(tmp_path: Path, held: Held) -> World:
    few = {name.replace("_", "."): value for name, value in FEW.items()}
    world = World(tmp_path, AUTHORIZER | few, background=held)
    world.create("t", 2)
    held.holds = True
    return world


def new_topic(name: str) -> Any:
    return m.CreateTopicsRequest_CreatableTopic(name, 1, 1, [], [])


def config_change(name: str, value: str) -> Any:
    row = m.IncrementalAlterConfigsRequest_AlterableConfig(name, SET, value)
    return m.IncrementalAlterConfigsRequest(
        [m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC_RESOURCE, "t", [row])]
    )


def an_acl() -> Any:
    return m.CreateAclsRequest([m.CreateAclsRequest_AclCreation(TOPIC, "t", LITERAL, "User:a", "*", READ, ALLOW)])


def a_quota() -> Any:
    op = m.AlterClientQuotasRequest_OpData("producer_byte_rate", 1.0, False)
    entity = [m.AlterClientQuotasRequest_EntityData("user", "u")]
    return m.AlterClientQuotasRequest([m.AlterClientQuotasRequest_EntryData(entity, [op])], False)


def a_credential() -> Any:
    one = m.AlterUserScramCredentialsRequest_ScramCredentialUpsertion("u", 1, 4096, b"salt", b"p" * 32)
    return m.AlterUserScramCredentialsRequest([], [one])


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], int]]] = {
    "CreateTopics": (lambda: m.CreateTopicsRequest([new_topic("u")]), lambda r: r.topics[0].error_code),
    "DeleteTopics": (
        lambda: m.DeleteTopicsRequest([m.DeleteTopicsRequest_DeleteTopicState("t")]),
        lambda r: r.responses[0].error_code,
    ),
    "CreatePartitions": (
        lambda: m.CreatePartitionsRequest([m.CreatePartitionsRequest_CreatePartitionsTopic("t", 3, None)]),
        lambda r: r.results[0].error_code,
    ),
    "IncrementalAlterConfigs": (lambda: config_change("retention.ms", "5"), lambda r: r.responses[0].error_code),
    "CreateAcls": (an_acl, lambda r: r.results[0].error_code),
    "AlterClientQuotas": (a_quota, lambda r: r.entries[0].error_code),
    "AlterUserScramCredentials": (a_credential, lambda r: r.results[0].error_code),
    "InitProducerId": (lambda: m.InitProducerIdRequest(None, 60_000), lambda r: r.error_code),
    "FindCoordinator": (lambda: m.FindCoordinatorRequest("", 0, ["g"]), lambda r: r.coordinators[0].error_code),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_metadata_is_answered_when_it_is_committed(world: World, held: Held, name: str) -> None:
    make, error_of = CHANGES[name]
    assert world.call(make()) is None
    assert len(held.jobs) == 1
    held.release()
    assert error_of(world.client.take()) == Error.NONE


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_the_metadata_that_cannot_be_synced_is_refused(world: World, held: Held, name: str) -> None:
    make, error_of = CHANGES[name]
    assert world.call(make()) is None
    held.release(OSError("gone"))
    assert error_of(world.client.take()) in (Error.KAFKA_STORAGE_ERROR, Error.COORDINATOR_NOT_AVAILABLE)
    assert error_of(world.call(make())) in (Error.KAFKA_STORAGE_ERROR, Error.COORDINATOR_NOT_AVAILABLE)


def test_five_hundred_topics_are_one_batch_and_one_sync_while_others_are_served(world: World, held: Held) -> None:
    batches = world.node.metadata.log.end_offset
    assert world.call(m.CreateTopicsRequest([new_topic(f"n{number}") for number in range(500)])) is None
    assert len(held.jobs) == 1
    assert world.node.metadata.log.end_offset == batches + 1000, "a record for each topic and partition"
    other = Client(world.node)
    assert len(other.call(m.MetadataRequest(topics=None)).topics) == 1, "nothing is seen before it is committed"
    held.release()
    assert {row.error_code for row in world.client.take().topics} == {Error.NONE}
    assert len(other.call(m.MetadataRequest(topics=None)).topics) == 501


def test_a_command_is_decided_on_what_was_proposed_before_it(world: World, held: Held) -> None:
    first, second = Client(world.node), Client(world.node)
    assert first.call(m.CreateTopicsRequest([new_topic("u")])) is None
    assert second.call(m.CreateTopicsRequest([new_topic("u"), new_topic("v")])) is None
    held.release()
    assert [row.error_code for row in first.take().topics] == [Error.NONE]
    assert [row.error_code for row in second.take().topics] == [Error.TOPIC_ALREADY_EXISTS, Error.NONE]


def test_what_could_not_be_committed_is_not_planned_on(world: World, held: Held) -> None:
    assert world.call(m.CreateTopicsRequest([new_topic("u")])) is None
    held.release(OSError("gone"))
    assert world.client.take().topics[0].error_code == Error.KAFKA_STORAGE_ERROR
    assert set(world.node.metadata.planned.topics) == {"t"}


def test_a_topic_that_is_merely_mentioned_is_there_when_the_answer_comes(world: World, held: Held) -> None:
    request = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="u")], True)
    assert world.call(request) is None
    held.release()
    assert world.client.take().topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert world.call(request).topics[0].error_code == Error.NONE


@pytest.fixture
def synced(tmp_path: Path, held: Held) -> World:
    few = {name.replace("_", "."): value for name, value in FEW.items()}
    world = World(tmp_path, few | {"log.flush.interval.messages": "1"}, background=held)
    world.coordinate()
    world.create("t")
    return world


def a_commit(offset: int) -> Any:
    part = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, offset, committed_metadata="")
    return m.OffsetCommitRequest("g", topics=[m.OffsetCommitRequest_OffsetCommitRequestTopic("t", partitions=[part])])


def a_fetch() -> Any:
    asked = m.OffsetFetchRequest_OffsetFetchRequestTopics("t", partition_indexes=[0])
    return m.OffsetFetchRequest(groups=[m.OffsetFetchRequest_OffsetFetchRequestGroup("g", topics=[asked])])


def test_offsets_are_neither_acknowledged_nor_told_before_they_are_synced(synced: World, held: Held) -> None:
    assert commit(synced, "g", 1) == Error.NONE
    held.holds = True
    writer, reader = synced.client, Client(synced.node)
    assert writer.call(a_commit(2), 9) is None
    assert reader.call(a_fetch(), 9) is None
    held.release()
    assert writer.take().topics[0].partitions[0].error_code == Error.NONE
    assert reader.take().groups[0].topics[0].partitions[0].committed_offset == 2


def test_a_reader_of_what_could_not_be_synced_reads_again(synced: World, held: Held) -> None:
    assert commit(synced, "g", 1) == Error.NONE
    held.holds = True
    assert synced.call(a_commit(2), 9) is None
    reader = Client(synced.node)
    assert reader.call(a_fetch(), 9) is None
    held.release(OSError("gone"))
    assert synced.client.take().topics[0].partitions[0].error_code == Error.NOT_COORDINATOR
    assert reader.take().groups[0].error_code == Error.NOT_COORDINATOR


def test_the_short_way_of_a_commit_waits_for_the_sync_too(synced: World, held: Held) -> None:
    for offset in (1, 2):
        assert synced.call(a_commit(offset), 9).topics[0].partitions[0].error_code == Error.NONE
    assert synced.node.heads, "the commit was learnt"
    held.holds = True
    decoded, synced.node.routes = synced.node.routes, {}
    assert synced.call(a_commit(3), 9) is None
    assert not synced.node.routes, "it was served by its head"
    synced.node.routes = decoded
    held.release()
    assert synced.client.take().topics[0].partitions[0].error_code == Error.NONE
    assert fetch(synced, "g") == (Error.NONE, [3])


def test_a_transaction_is_complete_when_its_markers_are_synced(synced: World, held: Held) -> None:
    producer = Transactional(synced, "x").begin()
    assert producer.send("t", b"a") is Error.NONE
    held.holds = True
    (machine,) = [one for one in synced.node.transactions.machines.values() if "x" in one.by_id]
    assert synced.call(m.EndTxnRequest("x", *producer.identity, True)) is None
    log = synced.node.replicas.by_name["t"][0].log
    assert log.end_offset == 1, "there is no marker before the decision is synced"
    (work, done), *_ = held.jobs
    held.jobs.clear()
    done(work())
    assert synced.client.take().error_code == Error.NONE
    assert log.end_offset == 2
    assert machine.by_id["x"].state.title == "PrepareCommit", "the marker is not synced"
    held.release()
    assert machine.by_id["x"].state.title == "CompleteCommit"


def test_a_marker_for_a_partition_that_is_elsewhere_is_not_nothing_to_end(
    synced: World, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Transactional(synced, "x").begin()
    assert producer.send("t", b"a") is Error.NONE
    partition = synced.node.replicas.by_name["t"].pop(0)
    producer.end()
    (machine,) = [one for one in synced.node.transactions.machines.values() if "x" in one.by_id]
    for _ in range(3):
        synced.advance(1001)
    assert machine.unmarked == {"x": {("t", 0)}}
    assert [record.message for record in caplog.records].count(DELAYED) == 1, "it is told once, and tried on"
    synced.node.replicas.by_name["t"][0] = partition
    synced.advance(1001)
    assert not machine.unmarked and not machine.delayed
    assert read(synced, "t") == [b"a"]
