"""Settings of resources: which records bring them about, what exists and what may not change."""

import pytest

from moldau.machines.metadata.cluster import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, Cluster
from moldau.machines.metadata.configs import broker_layers, check_resource, list_resources, replace
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

MIN = "min.insync.replicas"


@pytest.fixture
def cluster() -> Cluster:
    image = Cluster()
    image.replay(m.RegisterBrokerRecord(broker_id=1, fenced=False))
    image.replay(m.TopicRecord("t", bytes(range(16))))
    image.replay(m.ConfigRecord(TOPIC, "t", "retention.ms", "1"))
    image.replay(m.ConfigRecord(TOPIC, "t", "segment.ms", "2"))
    return image


def refusal(call, *args) -> Error:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value.error


def test_only_what_changes_is_written(cluster):
    result = replace(cluster, TOPIC, "t", {"retention.ms": "5", "flush.ms": "6", "segment.ms": "2"}, ["segment.ms"])
    assert result == [
        m.ConfigRecord(TOPIC, "t", "retention.ms", "5"),
        m.ConfigRecord(TOPIC, "t", "flush.ms", "6"),
    ]
    assert replace(cluster, TOPIC, "t", {}) == [
        m.ConfigRecord(TOPIC, "t", "retention.ms", None),
        m.ConfigRecord(TOPIC, "t", "segment.ms", None),
    ]


def test_a_touched_setting_of_a_broker_is_written_again(cluster):
    cluster.replay(m.ConfigRecord(BROKER, "1", "a", "x"))
    assert replace(cluster, BROKER, "1", {"a": "x"}, ["a"]) == [m.ConfigRecord(BROKER, "1", "a", "x")]
    assert replace(cluster, BROKER, "1", {"a": "x"}) == []


def test_a_topic_must_exist(cluster):
    assert refusal(replace, cluster, TOPIC, "unknown", {}) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert replace(cluster, GROUP, "unknown", {}) == []


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "", Error.INVALID_REQUEST),
        (TOPIC, "a/b", Error.INVALID_TOPIC_EXCEPTION),
        (GROUP, "", Error.INVALID_REQUEST),
        (CLIENT_METRICS, "", Error.INVALID_REQUEST),
    ],
)
def test_resources_need_a_name_that_can_be(kind, name, error):
    assert refusal(check_resource, kind, name) == error


def test_only_brokers_have_settings_for_all():
    check_resource(BROKER, "")


def test_with_eligible_leaders_min_insync_belongs_to_the_cluster(cluster):
    cluster.replay(m.FeatureLevelRecord("eligible.leader.replicas.version", 1))
    cluster.replay(m.ConfigRecord(BROKER, "", MIN, "1"))
    assert refusal(replace, cluster, BROKER, "1", {MIN: "2"}, [MIN]) == Error.INVALID_CONFIG
    assert refusal(replace, cluster, BROKER, "", {}, [MIN]) == Error.INVALID_CONFIG
    assert refusal(replace, cluster, BROKER, "", {"a": "x"}, ["a"]) == Error.INVALID_CONFIG
    assert replace(cluster, BROKER, "", {MIN: "2"}, [MIN]) == [m.ConfigRecord(BROKER, "", MIN, "2")]


def test_without_eligible_leaders_min_insync_is_like_any_other(cluster):
    assert replace(cluster, BROKER, "1", {MIN: "2"}, [MIN]) == [m.ConfigRecord(BROKER, "1", MIN, "2")]


def test_a_broker_reads_its_own_layer_and_that_of_all(cluster):
    cluster.replay(m.ConfigRecord(BROKER, "1", "a", "x"))
    cluster.replay(m.ConfigRecord(BROKER, "", "a", "y"))
    assert broker_layers(cluster, 1) == ({"a": "x"}, {"a": "y"})
    assert broker_layers(cluster, 2) == ({}, {"a": "y"})


def test_resources_are_listed_by_kind(cluster):
    cluster.replay(m.ConfigRecord(GROUP, "g", "a", "x"))
    cluster.replay(m.ConfigRecord(CLIENT_METRICS, "m", "a", "x"))
    cluster.replay(m.ConfigRecord(BROKER, "", "a", "x"))
    everything = [(GROUP, "g"), (CLIENT_METRICS, "m"), (BROKER_LOGGER, "1"), (BROKER, "1"), (TOPIC, "t")]
    assert list(list_resources(cluster, (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP))) == everything
    assert list(list_resources(cluster, [TOPIC, TOPIC])) == [(TOPIC, "t")]
    assert refusal(list_resources, cluster, [TOPIC, 3]) == Error.UNSUPPORTED_VERSION
