"""Kafka in tests: a pytest plugin and context managers, on the real broker.

The fixtures are `kafka`, `kafka_shared`, `kafka_cluster`, `connect` and `ksql`.

A test uses the fixture; a script writes

    from moldau.testing import broker

    with broker() as kafka:
        kafka.create_topic("orders", partitions=3)
        ...  # any client, on kafka.bootstrap_servers
"""

from moldau.testing.clusters import Cluster, cluster
from moldau.testing.network import CLIENTS, Network
from moldau.testing.process import Broker, BrokerFailed, broker, eventually

__all__ = ["CLIENTS", "Broker", "BrokerFailed", "Cluster", "Network", "broker", "cluster", "eventually"]
