"""Requests to whoever is in charge, on both brokers; and moves, restarts and refusals, on brokers made for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from moldau.client import CONTROLLER, Client, ClientError, Leader, Node, check, group, share, transaction
from moldau.testing import Broker
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.client.fake import Fake
from tests.client.proxy import Proxy

QUICK = {"retry.backoff.ms": 1, "retry.backoff.max.ms": 10, "reconnect.backoff.ms": 1, "reconnect.backoff.max.ms": 10}


def list_offsets(topic: str, partition: int = 0) -> m.ListOffsetsRequest:
    row = m.ListOffsetsRequest_ListOffsetsPartition(partition, -1, -1)
    return m.ListOffsetsRequest(topics=[m.ListOffsetsRequest_ListOffsetsTopic(topic, [row])])


def test_any_broker_answers(client: Client) -> None:
    answer = check(client.send(m.DescribeClusterRequest()))
    assert answer.cluster_id == client.refresh().id


def test_the_controller_makes_a_topic_and_a_leader_answers_for_it(
    client: Client, new_topic: Callable[..., str]
) -> None:
    name = new_topic(3)
    topic = client.topic(name)
    assert sorted(topic.partitions) == [0, 1, 2]
    assert topic.id != bytes(16)
    for index in topic.partitions:
        answer = check(client.send(list_offsets(name, index), Leader(name, index)))
        assert answer.topics[0].partitions[0].offset == 0
    rows = [m.DeleteTopicsRequest_DeleteTopicState(name)]
    check(client.send(m.DeleteTopicsRequest(topics=rows, timeout_ms=5000), CONTROLLER))


def test_a_broker_answers_for_itself(client: Client) -> None:
    [number] = client.refresh().brokers
    assert check(client.send(m.DescribeLogDirsRequest(topics=None), number)).results
    assert list(client.send_to_each(m.ListTransactionsRequest())) == [number]


def test_coordinators_of_groups_and_transactions_are_found(client: Client) -> None:
    row = m.OffsetCommitRequest_OffsetCommitRequestPartition(0, 5)
    topic = m.OffsetCommitRequest_OffsetCommitRequestTopic("offsets-only", partitions=[row])
    request = m.OffsetCommitRequest("g", topics=[topic])
    assert client.send(request, group("g"), at_most=9).topics[0].partitions[0].error_code in (0, 3)
    answer = check(client.send(m.InitProducerIdRequest("txn-of-client", 10_000), transaction("txn-of-client")))
    described = client.send(m.DescribeTransactionsRequest(["txn-of-client"]), transaction("txn-of-client"))
    assert described.transaction_states[0].producer_id == answer.producer_id


def test_an_unknown_broker_is_asked_for_as_often_as_allowed(servers: str) -> None:
    with Client({"bootstrap.servers": servers, "retries": 2, **QUICK}) as client:
        with pytest.raises(ClientError, match="no broker 999") as caught:
            client.send(m.DescribeClusterRequest(), 999)
        assert caught.value.error is Error.BROKER_NOT_AVAILABLE
        assert caught.value.__notes__[0].startswith("3 tries in")


def test_a_last_try_that_the_deadline_cuts_short_says_what_was_waited_for() -> None:
    with (
        Fake(lambda _: fake.metadata() if len(fake.seen) == 1 else None) as fake,
        Client({"bootstrap.servers": fake.address, **QUICK}) as client,
        pytest.raises(ClientError, match="did not answer Metadata in time") as caught,
    ):
        client.send(m.DescribeClusterRequest(), 999, timeout_s=2)
    assert caught.value.error is Error.REQUEST_TIMED_OUT
    assert "the one before: The cluster has no broker 999" in caught.value.__notes__[0]


def test_a_topic_that_does_not_exist_is_told_in_time(servers: str) -> None:
    with Client({"bootstrap.servers": servers, "topic.metadata.propagation.max.ms": 200}) as client:
        with pytest.raises(ClientError, match="There is no topic nowhere") as caught:
            client.topic("nowhere")
        assert caught.value.error is Error.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(ClientError, match="There is no topic nowhere"):
            client.send(list_offsets("nowhere"), Leader("nowhere", 0))


def test_a_partition_that_does_not_exist_is_told(servers: str, new_topic: Callable[..., str]) -> None:
    name = new_topic()
    with (
        Client({"bootstrap.servers": servers, "topic.metadata.propagation.max.ms": 200}) as client,
        pytest.raises(ClientError, match="has no partition 7"),
    ):
        client.send(list_offsets(name, 7), Leader(name, 7))


def test_all_topics_are_told_of(client: Client, new_topic: Callable[..., str]) -> None:
    names = {new_topic(), new_topic()}
    deadline = time.monotonic() + 60
    while not names <= set(client.refresh(None).topics):  # Apache Kafka learns of them a moment later
        assert time.monotonic() < deadline


def test_a_final_refusal_is_returned_at_once(client: Client) -> None:
    rows = [m.DeleteTopicsRequest_DeleteTopicState("never-was")]
    answer = client.send(m.DeleteTopicsRequest(topics=rows, timeout_ms=5000), CONTROLLER)
    assert answer.responses[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_threads_share_a_client(client: Client) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(client.send(m.DescribeClusterRequest()).cluster_id))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_a_closed_client_says_so(servers: str) -> None:
    client = Client({"bootstrap.servers": servers})
    client.send(m.DescribeClusterRequest())
    client.close()
    with pytest.raises(ClientError, match="The client is closed"):
        client.send(m.DescribeClusterRequest())


def test_closing_ends_a_call_that_waits() -> None:
    with Fake(lambda _: None) as fake:
        client = Client({"bootstrap.servers": fake.address})
        failed: list[ClientError] = []

        def ask() -> None:
            try:
                client.send(m.DescribeClusterRequest())
            except ClientError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not fake.seen:
            time.sleep(0.01)
        client.close()
        thread.join(60)
        assert len(failed) == 1


def test_requests_outlive_a_restart_of_the_broker(kafka: Broker) -> None:
    name = kafka.create_topic()
    with Client({"bootstrap.servers": kafka.bootstrap_servers, **QUICK}) as client:
        client.send(list_offsets(name), Leader(name, 0))
        client.send(m.DescribeGroupsRequest(groups=["g"]), group("g"))
        kafka.kill()
        again = threading.Thread(target=kafka.start)
        again.start()
        try:
            check(client.send(list_offsets(name), Leader(name, 0)))
            assert client.send(m.DescribeGroupsRequest(groups=["g"]), group("g")).groups
        finally:
            again.join()


def test_requests_outlive_cut_connections(kafka_shared: Broker) -> None:
    with Proxy(kafka_shared.port) as proxy, Client({"bootstrap.servers": proxy.address, **QUICK}) as client:
        client.send(m.DescribeClusterRequest())
        assert proxy.connections == 1
        client.send(m.DescribeClusterRequest())
        assert proxy.connections == 1, "a connection is used again"
        for _ in range(5):
            proxy.cut()
            check(client.send(m.DescribeClusterRequest()))


def test_an_idle_connection_is_not_used_again(kafka_shared: Broker) -> None:
    with Proxy(kafka_shared.port) as proxy:
        settings = {"bootstrap.servers": proxy.address, "connections.max.idle.ms": 1}
        with Client(settings) as client:
            for number in range(1, 4):
                client.send(m.DescribeClusterRequest())
                assert proxy.connections == number
                time.sleep(0.01)


def test_a_bootstrap_server_that_is_away_does_not_matter(kafka_shared: Broker) -> None:
    with Fake(lambda _: None) as fake:
        gone = fake.address
    for _ in range(5):
        settings = {"bootstrap.servers": f"{gone},{kafka_shared.bootstrap_servers}", **QUICK}
        with Client(settings) as client:
            assert client.send(m.DescribeClusterRequest()).cluster_id


def test_no_broker_at_all_is_told_at_the_deadline() -> None:
    with Fake(lambda _: None) as fake:
        gone = fake.address
    with Client({"bootstrap.servers": gone, **QUICK}) as client:
        with pytest.raises(ClientError, match="cannot be reached") as caught:
            client.send(m.DescribeClusterRequest(), timeout_s=1)
        assert "tries in" in caught.value.__notes__[0]


def test_retries_have_a_bound() -> None:
    with Fake(lambda r: m.HeartbeatResponse(error_code=16) if r.SCHEMA.key == 12 else fake.coordinator("g")) as fake:
        with Client({"bootstrap.servers": fake.address, "retries": 2, **QUICK}) as client:
            assert client.send(m.HeartbeatRequest("g"), group("g")).error_code == Error.NOT_COORDINATOR
        assert len([r for r in fake.seen if r.SCHEMA.key == 12]) == 3


def test_without_retries_the_first_outcome_is_the_last() -> None:
    with Fake(lambda r: m.HeartbeatResponse(error_code=16) if r.SCHEMA.key == 12 else fake.coordinator("g")) as fake:
        with Client({"bootstrap.servers": fake.address}) as client:
            client.send(m.HeartbeatRequest("g"), group("g"), retry=False)
        assert len([r for r in fake.seen if r.SCHEMA.key == 12]) == 1


def test_a_coordinator_that_moved_is_found_again() -> None:
    def old(request: Any) -> Any:
        if request.SCHEMA.key == 10:
            asked = len([r for r in first.seen if r.SCHEMA.key == 10])
            return first.coordinator("g", first.port if asked == 1 else second.port)
        return m.HeartbeatResponse(error_code=Error.NOT_COORDINATOR)

    with Fake(old) as first, Fake(lambda _: m.HeartbeatResponse()) as second:
        with Client({"bootstrap.servers": first.address, **QUICK}) as client:
            for _ in range(2):
                check(client.send(m.HeartbeatRequest("g"), group("g")))
        assert len([r for r in first.seen if r.SCHEMA.key == 12]) == 1
        assert len(second.seen) == 2


def test_a_leader_that_moved_is_found_again() -> None:
    def answer(code: int) -> Any:
        row = m.ListOffsetsResponse_ListOffsetsPartitionResponse(0, code, offset=9)
        return m.ListOffsetsResponse(topics=[m.ListOffsetsResponse_ListOffsetsTopicResponse("t", [row])])

    def metadata() -> Any:
        moved = any(r.SCHEMA.key == 2 for r in first.seen)
        return first.metadata("t", *((2, 1) if moved else (1, 0)), others={2: second.port})

    def old(request: Any) -> Any:
        return metadata() if request.SCHEMA.key == 3 else answer(Error.NOT_LEADER_OR_FOLLOWER)

    def new(request: Any) -> Any:
        return metadata() if request.SCHEMA.key == 3 else answer(0)

    with Fake(new) as second, Fake(old) as first, Client({"bootstrap.servers": first.address, **QUICK}) as client:
        assert check(client.send(list_offsets("t"), Leader("t", 0))).topics[0].partitions[0].offset == 9
        assert client.cluster.topics["t"].partitions[0].leader == 2


def test_a_broker_that_lags_behind_does_not_bring_an_old_leader_back() -> None:
    epochs = iter([(2, 5), (1, 4), (1, 6)])
    with (
        Fake(lambda _: fake.metadata("t", *next(epochs))) as fake,
        Client({"bootstrap.servers": fake.address}) as client,
    ):
        leaders = [client.refresh(["t"]).topics["t"].partitions[0].leader for _ in range(3)]
    assert leaders == [2, 2, 1]


def test_a_partly_done_request_is_not_sent_again() -> None:
    rows = [m.CreateTopicsResponse_CreatableTopicResult("a"), m.CreateTopicsResponse_CreatableTopicResult("b", b"", 41)]
    with Fake(lambda r: m.CreateTopicsResponse(topics=rows)) as fake, Client({"bootstrap.servers": fake.address}) as c:
        assert [row.error_code for row in c.send(m.CreateTopicsRequest()).topics] == [0, 41]
        assert len(fake.seen) == 1


def test_a_quota_is_waited_for_as_long_as_the_broker_says() -> None:
    full = m.CreateTopicsResponse_CreatableTopicResult("a", error_code=Error.THROTTLING_QUOTA_EXCEEDED)
    answers = iter([m.CreateTopicsResponse(300, [full]), m.CreateTopicsResponse(0, [])])
    with Fake(lambda r: next(answers)) as fake, Client({"bootstrap.servers": fake.address, **QUICK}) as client:
        began = time.monotonic()
        check(client.send(m.CreateTopicsRequest()))
        assert time.monotonic() - began >= 0.3


def test_old_brokers_are_asked_for_one_coordinator_at_a_time() -> None:
    def answer(request: Any) -> Any:
        if request.SCHEMA.key == 10:
            assert request.key == "g"
            return m.FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=fake.port)
        return m.HeartbeatResponse()

    with Fake(answer, {10: (0, 2)}) as fake, Client({"bootstrap.servers": fake.address}) as client:
        check(client.send(m.HeartbeatRequest("g"), group("g")))


def test_the_time_that_a_request_lets_the_broker_wait_is_added() -> None:
    def late(_: Any) -> Any:
        time.sleep(0.4)
        return m.JoinGroupResponse(error_code=25)

    settings = {"socket.timeout.ms": 100, "default.api.timeout.ms": 100}
    with Fake(late) as fake, Client({"bootstrap.servers": fake.address, **settings}) as client:
        assert client.send(m.JoinGroupRequest("g", 6000, 2000)).error_code == 25
        with pytest.raises(ClientError, match="did not answer Heartbeat in time"):
            client.send(m.HeartbeatRequest("g"))


def test_a_cluster_that_asks_to_begin_anew_is_asked_anew() -> None:
    answers = iter([m.MetadataResponse(error_code=Error.REBOOTSTRAP_REQUIRED)])
    with (
        Fake(lambda _: next(answers, fake.metadata())) as fake,
        Client({"bootstrap.servers": fake.address, **QUICK}) as c,
    ):
        assert c.refresh().id == "fake"


def test_targets_say_who_they_are() -> None:
    everyone = [CONTROLLER, Node(3), group("g"), transaction("t"), share("g", "i", 2), Leader("a", 1)]
    assert [str(one) for one in everyone] == [
        "the controller",
        "broker 3",
        "the coordinator of group g",
        "the coordinator of transactional id t",
        "the coordinator of share partition g:i:2",
        "the leader of a-1",
    ]
