"""Clusters, brokers and the replicas that a broker has."""

from __future__ import annotations

from typing import Any

from moldau.admin import clusters as admin
from moldau.http import Endpoint
from moldau.rest.endpoints import Call
from moldau.rest.errors import not_found
from moldau.rest.v3.partitions import replica


def cluster(call: Call) -> dict[str, Any]:
    controller = admin.described(call.kafka.client).controller
    known = {"controller": call.link("brokers", controller)} if controller >= 0 else {}
    return call.resource(
        "KafkaCluster",
        (),
        {},
        **known,
        acls=call.link("acls"),
        brokers=call.link("brokers"),
        broker_configs=call.link("broker-configs"),
        consumer_groups=call.link("consumer-groups"),
        topics=call.link("topics"),
        partition_reassignments=call.link("topics", "-", "partitions", "-", "reassignment"),
    )


def clusters(call: Call) -> dict[str, Any]:
    return call.listing("KafkaClusterList", [cluster(call)])


def brokers(call: Call) -> dict[str, Any]:
    rows = admin.described(call.kafka.client).brokers
    return call.listing("KafkaBrokerList", [_broker(call, row) for row in rows])


def broker(call: Call) -> dict[str, Any]:
    for row in admin.described(call.kafka.client).brokers:
        if row.id == call["broker_id"]:
            return _broker(call, row)
    raise not_found(f"Broker {call['broker_id']}")


def _broker(call: Call, row: admin.BrokerState) -> dict[str, Any]:
    where = ("brokers", row.id)
    return call.resource(
        "KafkaBroker",
        where,
        {"broker": row.id},
        broker_id=row.id,
        host=row.host,
        port=row.port,
        rack=row.rack,
        configs=call.link(*where, "configs"),
        partition_replicas=call.link(*where, "partition-replicas"),
    )


def replicas(call: Call) -> dict[str, Any]:
    number = broker(call)["broker_id"]
    found = [
        replica(call, topic.name, partition, number)
        for topic in call.kafka.topics(None)
        for partition in sorted(topic.partitions, key=lambda row: row.partition_index)
        if number in partition.replica_nodes
    ]
    return call.listing("KafkaReplicaList", found)


ROOT = "/v3/clusters"
ONE = f"{ROOT}/{{cluster_id}}"
CLUSTERS = (
    Endpoint("GET", ROOT, clusters, "The cluster behind this proxy, as a list of one.", "ClusterList"),
    Endpoint("GET", ONE, cluster, "The cluster.", "Cluster"),
    Endpoint("GET", f"{ONE}/brokers", brokers, "Its brokers.", "BrokerList"),
    Endpoint("GET", f"{ONE}/brokers/{{broker_id}}", broker, "One broker.", "Broker"),
    Endpoint(
        "GET", f"{ONE}/brokers/{{broker_id}}/partition-replicas", replicas, "Replicas of a broker.", "ReplicaList"
    ),
)
