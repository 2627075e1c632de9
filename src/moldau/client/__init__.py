"""A small synchronous Kafka client on `moldau.wire`: any message to any broker, coordinator, controller or leader.

It is for what confluent-kafka has no call for; see docs/client.md. Settings have librdkafka's names. What its users
need of the wire (messages, error codes, record batches) is here too, so that they import nothing else.
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
from moldau.wire import messages
from moldau.wire.errors import Error
from moldau.wire.records import Batch, Record, build, records

__all__ = [
    "ANY", "CONTROLLER", "Batch", "Broker", "Client", "ClientError", "Cluster", "Coordinator", "Error", "Fetched",
    "Fetcher", "Generation", "Leader", "Member", "Node", "Outcome", "Partition", "Peer", "Record", "Sender", "Sent",
    "Topic", "Transaction", "TransactionalProducer",
    "build", "check", "end", "group", "messages", "outcomes", "produce", "records", "share", "transaction",
]  # fmt: skip
