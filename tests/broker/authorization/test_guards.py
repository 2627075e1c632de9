"""What a client sees that may not see all: what is refused, what is left out, and what is told of permissions."""

from __future__ import annotations

from moldau.broker.operations import NOT_ASKED, bits
from moldau.machines.metadata.acls import (
    ALL,
    ALLOW,
    ALTER,
    CLUSTER,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.records import Record, build
from tests.broker.authorization.conftest import ALICE, Realm

NO_TOPIC, NO_GROUP, NO_CLUSTER = (
    Error.TOPIC_AUTHORIZATION_FAILED,
    Error.GROUP_AUTHORIZATION_FAILED,
    Error.CLUSTER_AUTHORIZATION_FAILED,
)
NO_ID = bytes(16)


def names(*topics):
    return [m.MetadataRequest_MetadataRequestTopic(name=name) for name in topics]


def metadata(realm: Realm, request, version=10):
    return {row.name: row.error_code for row in realm.ask(request, version).topics}


def test_metadata_of_all_topics_leaves_out_those_that_may_not_be_described(realm: Realm):
    realm.world.create("u")
    assert metadata(realm, m.MetadataRequest(None)) == metadata(realm, m.MetadataRequest([]), 0) == {}
    realm.grant((TOPIC, "u", READ))
    assert metadata(realm, m.MetadataRequest(None)) == metadata(realm, m.MetadataRequest([]), 0) == {"u": 0}


def test_metadata_refuses_a_topic_whether_it_exists_or_not(realm: Realm):
    realm.grant((TOPIC, "mine", DESCRIBE))
    asked = m.MetadataRequest(names("t", "none", "bad!", "t"), False)
    assert metadata(realm, asked) == {"t": NO_TOPIC, "none": NO_TOPIC, "bad!": NO_TOPIC}
    assert len(realm.ask(asked, 10).topics) == 3
    assert metadata(realm, m.MetadataRequest(names("t")), 0) == {"t": NO_TOPIC}
    (row,) = realm.ask(m.MetadataRequest(names("t")), 12).topics
    assert (row.topic_id, row.partitions) == (NO_ID, [])


def test_metadata_by_id_keeps_the_name_to_itself(realm: Realm):
    topic_id = realm.world.node.cluster.topics["t"].id
    by_id = [m.MetadataRequest_MetadataRequestTopic(topic_id, None)]
    (row,) = realm.ask(m.MetadataRequest(by_id), 12).topics
    assert (row.error_code, row.name, row.topic_id) == (NO_TOPIC, None, topic_id)


def test_a_topic_is_created_unasked_only_for_those_who_may_create_it(realm: Realm):
    realm.grant((TOPIC, "new", DESCRIBE))
    assert metadata(realm, m.MetadataRequest(names("new"))) == {"new": NO_TOPIC}
    assert metadata(realm, m.MetadataRequest(names("new"), False)) == {"new": Error.UNKNOWN_TOPIC_OR_PARTITION}
    realm.grant((TOPIC, "new", CREATE))
    assert metadata(realm, m.MetadataRequest(names("new"))) == {"new": Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert metadata(realm, m.MetadataRequest(names("new"))) == {"new": 0}


def test_authorized_operations_are_those_of_the_client(realm: Realm):
    def seen():
        answer = realm.ask(m.MetadataRequest(names("t"), False, True, True), 10)
        return answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations

    assert seen() == (0, NOT_ASKED)
    realm.grant((TOPIC, "t", WRITE))
    realm.grant_cluster(CREATE)
    assert seen() == (0, bits([WRITE, DESCRIBE])), "who may not describe the cluster is told nothing"
    realm.grant_cluster(ALTER)
    assert seen()[0] == bits([CREATE, ALTER, DESCRIBE])
    cluster = realm.ask(m.DescribeClusterRequest(True))
    assert cluster.cluster_authorized_operations == bits([CREATE, ALTER, DESCRIBE])
    assert realm.ask(m.DescribeClusterRequest(False)).cluster_authorized_operations == NOT_ASKED
    (row,) = realm.ask(
        m.DescribeTopicPartitionsRequest([m.DescribeTopicPartitionsRequest_TopicRequest("t")], 10)
    ).topics
    assert row.topic_authorized_operations == bits([WRITE, DESCRIBE])


def test_groups_tell_the_operations_of_the_client(realm: Realm):
    commit = m.OffsetCommitRequest_OffsetCommitRequestTopic(
        "t", partitions=[m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 5)]
    )
    realm.grant((GROUP, "g", READ), (TOPIC, "t", READ))
    (topic,) = realm.ask(m.OffsetCommitRequest("g", topics=[commit]), 9).topics
    assert topic.partitions[0].error_code == 0
    described = {row.group_id: row for row in realm.ask(m.DescribeGroupsRequest(["h", "g"], True), 5).groups}
    assert described["g"].authorized_operations == bits([READ, DESCRIBE])
    assert (described["h"].error_code, described["h"].authorized_operations) == (NO_GROUP, NOT_ASKED)


def test_pages_of_topics_have_only_those_that_may_be_described(realm: Realm):
    for name in ("a", "b", "c", "d"):
        realm.world.create(name)
    realm.grant((TOPIC, "b", DESCRIBE), (TOPIC, "d", DESCRIBE))
    request, cursor = m.DescribeTopicPartitionsRequest, m.DescribeTopicPartitionsRequest_Cursor
    first = realm.ask(request([], 1))
    assert [row.name for row in first.topics] == ["b"]
    assert first.next_cursor.topic_name == "d"
    rest = realm.ask(request([], 9, cursor("d", 0)))
    assert [row.name for row in rest.topics] == ["d"]
    hidden = realm.ask(request([], 9, cursor("c", 0)))
    assert [row.name for row in hidden.topics] == ["d"]
    asked = [m.DescribeTopicPartitionsRequest_TopicRequest(name) for name in ("c", "b")]
    named = realm.ask(request(asked, 9))
    assert [(row.name, row.error_code) for row in named.topics] == [("b", 0), ("c", NO_TOPIC)]
    wrong = realm.ask(request(asked, 9, cursor("a", 0)))
    assert {row.error_code for row in wrong.topics} == {Error.INVALID_REQUEST}
    realm.revoke_all()
    assert realm.ask(request([], 9)).topics == []


def test_topics_are_created_by_the_permission_of_each_or_of_the_cluster(realm: Realm):
    def create(*topics):
        rows = [m.CreateTopicsRequest_CreatableTopic(name, 1, 1, [], []) for name in topics]
        answer = realm.ask(m.CreateTopicsRequest(rows, 1000), 7).topics
        return {row.name: (row.error_code, row.topic_config_error_code, row.num_partitions) for row in answer}

    realm.grant((TOPIC, "my-", CREATE), pattern=PREFIXED)
    refused = (NO_TOPIC, 0, -1)
    assert create("my-a", "other", "t") == {"my-a": (0, NO_TOPIC, -1), "other": refused, "t": refused}
    twice = create("dup", "dup", "__cluster_metadata")
    assert {row[0] for row in twice.values()} == {Error.INVALID_REQUEST}
    realm.grant((TOPIC, "my-", DESCRIBE_CONFIGS), pattern=PREFIXED)
    assert create("my-b") == {"my-b": (0, 0, 1)}
    realm.revoke_all()
    realm.grant_cluster(CREATE)
    assert create("other")["other"][0] == 0


def test_whether_a_topic_exists_is_told_only_to_those_who_may_describe_it(realm: Realm):
    topic_id = realm.world.node.cluster.topics["t"].id
    state = m.DeleteTopicsRequest_DeleteTopicState

    def delete():
        rows = [state("t"), state("none"), state(None, topic_id), state(None, b"7" * 16), state("dup"), state("dup")]
        return {(row.name, row.topic_id): row.error_code for row in realm.ask(m.DeleteTopicsRequest(rows), 6).responses}

    others = {(None, b"7" * 16): Error.UNKNOWN_TOPIC_ID, ("dup", NO_ID): Error.INVALID_REQUEST}
    hidden = {("t", NO_ID): NO_TOPIC, ("none", NO_ID): NO_TOPIC, (None, topic_id): NO_TOPIC}
    assert delete() == others | hidden
    realm.grant((TOPIC, "t", DESCRIBE), (TOPIC, "none", DESCRIBE))
    seen = {("t", NO_ID): NO_TOPIC, ("t", topic_id): NO_TOPIC, ("none", NO_ID): Error.UNKNOWN_TOPIC_OR_PARTITION}
    assert delete() == others | seen
    assert "t" in realm.world.node.cluster.topics
    realm.grant((TOPIC, "t", DELETE))
    (row,) = realm.ask(m.DeleteTopicsRequest(topic_names=["t"]), 5).responses
    assert row.error_code == 0


def produce(name, acks=-1, **options):
    part = m.ProduceRequest_PartitionProduceData(0, build([Record(0, 0, None, b"v")], **options))
    return m.ProduceRequest(None, acks, 1000, [m.ProduceRequest_TopicProduceData(name, partition_data=[part])])


def test_records_go_to_the_topics_that_may_be_written(realm: Realm):
    realm.world.create("u")
    realm.grant((TOPIC, "u", WRITE))
    both = produce("t")
    both.topic_data = [*both.topic_data, *produce("u").topic_data]
    answer = realm.ask(both, 9)
    assert {row.name: row.partition_responses[0].error_code for row in answer.responses} == {"u": 0, "t": NO_TOPIC}
    assert realm.world.node.replicas.by_name["t"][0].log.end_offset == 0


def test_a_produce_that_is_not_answered_loses_the_connection(realm: Realm):
    assert realm.ask(produce("t", acks=0), 9) is None
    assert realm.alice.connection.closing
    assert realm.world.node.replicas.by_name["t"][0].log.end_offset == 0


def test_transactional_batch_needs_its_transactional_id(realm: Realm):
    realm.grant((TOPIC, "t", WRITE))
    batch = produce("t", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    batch.transactional_id = "x"
    (row,) = realm.ask(batch, 9).responses
    assert row.partition_responses[0].error_code == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    realm.grant((TRANSACTIONAL_ID, "x", WRITE))
    (row,) = realm.ask(batch, 9).responses
    assert row.partition_responses[0].error_code != Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_fetch_session_ends_to_give_records_when_the_permission_does(realm: Realm):
    realm.world.call(produce("t"), 9)
    realm.grant((TOPIC, "t", READ))
    wanted = [m.FetchRequest_FetchTopic("t", partitions=[m.FetchRequest_FetchPartition(0, partition_max_bytes=1000)])]
    first = realm.ask(m.FetchRequest(topics=wanted, max_bytes=1000, session_epoch=0), 12)
    assert first.responses[0].partitions[0].error_code == 0
    assert len(first.responses[0].partitions[0].records)
    realm.revoke_all()
    again = realm.ask(m.FetchRequest(max_bytes=1000, session_id=first.session_id, session_epoch=1), 12)
    (row,) = again.responses[0].partitions
    assert (row.error_code, len(row.records)) == (NO_TOPIC, 0)


def test_replica_id_needs_cluster_action(realm: Realm):
    wanted = [m.FetchRequest_FetchTopic("t", partitions=[m.FetchRequest_FetchPartition(0)])]

    def code():
        answer = realm.ask(m.FetchRequest(replica_id=5, topics=wanted), 12)
        return answer.responses[0].partitions[0].error_code

    realm.grant((TOPIC, "t", READ))
    assert code() == NO_TOPIC
    realm.grant_cluster(ALL)
    assert code() == Error.NOT_LEADER_OR_FOLLOWER, "it may, but broker 5 has no replica"


def test_removing_one_acl_keeps_the_others(realm: Realm):
    def codes():
        return [realm.ask(produce(name), 9).responses[0].partition_responses[0].error_code for name in ("t", "u")]

    realm.world.create("u")
    realm.grant((TOPIC, "t", WRITE), (TOPIC, "t", READ), (TOPIC, "u", WRITE))
    realm.grant((TOPIC, "u", WRITE), permission=DENY)
    assert codes() == [0, NO_TOPIC]
    for operation, expected in ((READ, 0), (WRITE, NO_TOPIC)):
        removed = m.DeleteAclsRequest_DeleteAclsFilter(TOPIC, "t", LITERAL, ALICE, "*", operation, ALLOW)
        (row,) = realm.world.call(m.DeleteAclsRequest([removed])).filter_results
        assert len(row.matching_acls) == 1
        assert codes() == [expected, NO_TOPIC]


def test_who_may_write_to_any_topic_may_do_so_idempotently(realm: Realm):
    def code():
        return realm.ask(m.InitProducerIdRequest(None, 1000), 4).error_code

    assert code() == NO_CLUSTER
    realm.grant((TOPIC, "somewhere", WRITE))
    assert code() == 0
    realm.grant((TOPIC, "*", WRITE), permission=DENY)
    assert code() == NO_CLUSTER
    realm.grant_cluster(IDEMPOTENT_WRITE)
    assert code() == 0


def commit_offsets(realm: Realm, *topics):
    """The admin's, for group g."""
    row, part = m.OffsetCommitRequest_OffsetCommitRequestTopic, m.OffsetCommitRequest_OffsetCommitRequestPartition
    rows = [row(name, partitions=[part(0, 5)]) for name in topics]
    admin = realm.client("User:ANONYMOUS")
    admin.send(m.OffsetCommitRequest("g", topics=rows), 9)
    realm.world.advance(100)
    assert not any(topic.partitions[0].error_code for topic in admin.take().topics)


def test_offsets_of_topics_that_may_not_be_described_are_left_out_or_refused(realm: Realm):
    realm.world.create("u")
    commit_offsets(realm, "t", "u")
    realm.grant((GROUP, "g", DESCRIBE), (TOPIC, "u", DESCRIBE))
    group = m.OffsetFetchRequest_OffsetFetchRequestGroup
    everything = realm.ask(m.OffsetFetchRequest(groups=[group("g", topics=None), group("h", topics=None)]), 9)
    seen = {one.group_id: ([topic.name for topic in one.topics], one.error_code) for one in everything.groups}
    assert seen == {"g": (["u"], 0), "h": ([], NO_GROUP)}
    one = realm.ask(m.OffsetFetchRequest("g", None), 7)
    assert [topic.name for topic in one.topics] == ["u"]
    rows = [m.OffsetFetchRequest_OffsetFetchRequestTopic(name, [0]) for name in ("t", "u")]
    asked = realm.ask(m.OffsetFetchRequest("g", rows), 7)
    codes = {topic.name: topic.partitions[0].error_code for topic in asked.topics}
    assert codes == {"u": 0, "t": NO_TOPIC}


def test_lists_have_what_may_be_described(realm: Realm):
    commit_offsets(realm, "t")
    assert realm.ask(m.ListGroupsRequest()).groups == []
    realm.grant((GROUP, "g", DESCRIBE))
    assert [row.group_id for row in realm.ask(m.ListGroupsRequest()).groups] == ["g"]
    realm.revoke_all()
    realm.grant_cluster(DESCRIBE)
    assert [row.group_id for row in realm.ask(m.ListGroupsRequest()).groups] == ["g"]


def test_a_malformed_change_of_settings_is_told_before_permissions_are_asked_for(realm: Realm):
    def change(kind, name, *configs):
        rows = [m.IncrementalAlterConfigsRequest_AlterableConfig(*config) for config in configs]
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(kind, name, rows)
        return realm.ask(m.IncrementalAlterConfigsRequest([resource])).responses[0].error_code

    assert change(2, "t", ("retention.ms", 0, "1")) == NO_TOPIC
    assert change(2, "t", ("retention.ms", 0, None)) == Error.INVALID_REQUEST
    assert change(99, "t") == Error.INVALID_REQUEST
    assert change(4, "1", ("log.retention.ms", 0, "1")) == NO_CLUSTER


def test_one_topic_that_may_not_be_written_stops_the_others_of_a_transaction(realm: Realm):
    realm.world.create("u")
    realm.grant((TRANSACTIONAL_ID, "x", WRITE), (TOPIC, "u", WRITE), (TOPIC, "none", WRITE))
    rows = [m.AddPartitionsToTxnRequest_AddPartitionsToTxnTopic(name, [0]) for name in ("t", "u", "none")]
    request = m.AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=rows)
    answer = realm.ask(request, 3).results_by_topic_v3_and_below
    assert {row.name: row.results_by_partition[0].partition_error_code for row in answer} == {
        "t": NO_TOPIC,
        "u": Error.OPERATION_NOT_ATTEMPTED,
        "none": Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_hosts_count(realm: Realm):
    entry = m.CreateAclsRequest_AclCreation(TOPIC, "t", 3, "User:alice", "10.0.0.1", DESCRIBE, 3)
    realm.world.call(m.CreateAclsRequest([entry]))
    assert metadata(realm, m.MetadataRequest(None)) == {}
    realm.alice.connection.host = "10.0.0.1"
    assert metadata(realm, m.MetadataRequest(None)) == {"t": 0}


def test_a_denial_wins_over_the_right_to_the_whole_cluster(realm: Realm):
    realm.grant((TOPIC, "*", ALL), (GROUP, "*", ALL))
    realm.grant_cluster(ALL)
    realm.grant((TOPIC, "t", DESCRIBE), (CLUSTER, "kafka-cluster", ALTER), permission=DENY)
    assert metadata(realm, m.MetadataRequest(names("t"), False)) == {"t": NO_TOPIC}
    assert realm.ask(m.UnregisterBrokerRequest(9)).error_code == NO_CLUSTER
