"""Kafka in tests: a pytest plugin (`kafka`, `kafka_shared`, `kafka_cluster`) and a context manager, on the real broker.

A test uses the fixture; a script writes

    from moldau.testing import broker

    with broker() as kafka:
        kafka.create_topic("orders", partitions=3)
        ...  # any client, on kafka.bootstrap_servers
"""

from moldau.testing.clusters import Cluster, cluster
from moldau.testing.process import Broker, BrokerFailed, broker, eventually

__all__ = ["Broker", "BrokerFailed", "Cluster", "broker", "cluster", "eventually"]
