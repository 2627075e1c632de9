"""Quotas beside Apache Kafka: the same traffic to both, and for how long each throttles. `make quotas` prints a table.

For each kind of quota and each of the eight precedences a user of its own has the quota in question, and every entity
that is less special has a larger one: whoever takes the wrong one is off by a fifth at least. Every request has a
connection of its own, since a connection that is throttled is not read.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from moldau.client import CONTROLLER, Client, check
from moldau.testing.ports import free_ports
from moldau.testing.process import Broker
from moldau.wire import messages as m
from tests.client.apache import PLAIN, apache_kafka
from tests.client.records import batch
from tests.conformance.sasl.scenarios import Talk
from tests.needs import find

TOPIC, RECORDS, RECORD_BYTES = "measured", 400, 1000
STEP = 1.2  # from one precedence to the next
TOLERANCE = 0.1
APPLIED_S = 1.0  # Kafka's quotas count a moment after they are described
CONNECTIONS_S, CONNECTION_RATE = 10.0, 5.0
TINY, HUGE = 0.00001, 1e9
ANY = None
# From the most special one on: user and client id, `ANY` for the default of its kind, no entry where it does not count.
PRECEDENCES: Mapping[str, Callable[[str, str], dict[str, str | None]]] = {
    "user, client id": lambda user, client: {"user": user, "client-id": client},
    "user, any client": lambda user, client: {"user": user, "client-id": ANY},
    "user": lambda user, client: {"user": user},
    "any user, client id": lambda user, client: {"user": ANY, "client-id": client},
    "any user, any client": lambda user, client: {"user": ANY, "client-id": ANY},
    "any user": lambda user, client: {"user": ANY},
    "client id": lambda user, client: {"client-id": client},
    "any client": lambda user, client: {"client-id": ANY},
}
Answers = dict[tuple[str, str, str], float]  # kind, precedence, which request: milliseconds, or a count


class Side:
    """A broker: where its users and its administrator come in."""

    def __init__(self, plain_port: int, sasl_port: int) -> None:
        self.sasl_port = sasl_port
        self.admin = {"bootstrap.servers": f"127.0.0.1:{plain_port}"}
        self.plain_port = plain_port

    @contextmanager
    def user(self, name: str, client_id: str) -> Iterator[Talk]:
        talk = Talk(self.sasl_port, client_id)
        with closing(talk.socket):
            assert not talk.ask(m.SaslHandshakeRequest("PLAIN"), 1).error_code
            assert not talk.ask(m.SaslAuthenticateRequest(f"\0{name}\0{name}".encode()), 1).error_code
            yield talk

    def alter(self, changes: list[tuple[dict[str, str | None], str, float | None]]) -> None:
        """Set quotas, or remove those whose value is None."""
        entries = [
            m.AlterClientQuotasRequest_EntryData(
                [m.AlterClientQuotasRequest_EntityData(kind, name) for kind, name in entity.items()],
                [m.AlterClientQuotasRequest_OpData(key, value or 0.0, value is None)],
            )
            for entity, key, value in changes
        ]
        with Client(self.admin) as client:
            for row in client.send(m.AlterClientQuotasRequest(entries), CONTROLLER).entries:
                check(row)
        time.sleep(APPLIED_S)


def names(kind: str, place: int) -> tuple[str, str]:
    return f"{kind[:3]}{place}", f"client-{kind[:3]}{place}"


@contextmanager
def quotas(side: Side, key: str, place: int, values: list[float]) -> Iterator[tuple[str, str]]:
    """Set the quota of a precedence and of all that are less special; returns a user and a client id for them."""
    entities = [make(*names(key, place)) for make in list(PRECEDENCES.values())[place:]]
    side.alter([(entity, key, value) for entity, value in zip(entities, values[place:], strict=True)])
    yield names(key, place)
    side.alter([(entity, key, None) for entity in entities])


def rising(base: float) -> list[float]:
    return [round(base * STEP**place, 3) for place in range(len(PRECEDENCES))]


def produce(side: Side, place: int) -> Iterator[tuple[str, float]]:
    """Thrice what a user may send in ten seconds, and again."""
    limits = [float(int(one)) for one in rising(2000)]
    with quotas(side, "producer_byte_rate", place, limits) as (user, client):
        records = batch(["x" * int(30 * limits[place])])
        for number in ("first", "second"):
            partition = m.ProduceRequest_PartitionProduceData(0, records)
            topic = m.ProduceRequest_TopicProduceData(TOPIC, partition_data=[partition])
            with side.user(user, client) as talk:
                yield number, talk.ask(m.ProduceRequest(None, 1, 30_000, [topic]), 9).throttle_time_ms


def fetch(side: Side, place: int) -> Iterator[tuple[str, float]]:
    """Eight tenths of what a user may have in ten seconds, three times: the last two are over the limit."""
    limits = [float(int(one)) for one in rising(10_000)]
    with quotas(side, "consumer_byte_rate", place, limits) as (user, client):
        for number in ("first", "second", "third"):
            most = int(8 * limits[place])
            partition = m.FetchRequest_FetchPartition(0, -1, 0, -1, -1, most)
            topic = m.FetchRequest_FetchTopic(topic=TOPIC, partitions=[partition])
            request = m.FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=most, topics=[topic])
            request.session_epoch = -1
            with side.user(user, client) as talk:
                yield number, talk.ask(request, 12).throttle_time_ms


def change(side: Side, place: int) -> Iterator[tuple[str, float]]:
    """Topics of more than twice the partitions that a user may have at once."""
    limits = rising(0.2)
    partitions = round(25 * limits[place])
    with quotas(side, "controller_mutation_rate", place, limits) as (user, client):
        for number, version in (("v7", 7), ("v7 again", 7), ("v5", 5)):
            topic = m.CreateTopicsRequest_CreatableTopic(f"{user}-{number.replace(' ', '-')}", partitions, 1)
            with side.user(user, client) as talk:
                answer = talk.ask(m.CreateTopicsRequest([topic], 30_000), version)
                yield number, answer.throttle_time_ms
                yield f"{number}, error", answer.topics[0].error_code


def spend(side: Side, place: int) -> Iterator[tuple[str, float]]:
    """Requests whose time is far over the limit (one window at most is told), and far below it."""
    for name, own, others in (("far over", TINY, HUGE), ("far below", HUGE, TINY)):
        values = [own if other == place else others for other in range(len(PRECEDENCES))]
        with quotas(side, "request_percentage", place, values) as (user, client):
            told = 0
            for _ in range(3):
                with side.user(user, client) as talk:
                    told = talk.ask(m.MetadataRequest(None), 9).throttle_time_ms
            yield name, told


def connect(side: Side, address: str | None) -> float:
    """Return how many connections were served in ten seconds, one after the other."""
    key, served = "connection_creation_rate", 0
    side.alter([({"ip": address}, key, CONNECTION_RATE)])
    end = time.monotonic() + CONNECTIONS_S
    while time.monotonic() < end:
        try:
            talk = Talk(side.plain_port)
            with closing(talk.socket):
                talk.ask(m.ApiVersionsRequest("quotas", "1"), 3)
                served += 1
        except (EOFError, ConnectionError):
            pass
    side.alter([({"ip": address}, key, None)])
    return served


KINDS: Mapping[str, Callable[[Side, int], Iterator[tuple[str, float]]]] = {
    "producer_byte_rate": produce,
    "consumer_byte_rate": fetch,
    "controller_mutation_rate": change,
    "request_percentage": spend,
}


def measure(side: Side) -> Answers:
    fill(side)
    found: Answers = {}
    for kind, run in KINDS.items():
        for place, precedence in enumerate(PRECEDENCES):
            found |= {(kind, precedence, request): value for request, value in run(side, place)}
    for name, address in (("address", "127.0.0.1"), ("any address", ANY)):
        found["connection_creation_rate", name, "served in 10 s"] = connect(side, address)
    return found


def fill(side: Side) -> None:
    """Make the topic that is read."""
    with Client(side.admin) as client:
        topic = m.CreateTopicsRequest_CreatableTopic(TOPIC, 1, 1)
        check(client.send(m.CreateTopicsRequest([topic], 30_000), CONTROLLER).topics[0])
    talk = Talk(side.plain_port)
    with closing(talk.socket):
        done, end = 0, time.monotonic() + 60
        while done < RECORDS:
            partition = m.ProduceRequest_PartitionProduceData(0, batch(["x" * RECORD_BYTES]))
            topic = m.ProduceRequest_TopicProduceData(TOPIC, partition_data=[partition])
            answer = talk.ask(m.ProduceRequest(None, 1, 30_000, [topic]), 9).responses[0].partition_responses[0]
            done += not answer.error_code
            assert time.monotonic() < end, f"the topic has no leader: {answer.error_code}"


def users() -> str:
    """Return the JAAS line with everybody; the password is the name."""
    everybody = [names(kind, place)[0] for kind in KINDS for place in range(len(PRECEDENCES))]
    return f"{PLAIN} " + " ".join(f'user_{name}="{name}"' for name in everybody) + ";"


def kafka(folder: Path) -> Answers:
    libs = find("kafka-jars")
    assert libs.path is not None, libs.reason
    line = f"\nlistener.name.sasl_plaintext.plain.sasl.jaas.config={users()}\n"
    with apache_kafka(libs.path, folder, line) as running:
        return measure(Side(running.ports["PLAINTEXT"], running.ports["SASL_PLAINTEXT"]))


def moldau() -> Answers:
    plain_port, sasl_port = free_ports(2)
    broker = Broker(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain_port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": users(),
        }
    )
    broker.start()
    try:
        return measure(Side(plain_port, sasl_port))
    finally:
        broker.kill()


def table(theirs: Answers, ours: Answers) -> tuple[str, int]:
    """Return the rows, and how many are further from each other than they may be."""
    rows, off = ["| quota | of | request | Kafka | Moldau | |", "|---|---|---|---|---|---|"], 0
    for key, expected in theirs.items():
        is_off = abs(ours[key] - expected) > TOLERANCE * expected
        off += is_off
        rows.append(f"| {' | '.join(key)} | {expected:.0f} | {ours[key]:.0f} | {'differs' if is_off else ''} |")
    return "\n".join(rows), off


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        text, off = table(kafka(Path(folder)), moldau())
    print(text)
    print(f"\n{off} rows differ by more than a tenth.")
    return min(off, 1)


if __name__ == "__main__":
    sys.exit(main())
