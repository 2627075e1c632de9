"""Feature levels: what is refused, and which records a change makes."""

import pytest

from moldau.machines.metadata.cluster import BROKER, Cluster
from moldau.machines.metadata.features import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, Wish, update_features
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ELR = "eligible.leader.replicas.version"
LEVELS = {"metadata.version": (7, 30), "kraft.version": (0, 1), "group.version": (0, 1), ELR: (0, 1)}


@pytest.fixture
def cluster() -> Cluster:
    image = Cluster()
    features = [m.RegisterBrokerRecord_BrokerFeature(name, *levels) for name, levels in LEVELS.items()]
    image.replay(m.RegisterBrokerRecord(broker_id=1, fenced=False, features=features))
    image.replay(m.FeatureLevelRecord("metadata.version", 30))
    image.replay(m.FeatureLevelRecord("group.version", 1))
    return image


def update(cluster: Cluster, *wishes: Wish):
    return tuple(update_features(cluster, wishes, 2))


@pytest.mark.parametrize(
    "wish",
    [
        Wish("group.version", 1, 0),
        Wish("group.version", 1, 4),
        Wish("group.version", -1),
        Wish("group.version", 2),
        Wish("group.version", 0),
        Wish("unknown", 1),
        Wish("unknown", 0, SAFE_DOWNGRADE),
        Wish("metadata.version", 31),
        Wish("metadata.version", 29),
        Wish("metadata.version", 29, SAFE_DOWNGRADE),
        Wish("metadata.version", 29, UNSAFE_DOWNGRADE),
        Wish("metadata.version", 6, SAFE_DOWNGRADE),
        Wish("kraft.version", 1, SAFE_DOWNGRADE),
    ],
)
def test_a_level_that_cannot_be_is_refused(cluster, wish):
    with pytest.raises(Refused) as caught:
        update(cluster, wish)
    assert caught.value.error == Error.INVALID_UPDATE_VERSION


def test_one_refusal_stops_all(cluster):
    with pytest.raises(Refused):
        update(cluster, Wish("group.version", 0, SAFE_DOWNGRADE), Wish("unknown", 1))


def test_levels_go_down_and_up_where_that_is_safe(cluster):
    assert update(cluster, Wish("group.version", 0, SAFE_DOWNGRADE)) == (m.FeatureLevelRecord("group.version", 0),)
    assert update(cluster, Wish("kraft.version", 1, UPGRADE)) == (m.FeatureLevelRecord("kraft.version", 1),)


def test_kraft_version_never_goes_back(cluster):
    cluster.replay(m.FeatureLevelRecord("kraft.version", 1))
    with pytest.raises(Refused):
        update(cluster, Wish("kraft.version", 0, UNSAFE_DOWNGRADE))


@pytest.mark.parametrize("kind", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_the_level_that_is_needs_no_record(cluster, kind):
    assert update(cluster, Wish("group.version", 1, kind)) == ()


def test_the_last_of_two_wishes_counts(cluster):
    assert update(cluster, Wish("group.version", 2), Wish("group.version", 1)) == ()


@pytest.mark.parametrize(("name", "cleared"), [("a", ["a"]), ("", ["a", "b"])])
def test_eligible_leaders_are_cleared_of_a_topic_or_of_all(cluster, name, cleared):
    for topic in "ab":
        cluster.replay(m.TopicRecord(topic, topic.encode() * 16))
        for index, leaders in enumerate(([2], None)):
            known = {"eligible_leader_replicas": leaders, "last_known_elr": leaders}
            cluster.replay(
                m.PartitionRecord(index, topic.encode() * 16, [1, 2], [1], leader=1, partition_epoch=0, **known)
            )
    cluster.replay(m.ClearElrRecord(name))
    for topic in cluster.topics.values():
        had, never = topic.partitions.values()
        gone = topic.name in cleared
        assert (had.eligible_leaders, had.last_known_leaders) == (((), ()) if gone else ((2,), (2,)))
        assert (had.partition_epoch, never.partition_epoch) == (int(gone), 0)
    assert not cluster.unsupported


def test_eligible_leaders_pin_the_min_insync_replicas_of_the_cluster(cluster):
    cluster.replay(m.ConfigRecord(BROKER, "1", "min.insync.replicas", "3"))
    assert update(cluster, Wish(ELR, 1)) == (
        m.FeatureLevelRecord(ELR, 1),
        m.ConfigRecord(BROKER, "1", "min.insync.replicas", None),
        m.ConfigRecord(BROKER, "", "min.insync.replicas", "2"),
    )
    cluster.replay(m.ConfigRecord(BROKER, "", "min.insync.replicas", "4"))
    assert m.ConfigRecord(BROKER, "", "min.insync.replicas", "2") not in update(cluster, Wish(ELR, 1))


def test_a_level_that_a_registered_controller_cannot_take_is_refused(cluster):
    old = [m.RegisterControllerRecord_ControllerFeature("group.version", 0, 0)]
    cluster.replay(m.RegisterControllerRecord(controller_id=7, features=old))
    cluster.replay(m.FeatureLevelRecord("group.version", 0))
    with pytest.raises(Refused, match="controller 7 supports levels 0 to 0"):
        update(cluster, Wish("group.version", 1))
    with pytest.raises(Refused, match="controller 7 does not know this feature"):
        update(cluster, Wish(ELR, 1))
