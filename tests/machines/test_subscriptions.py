"""Patterns and the hash of a group's topics."""

from __future__ import annotations

import base64

import pytest

from moldau.machines.consumer.subscriptions import anything, compiled, resolve
from moldau.machines.epochs.hashing import metadata_hash
from moldau.machines.metadata.cluster import Cluster
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


def cluster(rack: str | None, *topics: tuple[str, bytes, int]) -> Cluster:
    made = Cluster()
    made.replay(m.RegisterBrokerRecord(broker_id=0, fenced=False, rack=rack))
    for name, topic_id, partitions in topics:
        made.replay(m.TopicRecord(name, topic_id))
        for index in range(partitions):
            made.replay(m.PartitionRecord(partition_id=index, topic_id=topic_id, replicas=[0], isr=[0]))
    return made


def test_the_hash_is_that_of_apache_kafka():
    """Seen in a record of Kafka 4.3.1, for a broker with a rack."""
    topic_id = base64.urlsafe_b64decode("J530RwGbQxmpZ2pZifh2nA==")
    assert metadata_hash(["k18310a"], cluster("RACK1", ("k18310a", topic_id, 4))) == -8125584732122938985


def test_the_hash_of_many_brokers_is_that_of_one_if_they_share_a_rack():
    one = cluster("r", ("t", bytes(16), 3))
    two = cluster("r", ("t", bytes(16), 3))
    two.replay(m.RegisterBrokerRecord(broker_id=7, fenced=False, rack="other"))
    assert metadata_hash(["t"], one) == metadata_hash(["t"], two)


def test_the_hash_tells_partitions_ids_and_racks_apart_and_passes_over_what_is_not_there():
    base = metadata_hash(["t"], cluster(None, ("t", bytes(16), 3)))
    assert metadata_hash(["t", "missing"], cluster(None, ("t", bytes(16), 3))) == base
    others = [("t", bytes(16), 4), ("t", b"1" * 16, 3), ("u", bytes(16), 3)]
    assert len({base, *(metadata_hash(["t", "u"], cluster(None, other)) for other in others)}) == 4
    assert metadata_hash(["t"], cluster("r", ("t", bytes(16), 3))) != base
    assert metadata_hash(["missing"], cluster(None)) == 0


def test_patterns_match_whole_names_that_the_client_may_know():
    known = cluster(None, *((name, bytes([number]) * 16, 1) for number, name in enumerate(["ta", "tb", "ot"])))
    assert resolve("^t.*", known, anything, 5).topics == {"ta", "tb"}
    assert resolve("t", known, anything, 5).topics == frozenset()
    assert resolve("t.", known, lambda name: name != "tb", 5).topics == {"ta"}


@pytest.mark.parametrize("pattern", ["(", "[a", "(?=a)", r"\1", "a**"])
def test_what_re2_does_not_know_is_no_pattern(pattern):
    with pytest.raises(Refused, match="INVALID_REGULAR_EXPRESSION"):
        compiled(pattern)


def test_a_pattern_cannot_hold_up_the_node():
    """A backtracking matcher would need longer than the age of the universe."""
    known = cluster(None, ("a" * 200, bytes(16), 1))
    assert not resolve("(a+)+b", known, anything, 0).topics
