"""A small synchronous Kafka client on `moldau.wire`: any message to any broker, coordinator, controller or leader.

It is for what confluent-kafka has no call for; see docs/client.md. Settings have librdkafka's names.
"""

from moldau.client.client import Client
from moldau.client.cluster import Broker, Cluster, Partition, Topic
from moldau.client.errors import ClientError
from moldau.client.fetch import Fetched, Fetcher
from moldau.client.membership import Generation, Member, Peer
from moldau.client.outcomes import Outcome, check, outcomes
from moldau.client.produce import Sender, Sent, produce
from moldau.client.targets import ANY, CONTROLLER, Coordinator, Leader, Node, group, share, transaction
from moldau.client.transactions import Transaction, TransactionalProducer, end

__all__ = [
    "ANY",
    "CONTROLLER",
    "Broker",
    "Client",
    "ClientError",
    "Cluster",
    "Coordinator",
    "Fetched",
    "Fetcher",
    "Generation",
    "Leader",
    "Member",
    "Node",
    "Outcome",
    "Partition",
    "Peer",
    "Sender",
    "Sent",
    "Topic",
    "Transaction",
    "TransactionalProducer",
    "check",
    "end",
    "group",
    "outcomes",
    "produce",
    "share",
    "transaction",
]
