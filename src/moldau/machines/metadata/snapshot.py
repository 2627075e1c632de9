"""The records that rebuild an image: what a snapshot of the metadata log holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from typing import Any

from moldau.machines.metadata.cluster import Broker, Cluster, Controller, Partition, Topic
from moldau.wire import messages as m


def image_records(cluster: Cluster) -> Iterator[Any]:
    """Replayed in this order into an empty image, these give the same one."""
    for name, level in cluster.features.items():
        yield m.FeatureLevelRecord(name, level)
    for broker in cluster.brokers.values():
        yield broker_record(broker)
    for controller in cluster.controllers.values():
        yield controller_record(controller)
    for topic in cluster.topics.values():
        yield m.TopicRecord(topic.name, topic.id)
        for partition in topic.partitions.values():
            yield partition_record(topic, partition)
    for (kind, name), entries in cluster.configs.items():
        for key, value in entries.items():
            yield m.ConfigRecord(kind, name, key, value)
    for entity, values in cluster.quotas.items():
        parts = [m.ClientQuotaRecord_EntityData(*part) for part in entity]
        for key, value in values.items():
            yield m.ClientQuotaRecord(parts, key, value, False)
    for acl_id, acl in cluster.acls.by_id.items():
        yield m.AccessControlEntryRecord(acl_id, *acl)
    for key, credential in cluster.credentials.items():
        yield m.UserScramCredentialRecord(*key, *astuple(credential))
    yield from cluster.tokens.values()
    if cluster.next_producer_id:
        yield m.ProducerIdsRecord(-1, -1, cluster.next_producer_id)


def broker_record(broker: Broker) -> Any:
    return m.RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation,
        broker_epoch=broker.epoch,
        end_points=[m.RegisterBrokerRecord_BrokerEndpoint(*endpoint) for endpoint in broker.endpoints],
        features=[m.RegisterBrokerRecord_BrokerFeature(name, *levels) for name, levels in broker.features.items()],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if broker.cordoned_dirs is None else list(broker.cordoned_dirs),
    )


def controller_record(controller: Controller) -> Any:
    return m.RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation,
        end_points=[m.RegisterControllerRecord_ControllerEndpoint(*endpoint) for endpoint in controller.endpoints],
        features=[
            m.RegisterControllerRecord_ControllerFeature(name, *levels) for name, levels in controller.features.items()
        ],
    )


def partition_record(topic: Topic, partition: Partition) -> Any:
    return m.PartitionRecord(
        partition_id=partition.index,
        topic_id=topic.id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        eligible_leader_replicas=list(partition.eligible_leaders) or None,
        last_known_elr=list(partition.last_known_leaders) or None,
    )
