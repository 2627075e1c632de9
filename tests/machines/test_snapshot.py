"""A snapshot gives the same image as the log that it stands for."""

from moldau.machines.metadata import records
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.snapshot import image_records
from moldau.machines.metadata.topics import NewTopic, create_topic
from moldau.wire import messages as m

ENDPOINT = m.RegisterBrokerRecord_BrokerEndpoint("PLAINTEXT", "127.0.0.1", 9092, 0)
FEATURE = m.RegisterBrokerRecord_BrokerFeature("group.version", 0, 1)


def history(cluster: Cluster):
    yield m.FeatureLevelRecord("metadata.version", 30)
    yield m.RegisterBrokerRecord(
        broker_id=1, broker_epoch=7, end_points=[ENDPOINT], features=[FEATURE], rack="r", log_dirs=[b"d" * 16]
    )
    yield m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1)
    yield from create_topic(cluster, NewTopic("gone", 2, 1), b"g" * 16)
    yield m.RemoveTopicRecord(b"g" * 16)
    yield from create_topic(cluster, NewTopic("kept", 2, 1, configs={"retention.ms": "5"}), b"k" * 16)
    yield m.PartitionChangeRecord(partition_id=1, topic_id=b"k" * 16, leader=-1, eligible_leader_replicas=[1])
    yield m.ConfigRecord(4, "", "log.retention.ms", "9")
    yield m.ClientQuotaRecord([m.ClientQuotaRecord_EntityData("user", None)], "producer_byte_rate", 10.5, False)
    yield m.ProducerIdsRecord(1, 7, 3000)
    yield m.AccessControlEntryRecord(b"1" * 16, 2, "pay", 4, "User:a", "*", 3, 3)
    yield m.AccessControlEntryRecord(b"2" * 16, 2, "pay", 4, "User:b", "*", 3, 3)
    yield m.RemoveAccessControlEntryRecord(b"2" * 16)
    yield m.UserScramCredentialRecord("u", 1, b"salt", b"stored", b"server", 4096)
    yield m.UserScramCredentialRecord("v", 2, b"salt", b"stored", b"server", 8192)
    yield m.RemoveUserScramCredentialRecord("v", 2)
    yield m.DelegationTokenRecord("User:a", "User:b", ["User:c"], 1, 9, 5, "kept")
    yield m.DelegationTokenRecord("User:a", "User:b", [], 1, 9, 5, "gone")
    yield m.RemoveDelegationTokenRecord("gone")


def test_a_snapshot_rebuilds_the_image():
    original, rebuilt = Cluster(), Cluster()
    for record in history(original):
        original.replay(records.decode(records.encode(record)))
    assert list(original.topics) == ["kept"]
    for record in image_records(original):
        rebuilt.replay(records.decode(records.encode(record)))
    rebuilt.topic_changes = original.topic_changes  # counted, not part of the image
    assert vars(rebuilt) == vars(original)
