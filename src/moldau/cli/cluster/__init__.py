"""`moldau cluster`: brokers, health, the quorum, replicas and their moves; a file for each verb that is large.

Everything is asked over the public protocol, so it works on Moldau, on Apache Kafka and on mixed clusters.
"""

from moldau.cli import balance
from moldau.cli.cluster import brokers, drain, health, quorum, swap, verify
from moldau.cli.cluster.verbs import cli, verb

verb("balance", *balance.EXAMPLES)(balance.balance)

__all__ = ["brokers", "cli", "drain", "health", "quorum", "swap", "verify"]
