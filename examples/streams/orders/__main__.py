"""Orders, in services that know each other through topics alone. `python examples/streams/orders` starts all of them on
localhost:9092; `python examples/streams/orders/load.py 200` sends orders.

    orders service (HTTP) --> orders --+--> details   --+
                                       +--> fraud     --+--> order-validations --> aggregator --> orders
                                       +--> inventory --+
                                       +--> e-mailer (with payments and customers) --> order-emails
                                       +--> search index
Five of them are streams applications; all run in one Spark session.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# Workers of Spark import the services by their names.
os.environ["PYTHONPATH"] = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])

import aggregator  # noqa: E402
import details  # noqa: E402
import emails  # noqa: E402
import fraud  # noqa: E402
import inventory  # noqa: E402
from load import prepare  # noqa: E402
from orders_topics import COMPACTED, PARTITIONS, TOPICS  # noqa: E402
from search import Index  # noqa: E402
from service import OrdersService  # noqa: E402

from moldau.client import CONTROLLER, Client, Error, messages, outcomes  # noqa: E402
from moldau.spark import session  # noqa: E402
from moldau.streams import KafkaStreams  # noqa: E402

SERVERS = os.environ.get("MOLDAU_BOOTSTRAP_SERVERS", "localhost:9092")
LISTEN = "127.0.0.1:7070"
APPLICATIONS = (details, fraud, inventory, aggregator, emails)


def create_topics() -> None:
    with Client({"bootstrap.servers": SERVERS}) as client:
        compact = [messages.CreateTopicsRequest_CreatableTopicConfig("cleanup.policy", "compact")]
        wanted = [
            messages.CreateTopicsRequest_CreatableTopic(
                name, PARTITIONS, -1, configs=compact if name in COMPACTED else []
            )
            for name in TOPICS
        ]
        answer = client.send(messages.CreateTopicsRequest(wanted, timeout_ms=30_000), to=CONTROLLER)
        for error, words, topic in outcomes(answer):
            if error not in (Error.NONE, Error.TOPIC_ALREADY_EXISTS):
                raise SystemExit(f"The topic {topic} cannot be made: {words or error.message}")


def main() -> None:
    create_topics()
    prepare(SERVERS)
    index = Index(SERVERS)
    service = OrdersService(SERVERS, LISTEN, index)
    spark = session("orders")
    settings = {"bootstrap.servers": SERVERS, "commit.interval.ms": 200}
    running = [KafkaStreams(one.builder, settings, spark=spark).start() for one in APPLICATIONS]
    for one in running:
        one.wait_for("RUNNING", 120)
    print(f"orders at {service.url}", flush=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    for one in running:
        one.close()
    service.close()
    index.close()
    spark.stop()


if __name__ == "__main__":
    main()
