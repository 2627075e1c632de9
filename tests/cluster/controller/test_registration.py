"""Registration: who is taken, who is refused and why, and what it does to partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moldau.cluster.controller.heartbeats import Heartbeats
from moldau.cluster.controller.registration import register, register_controller, unregister
from moldau.cluster.controller.result import Result
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.snapshot import image_records
from moldau.wire import messages as m
from moldau.wire.errors import Error
from tests.cluster.controller.images import EPOCH, add_topic, commit, directory, image_of, kinds, partition, policy

CLUSTER_ID = "cluster"
NEXT = 500
FEATURES = {"metadata.version": (7, 30), "eligible.leader.replicas.version": (0, 1)}


def request_of(broker: int = 1, incarnation: int = 9, features: dict[str, Any] = FEATURES, **other: Any) -> Any:
    given = m.BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=CLUSTER_ID,
        incarnation_id=bytes([incarnation] * 16),
        listeners=[m.BrokerRegistrationRequest_Listener("PLAINTEXT", "host", 9092, 0)],
        features=[m.BrokerRegistrationRequest_Feature(name, *levels) for name, levels in features.items()],
        rack="r1",
        log_dirs=[directory(broker)],
    )
    return replace(given, **other)


def heard(*brokers: int) -> Heartbeats:
    """Sessions of brokers that were heard at 0."""
    heartbeats = Heartbeats(9000)
    heartbeats.begin(image_of(brokers), 0)
    return heartbeats


def ask(
    image: Cluster,
    request: Any,
    version: int = 4,
    heartbeats: Heartbeats | None = None,
    now_ms: float = 0,
    **other: Any,
) -> Result:
    sessions = heartbeats or Heartbeats(9000)
    return register(image, request, version, NEXT, now_ms, sessions, policy(image), CLUSTER_ID, **other)


def refusal(image: Cluster, request: Any, **other: Any) -> Error:
    result = ask(image, request, **other)
    assert not result.records
    assert result.response.broker_epoch == -1
    return Error(result.response.error_code)


def test_a_new_broker_is_registered_and_fenced() -> None:
    image = image_of(())
    result = ask(image, request_of())
    assert result.response.broker_epoch == NEXT
    for record in result.records:
        image.replay(record)
    broker = image.brokers[1]
    assert (broker.epoch, broker.fenced, broker.in_controlled_shutdown, broker.rack) == (NEXT, True, False, "r1")
    assert broker.endpoints[0].host == "host"
    assert broker.features == FEATURES
    assert broker.log_dirs == (directory(1),)


def test_another_cluster_is_refused() -> None:
    assert refusal(image_of(), request_of(cluster_id="other")) == Error.INCONSISTENT_CLUSTER_ID


def test_a_second_process_is_refused_while_the_first_is_heard() -> None:
    image, sessions = image_of(), heard(1)
    assert refusal(image, request_of(), heartbeats=sessions, now_ms=9000) == Error.DUPLICATE_BROKER_REGISTRATION
    assert not ask(image, request_of(), heartbeats=sessions, now_ms=9001).response.error_code
    assert not ask(image_of(), request_of()).response.error_code


def test_the_session_of_an_older_process_does_not_count() -> None:
    image, sessions = image_of(), heard(1)
    sessions.sessions[1].epoch -= 1
    assert not ask(image, request_of(), heartbeats=sessions).response.error_code


def test_brokers_of_zookeeper_are_refused() -> None:
    assert refusal(image_of(), request_of(is_migrating_zk_broker=True)) == Error.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    "directories",
    [[], [directory(1), directory(1)], [bytes(16)], [bytes(15) + b"\x63"], [directory(2)]],
    ids=["none", "twice", "reserved", "reserved below 100", "of another"],
)
def test_directories_must_be_its_own(directories: list[bytes]) -> None:
    assert refusal(image_of(), request_of(log_dirs=directories)) == Error.INVALID_REGISTRATION


def test_directories_do_not_matter_before_there_were_ids() -> None:
    image = image_of(level=16, eligible=False)
    (record,) = ask(image, request_of(log_dirs=[])).records
    assert record.log_dirs == []


@pytest.mark.parametrize(
    ("features", "error"),
    [
        ({"metadata.version": (7, 29)}, Error.UNSUPPORTED_VERSION),
        ({"metadata.version": (7, 30)}, Error.UNSUPPORTED_VERSION),  # the cluster has eligible leaders
        ({"eligible.leader.replicas.version": (0, 1)}, Error.INVALID_REGISTRATION),
        (FEATURES | {"group.version": (1, 1)}, Error.UNSUPPORTED_VERSION),  # which the cluster does not use
        (FEATURES | {"moldau.version": (0, 1)}, Error.NONE),
    ],
)
def test_features_must_fit(features: dict[str, Any], error: Error) -> None:
    assert ask(image_of(), request_of(features=features)).response.error_code == error


def test_kraft_version_is_a_feature_that_is_in_no_record() -> None:
    request = request_of(features=FEATURES | {"kraft.version": (0, 0)})
    assert refusal(image_of(), request, kraft_version=1) == Error.UNSUPPORTED_VERSION
    assert not ask(image_of(), request).response.error_code


def test_the_same_process_keeps_its_epoch_and_state() -> None:
    image = image_of()
    add_topic(image)
    sessions = heard(1)
    result = ask(image, request_of(incarnation=1, rack="r2"), heartbeats=sessions)
    assert result.response.broker_epoch == EPOCH + 1
    assert kinds(result.records) == ["RegisterBrokerRecord"]
    part = commit(image, result.records)
    assert (image.brokers[1].fenced, image.brokers[1].rack, part.leader) == (False, "r2", 1)


@pytest.mark.parametrize(
    ("previous", "version", "eligible"),
    [(EPOCH + 1, 4, (1,)), (EPOCH, 4, ()), (-1, 4, ()), (EPOCH + 1, 2, ())],
    ids=["in order", "another process before", "unknown", "an old request"],
)
def test_whoever_did_not_end_in_order_is_not_eligible(previous: int, version: int, eligible: tuple[int, ...]) -> None:
    image = image_of(fenced=(2,))
    add_topic(image, {"isr": [1]}, {"isr": [], "leader": -1, "eligible_leader_replicas": [1, 2], "last_known_elr": [2]})
    result = ask(image, request_of(previous_broker_epoch=previous), version)
    part = commit(image, result.records)
    assert (part.leader, part.isr, part.eligible_leaders, part.last_known_leaders) == (-1, (), eligible, (1,))
    assert partition(image, 1).eligible_leaders == (*eligible, 2)
    assert result.records[-1].broker_epoch == NEXT


def test_without_eligible_leaders_a_new_process_leaves_the_isr_too() -> None:
    image = image_of(eligible=False)
    add_topic(image, {}, {"isr": [1]})
    part = commit(image, ask(image, request_of(features={"metadata.version": (7, 30)})).records)
    assert (part.leader, part.isr) == (2, (2, 3))
    assert (partition(image, 1).leader, partition(image, 1).isr) == (-1, (1,))


def test_unregistering_takes_a_broker_out_of_everything() -> None:
    image = image_of()
    add_topic(image, {}, {"replicas": [2, 3]})
    result = unregister(image, 1, policy(image))
    part = commit(image, result.records)
    assert (part.leader, part.isr) == (2, (2, 3))
    assert (list(image.brokers), result.response.error_code) == ([2, 3], 0)
    assert len(result.records) == 2


def test_an_unknown_broker_cannot_be_unregistered() -> None:
    result = unregister(image_of(), 9, policy(image_of()))
    assert (result.records, result.response.error_code) == ([], Error.BROKER_ID_NOT_REGISTERED)


def controller_request() -> Any:
    return m.ControllerRegistrationRequest(
        controller_id=7,
        incarnation_id=bytes([7] * 16),
        listeners=[m.ControllerRegistrationRequest_Listener("CONTROLLER", "host", 9093, 0)],
        features=[m.ControllerRegistrationRequest_Feature("metadata.version", 7, 30)],
    )


def test_a_controller_registers_and_survives_a_snapshot() -> None:
    image = image_of()
    result = register_controller(image, controller_request())
    for record in result.records:
        image.replay(record)
    copied = Cluster()
    for record in image_records(image):
        copied.replay(record)
    assert copied.controllers == image.controllers
    assert copied.controllers[7].endpoints[0].port == 9093
    assert copied.controllers[7].features == {"metadata.version": (7, 30)}


def test_an_old_cluster_knows_no_controllers() -> None:
    result = register_controller(image_of(level=14, eligible=False), controller_request())
    assert (result.records, result.response.error_code) == ([], Error.UNSUPPORTED_VERSION)
