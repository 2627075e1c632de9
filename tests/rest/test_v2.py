"""Version 2 over HTTP: topics, producing, and the life of consumer instances."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.testing import Broker, eventually
from moldau.wire.numbers import murmur2
from tests.rest.running import V2, Running, running, unique, v2


def produce(rest: Running, topic: str, *values: Any, format: str = "json", partition: int | None = None) -> Any:
    where = f"/topics/{topic}" + ("" if partition is None else f"/partitions/{partition}")
    return rest.ask("POST", where, {"records": [{"value": value} for value in values]}, type=v2(format))


def subscribed(rest: Running, topic: str, group: str | None = None, **options: Any) -> str:
    instance = rest.instance(group, **options)
    assert rest.ask("POST", f"{instance}/subscription", {"topics": [topic]}) is None
    return instance


def test_the_root_is_there(rest: Running) -> None:
    assert rest.ask("GET", "/") == {}
    assert rest.raw("POST", "/").json() == {}
    assert len(rest.ask("GET", "/brokers")["brokers"]) == 1


def test_topics_are_shown(rest: Running) -> None:
    name = rest.topic(2, retention_ms=1234)
    assert name in rest.ask("GET", "/topics")
    found = rest.ask("GET", f"/topics/{name}")
    assert found["configs"]["retention.ms"] == "1234"
    rows = rest.ask("GET", f"/topics/{name}/partitions")
    assert found["partitions"] == rows
    assert rows[1] == rest.ask("GET", f"/topics/{name}/partitions/1")
    [replica] = rows[0]["replicas"]
    assert replica == {"broker": rows[0]["leader"], "leader": True, "in_sync": True}
    produce(rest, name, 1, 2, partition=1)
    assert rest.ask("GET", f"/topics/{name}/partitions/1/offsets") == {"beginning_offset": 0, "end_offset": 2}
    for path in ("", "/partitions", "/partitions/0", "/partitions/0/offsets"):
        assert rest.ask("GET", f"/topics/{unique()}{path}") == (404, 40401)
    for path in ("", "/offsets"):
        assert rest.ask("GET", f"/topics/{name}/partitions/9{path}") == (404, 40402)
    assert rest.ask("GET", "/topics/%2e%2e%2f") == (404, 40401)


@pytest.mark.parametrize(
    ("format", "values"),
    [("json", [1, "a", {"b": [None, True]}, 1.5]), ("binary", ["", "AAE=", "/+8="])],
    ids=["json", "binary"],
)
def test_what_is_produced_is_consumed(rest: Running, format: str, values: list[Any]) -> None:
    topic = rest.topic()
    written = produce(rest, topic, *values, None, format=format)
    assert [row["offset"] for row in written["offsets"]] == list(range(len(values) + 1))
    assert written["offsets"][0] == {"partition": 0, "offset": 0, "error_code": None, "error": None}
    instance = subscribed(rest, topic, format=format)
    rows = rest.read(instance, len(values) + 1, headers={"accept": v2(format)})
    assert [row["value"] for row in rows] == [*values, None]
    assert rows[0] == {"topic": topic, "key": None, "value": values[0], "partition": 0, "offset": 0}


def test_records_go_where_they_are_told(rest: Running) -> None:
    topic = rest.topic(3)
    records = [{"key": "aw==", "value": "dg==", "partition": 2}, {"key": "aw==", "value": "dg=="}]
    written = rest.ask("POST", f"/topics/{topic}", {"records": records}, type=v2("binary"))
    assert written["offsets"][0]["partition"] == 2
    # The partition of a key is the one that Java's client chooses: murmur2 of `k` in 3.
    assert written["offsets"][1]["partition"] == murmur2(b"k") % 3
    written = rest.ask("POST", f"/topics/{topic}/partitions/1", {"records": records[1:]}, type=v2("binary"))
    assert written["offsets"][0]["partition"] == 1


def test_wrong_records_are_refused(rest: Running) -> None:
    topic = rest.topic()
    assert produce(rest, unique(), 1) == (404, 40401)
    assert produce(rest, topic, 1, partition=7) == (404, 40402)
    assert produce(rest, topic, "1", format="binary") == (400, 400)
    assert produce(rest, topic, 1, format="binary") == (400, 400)
    where = f"/topics/{topic}"
    assert rest.ask("POST", where, {"records": [{"partition": 7}]}, type=v2("json")) == (404, 40402)
    assert rest.ask("POST", where, {"records": [{"partition": -1}]}, type=v2("json")) == (400, 400)
    assert rest.ask("POST", where, {}, type=v2("json")) == (422, 422)
    assert rest.ask("POST", where, {"records": 1}, type=v2("json")) == (400, 400)
    assert rest.ask("POST", where, b"", type=v2("json")) == (422, 42206)
    assert rest.ask("POST", where, b"null", type=v2("json")) == (422, 42206)
    assert rest.ask("POST", where, {"records": []}, type="application/json") == (415, 415)
    assert rest.ask("POST", where, {"records": []}, type=v2("json")) == (422, 422)


def test_a_record_that_the_broker_refuses_is_told_in_its_place(rest: Running) -> None:
    topic = rest.topic(max_message_bytes=1000)
    [found] = produce(rest, topic, "x" * 5000)["offsets"]
    assert (found["partition"], found["offset"], found["error_code"]) == (None, None, 50002)


def test_version_1_is_answered_as_version_2_under_its_own_types(rest: Running) -> None:
    topic, v1 = rest.topic(), "application/vnd.kafka.{}v1+json"
    body = {"records": [{"value": 1}]}

    def type_of(method: str, path: str, **more: Any) -> str:
        answer = rest.raw(method, path, **more)
        assert answer.status_code == 200, answer.text
        return answer.headers["content-type"]

    where = f"/topics/{topic}"
    assert type_of("POST", where, body=body, type=v1.format("json.")) == v1.format("")
    assert type_of("POST", where, body=body, type=v1.format("json."), headers={"accept": "*/*"}) == v1.format("")
    assert type_of("POST", where, body=body, type=v1.format("json."), headers={"accept": V2}) == V2
    assert type_of("GET", "/topics", headers={"accept": v1.format("")}) == v1.format("")
    assert type_of("POST", f"/consumers/{unique('g')}", body={}, type=v1.format("binary.")) == v1.format("")
    instance = subscribed(rest, topic, format="json")
    for accepted in (v1.format("json."), v1.format("")):
        assert type_of("GET", f"{instance}/records?timeout=10", headers={"accept": accepted}) == accepted
    assert rest.ask("GET", f"{instance}/records", headers={"accept": v1.format("avro.")}) == (406, 40601)
    assert rest.ask("POST", where, body, type=v1.format("protobuf.")) == (415, 415)


def test_an_instance_has_a_name_and_an_address(rest: Running) -> None:
    group = unique("g é/")
    where = f"/consumers/{group.replace(' ', '%20').replace('é', '%C3%A9').replace('/', '%2F')}"
    made = rest.ask("POST", where, {"name": "mine"})
    assert made["instance_id"] == "mine"
    assert made["base_uri"] == f"{rest.url}{where}/instances/mine"
    assert rest.ask("POST", where, {"name": "mine"}) == (409, 40902)
    other = rest.raw("POST", where, {"topic.metadata.refresh.interval.ms": 100})
    assert other.json()["instance_id"].startswith("rest-consumer-")
    assert rest.ask("DELETE", made["base_uri"]) is None
    assert rest.ask("DELETE", made["base_uri"]) == (404, 40403)
    assert rest.ask("DELETE", other.json()["base_uri"]) is None


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"format": "xml"}, (422, 42204)),
        ({"auto.offset.reset": "middle"}, (422, 40001)),
        ({"auto.commit.enable": "perhaps"}, (422, 40001)),
        ({"fetch.min.bytes": "x"}, (422, 42204)),
        ({"consumer.request.timeout.ms": 0}, (422, 42204)),
        ({"topic.metadata.refresh.interval.ms": 1}, (422, 42204)),
        ({"unknown": 1}, (422, 422)),
        ({"name": 1}, (400, 400)),
    ],
    ids=str,
)
def test_a_wrong_instance_is_refused(rest: Running, option: dict[str, Any], refusal: tuple[int, int]) -> None:
    assert rest.ask("POST", f"/consumers/{unique('g')}", option) == refusal


def test_an_instance_that_is_not_there(rest: Running) -> None:
    where = f"/consumers/{unique('g')}/instances/x"
    partitions, offsets = {"partitions": []}, {"offsets": []}
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/records", None),
        ("GET", "/subscription", None),
        ("POST", "/subscription", {"topics": []}),
        ("DELETE", "/subscription", None),
        ("GET", "/assignments", None),
        ("POST", "/assignments", partitions),
        ("POST", "/offsets", offsets),
        ("GET", "/offsets", partitions),
        ("POST", "/positions", offsets),
        ("POST", "/positions/beginning", partitions),
        ("POST", "/positions/end", partitions),
        ("DELETE", "", None),
    ]
    for method, path, body in calls:
        assert rest.ask(method, where + path, body) == (404, 40403), path


def test_a_subscription_can_be_seen_and_ended(rest: Running) -> None:
    topic = rest.topic()
    instance = subscribed(rest, topic)
    assert rest.ask("GET", f"{instance}/subscription") == {"topics": [topic]}
    assert rest.ask("DELETE", f"{instance}/subscription") is None
    assert rest.ask("GET", f"{instance}/subscription") == {"topics": []}
    assert rest.ask("GET", f"{instance}/records") == (409, 40903)
    rest.ask("DELETE", instance)


def test_a_pattern_finds_its_topics(rest: Running) -> None:
    topic = rest.topic()
    produce(rest, topic, 1)
    instance = rest.instance(format="json")
    assert rest.ask("POST", f"{instance}/subscription", {"topic_pattern": f"{topic}|none"}) is None
    assert rest.ask("GET", f"{instance}/subscription") == {"topics": [topic]}
    assert [row["topic"] for row in rest.read(instance, 1)] == [topic]
    rest.ask("DELETE", instance)


def test_subscription_pattern_and_assignment_exclude_each_other(rest: Running) -> None:
    topic = rest.topic()
    instance = subscribed(rest, topic)
    assert rest.ask("POST", f"{instance}/subscription", {"topic_pattern": "x.*"}) == (409, 40903)
    assert rest.ask("POST", f"{instance}/assignments", {"partitions": []}) == (409, 40903)
    assert rest.ask("POST", f"{instance}/subscription", {"topics": [topic, "more"]}) is None
    assert rest.ask("POST", f"{instance}/subscription", {}) == (422, 42204)
    assert rest.ask("POST", f"{instance}/subscription", {"topics": ["a"], "topic_pattern": "a"}) == (422, 42204)
    rest.ask("DELETE", instance)


def test_a_consumer_goes_on_where_the_one_before_it_committed(rest: Running) -> None:
    topic, group = rest.topic(), unique("g")
    produce(rest, topic, *range(10))
    first = subscribed(rest, topic, group, format="json", **{"auto.commit.enable": "false"})
    assert len(rest.read(first, 10)) == 10
    asked = {"partitions": [{"topic": topic, "partition": 0}]}
    assert rest.ask("GET", f"{first}/offsets", asked) == {"offsets": []}
    # The offset of the last record that was processed is told.
    told = {"offsets": [{"topic": topic, "partition": 0, "offset": 3, "metadata": "m"}]}
    assert rest.ask("POST", f"{first}/offsets", told) == {"offsets": []}
    [found] = rest.ask("GET", f"{first}/offsets", asked)["offsets"]
    assert found == {"topic": topic, "partition": 0, "offset": 4, "metadata": "m"}
    rest.ask("DELETE", first)
    second = subscribed(rest, topic, group, format="json", **{"auto.commit.enable": "false"})
    assert [row["value"] for row in rest.read(second, 6)] == list(range(4, 10))
    assert rest.ask("POST", f"{second}/offsets") == {"offsets": []}
    assert rest.ask("GET", f"{second}/offsets", asked)["offsets"][0]["offset"] == 10
    assert rest.ask("GET", f"{second}/offsets") == (404, 40402)
    for method in ("GET", "POST"):
        assert rest.ask(method, f"{second}/offsets", {}) == (422, 422)
    rest.ask("DELETE", second)


def test_what_was_given_out_is_committed_by_itself(rest: Running) -> None:
    topic, group = rest.topic(), unique("g")
    produce(rest, topic, *range(10))
    first = subscribed(rest, topic, group, format="json")
    given: list[Any] = []
    for _ in range(50):  # one record at a time: the rest waits, and is not committed
        given += rest.ask("GET", f"{first}/records?max_bytes=1&timeout=300")
        if len(given) == 3:
            break
    assert [row["value"] for row in given] == [0, 1, 2]
    rest.ask("DELETE", first)
    second = subscribed(rest, topic, group, format="json")
    assert [row["value"] for row in rest.read(second, 7)] == list(range(3, 10))
    rest.ask("DELETE", second)


def test_two_instances_share_the_partitions(rest: Running) -> None:
    topic, group = rest.topic(4), unique("g")
    instances = [subscribed(rest, topic, group, format="json")]
    rest.read(instances[0], 0)
    instances.append(subscribed(rest, topic, group, format="json"))

    def shares() -> list[list[int]]:
        for instance in instances:
            rest.ask("GET", f"{instance}/records?timeout=50")
        rows = [rest.ask("GET", f"{instance}/assignments")["partitions"] for instance in instances]
        return [[row["partition"] for row in part] for part in rows]

    eventually(lambda: [len(part) for part in shares()] == [2, 2], timeout_s=30)
    for partition in range(4):
        produce(rest, topic, partition, partition=partition)
    found = [rest.read(instance, 2) for instance in instances]
    assert sorted(row["value"] for part in found for row in part) == [0, 1, 2, 3]
    rest.ask("DELETE", instances[0])
    eventually(lambda: rest.read(instances[1], 0) is not None and _partitions(rest, instances[1]) == 4, timeout_s=30)
    rest.ask("DELETE", instances[1])


def _partitions(rest: Running, instance: str) -> int:
    return len(rest.ask("GET", f"{instance}/assignments")["partitions"])


def test_positions_move(rest: Running) -> None:
    topic = rest.topic()
    produce(rest, topic, *range(5))
    instance = rest.instance(format="json")
    place = {"topic": topic, "partition": 0}
    assert rest.ask("POST", f"{instance}/positions/end", {"partitions": [place]}) == (409, 40903)
    assert rest.ask("POST", f"{instance}/assignments", {"partitions": [place]}) is None
    assert rest.ask("GET", f"{instance}/assignments") == {"partitions": [place]}
    assert rest.ask("POST", f"{instance}/positions", {"offsets": [{**place, "offset": 3}]}) is None
    assert [row["value"] for row in rest.read(instance, 2)] == [3, 4]
    assert rest.ask("POST", f"{instance}/positions/beginning", {"partitions": [place]}) is None
    assert [row["value"] for row in rest.read(instance, 5)] == [0, 1, 2, 3, 4]
    rest.ask("POST", f"{instance}/positions/beginning", {"partitions": [place]})
    assert rest.ask("POST", f"{instance}/positions/end", {"partitions": [place]}) is None
    assert rest.ask("GET", f"{instance}/records?timeout=200") == []
    produce(rest, topic, 5)
    assert [row["value"] for row in rest.read(instance, 1)] == [5]
    assert rest.ask("POST", f"{instance}/positions", {"offsets": [{**place, "partition": 7, "offset": 3}]}) == (
        409,
        40903,
    )
    rest.ask("DELETE", f"{instance}/subscription")
    assert rest.ask("GET", f"{instance}/assignments") == {"partitions": []}
    rest.ask("DELETE", instance)


def test_another_format_than_the_instance_has_is_refused(rest: Running) -> None:
    topic = rest.topic()
    produce(rest, topic, 1)
    instance = subscribed(rest, topic, format="json")
    assert rest.ask("GET", f"{instance}/records", headers={"accept": v2("binary")}) == (406, 40601)
    assert rest.ask("GET", f"{instance}/records", headers={"accept": "text/html"}) == (406, 406)
    answer = rest.raw("GET", f"{instance}/records?timeout=10", headers={"accept": V2})
    assert answer.headers["content-type"] == v2("json")
    rest.ask("DELETE", instance)


def test_a_record_of_another_format_is_told_of_once(rest: Running) -> None:
    topic = rest.topic()
    produce(rest, topic, "AAE=", format="binary")
    produce(rest, topic, 2)
    instance = rest.instance(format="json")
    rest.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    assert rest.ask("GET", f"{instance}/records?timeout=3000") == (408, 40801)
    assert [row["value"] for row in rest.read(instance, 1)] == [2]
    rest.ask("DELETE", instance)


def test_records_come_early_where_some_bytes_are_enough(rest: Running) -> None:
    topic = rest.topic()
    produce(rest, topic, "x" * 100)
    options = {"fetch.min.bytes": 50, "consumer.request.timeout.ms": "20000"}
    instance = subscribed(rest, topic, format="json", **options)
    assert len(rest.ask("GET", f"{instance}/records")) == 1
    rest.ask("DELETE", instance)


def test_instances_are_limited_and_die_when_nobody_uses_them(rest_broker: Broker) -> None:
    limits = ("max.consumer.instances=2", "consumer.instance.timeout.ms=4000", "id=here")
    with running(rest_broker.bootstrap_servers, *limits) as short:
        first, second = short.instance(), short.instance()
        assert "/rest-consumer-here-" in first
        assert short.ask("POST", "/consumers/g", {}) == (429, 42901)

        def second_is_gone() -> bool:
            assert short.ask("GET", f"{first}/subscription") == {"topics": []}
            return short.ask("POST", "/consumers/g", {"name": "third"}) != (429, 42901)

        eventually(second_is_gone, timeout_s=60)
        assert short.ask("GET", f"{second}/subscription") == (404, 40403)
