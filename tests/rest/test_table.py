"""Every endpoint and every error code, once each over HTTP. A row that is missing here fails too.

The shape of each answer is held against the OpenAPI document by whoever asks.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from moldau.client import Error
from moldau.rest import errors
from moldau.rest.v2 import ENDPOINTS as V2_ENDPOINTS
from moldau.rest.v3 import ENDPOINTS as V3_ENDPOINTS
from moldau.testing import Broker, broker
from tests.rest.running import BROKER, Running, running, unique, v2

Names = dict[str, str]
CLUSTER = "/v3/clusters/{cluster_id}"
TOPIC, GROUP = f"{CLUSTER}/topics/{{topic_name}}", f"{CLUSTER}/consumer-groups/{{consumer_group_id}}"
PARTITION, MEMBER = f"{TOPIC}/partitions/{{partition_id}}", f"{GROUP}/consumers/{{consumer_id}}"
INSTANCE = "/consumers/{group}/instances/{instance}"
SETTING = {"topics/{topic_name}/configs": "retention.ms"}
SETTING |= dict.fromkeys(("brokers/{broker_id}/configs", "broker-configs"), "log.cleaner.threads")
ACL = {"resource_type": "TOPIC", "resource_name": "x", "pattern_type": "LITERAL", "principal": "User:a", "host": "*"}
ACL |= {"operation": "READ", "permission": "ALLOW"}
PLAIN = {"value": {"type": "JSON", "data": 1}}


@pytest.fixture(scope="module")
def names(rest: Running) -> Iterator[Names]:
    """A topic with a record, and an instance that has it and has committed it: what stands for each name of a path."""
    topic, group = rest.topic(), unique("g")
    rest.stream(topic, PLAIN)
    instance = rest.instance(group, format="json")
    rest.ask("POST", f"{instance}/subscription", {"topics": [topic]})
    rest.read(instance, 1)
    rest.ask("POST", f"{instance}/offsets")
    [member] = rest.ask("GET", f"@/consumer-groups/{group}/consumers")["data"]
    own = {"group": group, "instance": instance.rpartition("/")[2], "consumer_id": member["consumer_id"]}
    own |= {"cluster_id": rest.cluster.rpartition("/")[2], "topic_name": topic, "partition_id": "0"}
    yield own | {"broker_id": str(rest.ask("GET", "/brokers")["brokers"][0]), "consumer_group_id": group}
    rest.ask("DELETE", instance)


class Row(NamedTuple):
    """A request. `body` and `own`, other names than those of the module, are made of it."""

    status: int = 200
    body: Callable[[Names], Any] = lambda names: None
    type: str | None = None
    query: str = ""
    own: Callable[[Running], Names] = lambda rest: {}


def new_topic(rest: Running) -> Names:
    return {"topic_name": rest.topic()}


def new_instance(rest: Running) -> Names:
    _, _, group, _, instance = rest.instance().split("/")
    return {"group": group, "instance": instance}


def assigned_instance(rest: Running) -> Names:
    made = new_instance(rest)
    topic = rest.topic()
    partitions = [{"topic": topic, "partition": 0}]
    rest.ask("POST", INSTANCE.format(**made) + "/assignments", {"partitions": partitions})
    return {**made, "topic_name": topic}


def always(value: Any) -> Callable[[Names], Any]:
    return lambda names: value


def place(names: Names, **more: Any) -> dict[str, Any]:
    return {"topic": names["topic_name"], "partition": 0, **more}


def settings(path: str, name: str) -> dict[str, Row]:
    where = f"{CLUSTER}/{path}"
    change = {"data": [{"name": name, "value": "2"}]}
    named = lambda rest: {"name": name}  # noqa: E731
    return {
        f"GET {where}": Row(),
        f"POST {where}:alter": Row(204, always(change)),
        f"GET {where}/{{name}}": Row(own=named),
        f"PUT {where}/{{name}}": Row(204, always({"value": "2"}), own=named),
        f"DELETE {where}/{{name}}": Row(204, own=named),
    }


RECORDS = always({"records": [{"value": 1}]})
ROWS = {
    "GET /": Row(),
    "POST /": Row(),
    "GET /brokers": Row(),
    "GET /topics": Row(),
    "GET /topics/{topic_name}": Row(),
    "POST /topics/{topic_name}": Row(body=RECORDS, type=v2("json")),
    "GET /topics/{topic_name}/partitions": Row(),
    "GET /topics/{topic_name}/partitions/{partition_id}": Row(),
    "POST /topics/{topic_name}/partitions/{partition_id}": Row(body=RECORDS, type=v2("json")),
    "GET /topics/{topic_name}/partitions/{partition_id}/offsets": Row(),
    "POST /consumers/{group}": Row(body=always({"format": "binary"}), own=lambda rest: {"group": unique("g")}),
    f"DELETE {INSTANCE}": Row(204, own=new_instance),
    f"POST {INSTANCE}/subscription": Row(204, always({"topics": ["x"]}), own=new_instance),
    f"GET {INSTANCE}/subscription": Row(),
    f"DELETE {INSTANCE}/subscription": Row(204, own=new_instance),
    f"GET {INSTANCE}/records": Row(query="?timeout=10"),
    f"POST {INSTANCE}/offsets": Row(body=lambda names: {"offsets": [place(names, offset=0)]}),
    f"GET {INSTANCE}/offsets": Row(body=lambda names: {"partitions": [place(names)]}),
    f"POST {INSTANCE}/positions": Row(204, lambda names: {"offsets": [place(names, offset=0)]}),
    f"POST {INSTANCE}/positions/beginning": Row(
        204, lambda names: {"partitions": [place(names)]}, own=assigned_instance
    ),
    f"POST {INSTANCE}/positions/end": Row(204, lambda names: {"partitions": [place(names)]}, own=assigned_instance),
    f"POST {INSTANCE}/assignments": Row(204, lambda names: {"partitions": [place(names)]}, own=new_instance),
    f"GET {INSTANCE}/assignments": Row(),
    "GET /v3/clusters": Row(),
    f"GET {CLUSTER}": Row(),
    f"GET {CLUSTER}/brokers": Row(),
    f"GET {CLUSTER}/brokers/{{broker_id}}": Row(),
    f"GET {CLUSTER}/brokers/{{broker_id}}/partition-replicas": Row(),
    f"GET {CLUSTER}/brokers/-/configs": Row(),
    f"GET {CLUSTER}/topics": Row(),
    f"POST {CLUSTER}/topics": Row(201, lambda names: {"topic_name": unique("t")}),
    f"GET {TOPIC}": Row(query="?include_authorized_operations=true"),
    f"PATCH {TOPIC}": Row(body=always({"partitions_count": 2}), own=new_topic),
    f"DELETE {TOPIC}": Row(204, own=new_topic),
    f"GET {TOPIC}/partitions": Row(),
    f"GET {PARTITION}": Row(),
    f"GET {PARTITION}/offset": Row(),
    f"GET {PARTITION}/replicas": Row(),
    f"GET {PARTITION}/replicas/{{broker_id}}": Row(),
    f"GET {PARTITION}/reassignment": Row(404),  # nothing moves where there is one broker
    f"GET {TOPIC}/partitions/-/reassignment": Row(),
    f"GET {CLUSTER}/topics/-/partitions/-/reassignment": Row(),
    f"GET {CLUSTER}/topics/-/configs": Row(),
    f"POST {TOPIC}/records": Row(body=always(PLAIN)),
    f"POST {TOPIC}/records:batch": Row(207, always({"entries": [{"id": "1", **PLAIN}]})),
    f"GET {CLUSTER}/consumer-groups": Row(),
    f"GET {GROUP}": Row(),
    f"GET {GROUP}/consumers": Row(),
    f"GET {MEMBER}": Row(),
    f"GET {MEMBER}/assignments": Row(),
    f"GET {MEMBER}/assignments/{{topic_name}}/partitions/{{partition_id}}": Row(),
    f"GET {GROUP}/lag-summary": Row(),
    f"GET {GROUP}/lags": Row(),
    f"GET {GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}": Row(),
    f"GET {CLUSTER}/acls": Row(),
    f"POST {CLUSTER}/acls": Row(201, always(ACL)),
    f"POST {CLUSTER}/acls:batch": Row(201, always({"data": [ACL]})),
    f"DELETE {CLUSTER}/acls": Row(
        query="?resource_type=TOPIC&resource_name=none&pattern_type=ANY&operation=ANY&permission=ANY"
    ),
    **{name: row for path, setting in SETTING.items() for name, row in settings(path, setting).items()},
}


def test_every_endpoint_has_a_row() -> None:
    assert sorted(ROWS) == sorted(f"{row.method} {row.path}" for row in (*V2_ENDPOINTS, *V3_ENDPOINTS))


@pytest.mark.parametrize("endpoint", ROWS)
def test_an_endpoint_answers(rest: Running, names: Names, endpoint: str) -> None:
    row = ROWS[endpoint]
    method, path = endpoint.split(" ")
    known = names | row.own(rest)
    answer = rest.raw(method, path.format(**known) + row.query, row.body(known), type=row.type)
    assert answer.status_code == row.status, answer.text
    if path.endswith("/records"):
        assert "error_code" not in answer.text or '"error_code":200' in answer.text


def away(_: Any) -> Any:
    with broker() as own, running(own.bootstrap_servers, "client.timeout.ms=500") as proxy:
        assert proxy.ask("GET", "@/topics") and own.pid
        os.kill(own.pid, signal.SIGSTOP)
        try:
            return proxy.ask("GET", "@/topics")
        finally:
            os.kill(own.pid, signal.SIGCONT)


def forbidden(_: Any) -> Any:
    with broker({**BROKER, "super.users": "User:root"}) as own, running(own.bootstrap_servers) as proxy:
        return proxy.ask("POST", "@/topics", {"topic_name": "x"})


def too_many(rest_broker: Broker) -> Any:
    with running(rest_broker.bootstrap_servers, "max.consumer.instances=1") as proxy:
        proxy.instance()
        return proxy.ask("POST", "/consumers/g", {})


def mixed(rest: Running) -> Any:
    """A record of another format than the instance has."""
    made = assigned_instance(rest)
    rest.stream(made["topic_name"], {"value": {"type": "STRING", "data": "no json"}})
    where = rest.instance(format="json")
    rest.ask("POST", f"{where}/assignments", {"partitions": [place(made)]})
    return rest.ask("GET", f"{where}/records?timeout=5000")


def twice(rest: Running) -> Any:
    group = unique("g")
    return [rest.ask("POST", f"/consumers/{group}", {"name": "i"}) for _ in range(2)][1]


def with_instance(method: str, path: str, body: Any = None, **more: Any) -> Callable[[Running], Any]:
    return lambda rest: rest.ask(method, rest.instance(format="json") + path, body, **more)


def commit_too_much(rest: Running) -> Any:
    made = assigned_instance(rest)
    offsets = [place(made, offset=0, metadata="x" * 10_000)]
    return rest.ask("POST", INSTANCE.format(**made) + "/offsets", {"offsets": offsets})


def typed_records(**body: Any) -> Callable[[Running], Any]:
    return lambda typed: typed.ask("POST", f"/topics/{typed.topic()}", body, type=v2("avro"))


STRING = '"string"'
REFUSALS: dict[int, tuple[str, Callable[[Any], Any]]] = {
    40001: ("rest", lambda rest: rest.ask("POST", "/consumers/g", {"auto.offset.reset": "middle"})),
    40002: ("rest", lambda rest: rest.ask("PATCH", f"@/topics/{rest.topic(2)}", {"partitions_count": 1})),
    40301: ("rest", forbidden),
    40401: ("rest", lambda rest: rest.ask("GET", f"/topics/{unique()}")),
    40402: ("rest", lambda rest: rest.ask("GET", f"/topics/{rest.topic()}/partitions/9")),
    40403: ("rest", lambda rest: rest.ask("DELETE", "/consumers/g/instances/nobody")),
    40601: ("rest", with_instance("GET", "/records", headers={"accept": v2("binary")})),
    40801: ("rest", mixed),
    40902: ("rest", twice),
    40903: ("rest", with_instance("GET", "/records")),
    42201: ("typed", typed_records(value_schema=STRING, records=[{"key": "k", "value": "v"}])),
    42202: ("typed", typed_records(records=[{"value": "v"}])),
    42204: ("rest", lambda rest: rest.ask("POST", "/consumers/g", {"format": "xml"})),
    42205: ("typed", typed_records(value_schema="{", records=[{"value": "v"}])),
    42206: ("rest", lambda rest: rest.ask("POST", f"@/topics/{rest.topic()}/records", b"")),
    42207: ("typed", typed_records(value_schema_id=999_999, records=[{"value": "v"}])),
    42208: ("rest", lambda rest: rest.ask("POST", f"@/topics/{rest.topic()}/records:batch", {"entries": []})),
    42901: ("rest_broker", too_many),
    50002: ("rest", commit_too_much),
    50003: ("rest", away),
}
# Errors of Kafka that no broker here can be brought to give: what is told of them is shown without one.
OF_KAFKA = {
    40101: [Error.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION],
    50302: [Error.BROKER_NOT_AVAILABLE, KafkaError.BROKER_NOT_AVAILABLE],
}
STATUS = {40001: 422}


def test_every_error_code_has_a_row() -> None:
    known = {value for name, value in vars(errors).items() if re.fullmatch("[A-Z_]+", name) and isinstance(value, int)}
    assert sorted({*REFUSALS, *OF_KAFKA}) == sorted(known)


@pytest.mark.parametrize("code", REFUSALS)
def test_a_request_is_refused_with_its_code(request: pytest.FixtureRequest, code: int) -> None:
    fixture, ask = REFUSALS[code]
    assert ask(request.getfixturevalue(fixture)) == (STATUS.get(code, code // 100), code)


@pytest.mark.parametrize("code", OF_KAFKA)
def test_an_error_of_kafka_has_its_code(code: int) -> None:
    kafka, librdkafka = OF_KAFKA[code]
    assert errors.of_kafka(Error(kafka), "").code == code
    assert errors.of_librdkafka(KafkaError(librdkafka)).code == code
