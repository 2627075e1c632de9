"""Elections and reassignments: what is refused, and what the partition looks like after replay."""

import pytest

from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.placement import PREFERRED, UNCLEAN, cancel, elect_leader, moving, reassign
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

ID = bytes(range(16))


def directory(broker: int) -> bytes:
    return bytes([broker] * 16)


@pytest.fixture
def cluster() -> Cluster:
    image = Cluster()
    for broker in (1, 2, 3):
        image.replay(m.RegisterBrokerRecord(broker_id=broker, fenced=False, log_dirs=[directory(broker)]))
    image.replay(m.TopicRecord("t", ID))
    placed = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "directories": [directory(1), directory(2)]}
    image.replay(m.PartitionRecord(partition_id=0, topic_id=ID, **placed))
    return image


def commit(cluster: Cluster, changes):
    for record in changes:
        cluster.replay(records.decode(records.encode(record)))
    return cluster.topics["t"].partitions[0]


def refusal(call, *args) -> Error:
    with pytest.raises(Refused) as caught:
        call(*args)
    return caught.value.error


@pytest.mark.parametrize("command", [elect_leader, reassign])
def test_unknown_partitions_are_refused(cluster, command):
    assert refusal(command, cluster, "unknown", 0, [1]) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(command, cluster, "t", 1, [1]) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert refusal(cancel, cluster, "t", 1) == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_a_partition_that_is_led_as_it_should_be_needs_no_election(cluster, kind):
    assert refusal(elect_leader, cluster, "t", 0, kind) == Error.ELECTION_NOT_NEEDED


def test_the_preferred_replica_gets_the_lead_back(cluster):
    commit(cluster, elect_leader_after(cluster, leader=2))
    assert cluster.topics["t"].partitions[0].leader == 1


def elect_leader_after(cluster, kind=PREFERRED, **changes):
    cluster.replay(m.PartitionChangeRecord(0, ID, **changes))
    return elect_leader(cluster, "t", 0, kind)


def test_a_preferred_replica_out_of_sync_is_not_elected(cluster):
    assert refusal(lambda: elect_leader_after(cluster, leader=2, isr=[2])) == Error.PREFERRED_LEADER_NOT_AVAILABLE


def test_an_unclean_election_takes_whoever_lives(cluster):
    cluster.replay(m.FenceBrokerRecord(1))
    part = commit(cluster, elect_leader_after(cluster, UNCLEAN, leader=-1, isr=[1]))
    assert (part.leader, part.isr) == (2, (2,))


def test_an_unclean_election_needs_somebody_who_lives(cluster):
    cluster.replay(m.FenceBrokerRecord(1))
    cluster.replay(m.FenceBrokerRecord(2))
    assert refusal(lambda: elect_leader_after(cluster, UNCLEAN, leader=-1)) == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE


@pytest.mark.parametrize("target", [[], [1, 1], [9], [1, 9], [-1]])
def test_impossible_replica_lists_are_refused(cluster, target):
    assert refusal(reassign, cluster, "t", 0, target) == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_request_may_forbid_to_change_the_number_of_replicas(cluster):
    assert refusal(reassign, cluster, "t", 0, [1], False) == Error.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, "t", 0, [2, 1], False)


def test_to_stay_where_it_is_needs_no_record(cluster):
    assert reassign(cluster, "t", 0, [1, 2]) == []


def test_a_move_to_replicas_in_sync_is_done_at_once(cluster):
    part = commit(cluster, reassign(cluster, "t", 0, [2]))
    assert (part.replicas, part.isr, part.leader, part.adding, part.removing) == ((2,), (2,), 2, (), ())
    assert part.directories == (directory(2),)


def test_a_move_to_another_broker_is_listed_until_it_ends(cluster):
    part = commit(cluster, reassign(cluster, "t", 0, [3]))
    assert (part.replicas, part.adding, part.removing, part.isr) == ((3, 1, 2), (3,), (1, 2), (1, 2))
    assert part.directories == (directory(3), directory(1), directory(2))
    assert list(moving(cluster.topics["t"])) == [part]


def test_a_cancelled_move_leaves_all_as_it_was(cluster):
    commit(cluster, reassign(cluster, "t", 0, [3]))
    part = commit(cluster, cancel(cluster, "t", 0))
    assert (part.replicas, part.adding, part.removing, part.leader) == ((1, 2), (), (), 1)
    assert refusal(cancel, cluster, "t", 0) == Error.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_can_be_turned_to_another_place_before_it_ends(cluster):
    commit(cluster, reassign(cluster, "t", 0, [3]))
    part = commit(cluster, reassign(cluster, "t", 0, [1, 3]))
    assert (part.replicas, part.adding, part.removing) == ((1, 3, 2), (3,), (2,))
