"""Version 3 over HTTP: clusters, brokers, topics, partitions, settings, groups, ACLs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.running import Running, unique


def names(listing: dict[str, Any], field: str) -> list[Any]:
    return [row[field] for row in listing["data"]]


def test_a_cluster_links_to_its_parts(rest: Running) -> None:
    [found] = rest.ask("GET", "/v3/clusters")["data"]
    assert found["kind"] == "KafkaCluster"
    assert found["metadata"]["self"] == f"{rest.url}{rest.cluster}"
    assert found["metadata"]["resource_name"] == f"crn:///kafka={found['cluster_id']}"
    assert found == rest.ask("GET", "@")
    for link in ("controller", "acls", "brokers", "broker_configs", "consumer_groups", "topics"):
        assert rest.ask("GET", found[link]["related"])["metadata"]["self"]
    assert rest.ask("GET", found["partition_reassignments"]["related"])["data"] == []


def test_another_cluster_is_not_found(rest: Running) -> None:
    assert rest.ask("GET", "/v3/clusters/other") == (404, 404)
    assert rest.ask("GET", "/v3/clusters/other/topics") == (404, 404)


def test_brokers_have_addresses_and_replicas(rest: Running) -> None:
    topic = rest.topic(2)
    [row] = rest.ask("GET", "@/brokers")["data"]
    assert row == rest.ask("GET", f"@/brokers/{row['broker_id']}")
    assert row["host"] == "127.0.0.1"
    held = rest.ask("GET", row["partition_replicas"]["related"])["data"]
    assert [one["partition_id"] for one in held if one["topic_name"] == topic] == [0, 1]
    assert rest.ask("GET", "@/brokers/99") == (404, 404)
    assert rest.ask("GET", "@/brokers/99/partition-replicas") == (404, 404)
    assert rest.ask("GET", "@/brokers/one") == (404, 404)


def test_a_topic_is_created_grows_and_is_deleted(rest: Running) -> None:
    name = unique("t")
    answer = rest.raw("POST", "@/topics", {"topic_name": name, "partitions_count": 2, "replication_factor": 1})
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{rest.url}{rest.cluster}/topics/{name}"
    found = rest.ask("GET", f"@/topics/{name}")
    assert (found["partitions_count"], found["replication_factor"], found["is_internal"]) == (2, 1, False)
    assert name in names(rest.ask("GET", "@/topics"), "topic_name")
    assert rest.ask("PATCH", f"@/topics/{name}", {"partitions_count": 3})["partitions_count"] == 3
    assert rest.ask("PATCH", f"@/topics/{name}", {"partitions_count": 1}) == (400, 40002)
    assert rest.ask("DELETE", f"@/topics/{name}") is None
    assert rest.ask("GET", f"@/topics/{name}") == (404, 40403)
    assert rest.ask("DELETE", f"@/topics/{name}") == (404, 40403)
    assert rest.ask("PATCH", f"@/topics/{name}", {"partitions_count": 5}) == (404, 40403)


def test_a_topic_takes_assignments_and_settings(rest: Running) -> None:
    name = unique("t")
    broker = rest.ask("GET", "@/brokers")["data"][0]["broker_id"]
    body: dict[str, Any] = {"topic_name": name, "replicas_assignments": {"0": [broker], "1": [broker]}}
    body["configs"] = [{"name": "cleanup.policy", "value": "compact"}]
    assert rest.ask("POST", "@/topics", body)["partitions_count"] == 2
    assert rest.ask("GET", f"@/topics/{name}/configs/cleanup.policy")["value"] == "compact"


def test_a_topic_that_is_only_validated_is_not_made(rest: Running) -> None:
    name = unique("t")
    answer = rest.raw("POST", "@/topics", {"topic_name": name, "validate_only": True})
    assert answer.status_code == 200
    assert rest.ask("GET", f"@/topics/{name}") == (404, 40403)


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"topic_name": "with space"}, (400, 40002)),
        ({"replication_factor": 9}, (400, 40002)),
        ({"partitions_count": 0}, (400, 40002)),
        ({"partitions_count": "two"}, (400, 400)),
        ({"partitions_count": 2**40}, (400, 400)),
        ({"configs": [{"name": "no.such", "value": "1"}]}, (400, 40002)),
        ({"configs": [{"value": "1"}]}, (422, 422)),
        ({"replicas_assignments": {"x": [1]}}, (400, 400)),
        ({"nonsense": 1}, (422, 422)),
    ],
    ids=str,
)
def test_a_wrong_topic_is_refused(rest: Running, change: dict[str, Any], refusal: tuple[int, int]) -> None:
    assert rest.ask("POST", "@/topics", {"topic_name": unique("t"), **change}) == refusal


def test_a_topic_that_exists_is_refused(rest: Running) -> None:
    assert rest.ask("POST", "@/topics", {"topic_name": rest.topic()}) == (400, 40002)
    assert rest.ask("POST", "@/topics", {}) == (422, 422)


def test_authorized_operations_are_told_on_demand(rest: Running) -> None:
    name = rest.topic()
    assert "authorized_operations" not in rest.ask("GET", f"@/topics/{name}")
    found = rest.ask("GET", f"@/topics/{name}?include_authorized_operations=true")
    assert {"READ", "WRITE", "ALTER_CONFIGS"} <= set(found["authorized_operations"])


def test_partitions_have_offsets_and_replicas(rest: Running) -> None:
    name = rest.topic(2)
    rest.stream(name, *[{"partition_id": 1, "value": {"type": "STRING", "data": "x"}}] * 3)
    rows = rest.ask("GET", f"@/topics/{name}/partitions")["data"]
    assert [row["partition_id"] for row in rows] == [0, 1]
    one = rest.ask("GET", f"@/topics/{name}/partitions/1")
    assert one == rows[1]
    replica = rest.ask("GET", one["leader"]["related"])
    assert (replica["is_leader"], replica["is_in_sync"]) == (True, True)
    assert rest.ask("GET", one["replicas"]["related"])["data"] == [replica]
    assert rest.ask("GET", replica["broker"]["related"])["broker_id"] == replica["broker_id"]
    offsets = rest.ask("GET", f"@/topics/{name}/partitions/1/offset")
    assert (offsets["earliest_offset"], offsets["latest_offset"]) == (0, 3)
    assert "earliest_offset" not in rest.ask("GET", f"@/topics/{name}/partitions/1/offset?offset_type=latest")
    assert rest.ask("GET", f"@/topics/{name}/partitions/1/offset?offset_type=middle") == (400, 400)


def test_partitions_that_are_not_there(rest: Running) -> None:
    name = rest.topic()
    for tail in ("", "/offset", "/replicas", "/replicas/1", "/reassignment"):
        assert rest.ask("GET", f"@/topics/{name}/partitions/7{tail}") == (404, 404)
        assert rest.ask("GET", f"@/topics/{unique()}/partitions/0{tail}") == (404, 40403)
    assert rest.ask("GET", f"@/topics/{name}/partitions/0/replicas/77") == (404, 404)
    assert rest.ask("GET", f"@/topics/{name}/partitions/first") == (404, 404)


def test_reassignments_are_listed(rest: Running) -> None:
    name = rest.topic()
    assert rest.ask("GET", f"@/topics/{name}/partitions/-/reassignment")["data"] == []
    assert rest.ask("GET", f"@/topics/{name}/partitions/0/reassignment") == (404, 404)
    assert rest.ask("GET", f"@/topics/{unique()}/partitions/-/reassignment") == (404, 40403)


def test_settings_of_a_topic_change(rest: Running) -> None:
    name = rest.topic(retention_ms=1000)
    where = f"@/topics/{name}/configs"
    found = rest.ask("GET", f"{where}/retention.ms")
    assert (found["value"], found["source"], found["is_default"]) == ("1000", "DYNAMIC_TOPIC_CONFIG", False)
    assert found["synonyms"][0] == {"name": "retention.ms", "value": "1000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert found in rest.ask("GET", where)["data"]
    assert found in rest.ask("GET", "@/topics/-/configs")["data"]
    rest.ask("PUT", f"{where}/retention.ms", {"value": "2000"})
    assert rest.ask("GET", f"{where}/retention.ms")["value"] == "2000"
    rest.ask("DELETE", f"{where}/retention.ms")
    assert rest.ask("GET", f"{where}/retention.ms")["is_default"]
    changes = [{"name": "retention.ms", "value": "3"}, {"name": "segment.ms", "value": "9999999", "operation": "SET"}]
    assert rest.ask("POST", f"{where}:alter", {"data": changes}) is None
    assert rest.ask("POST", f"{where}:alter", {"data": [{"name": "retention.ms", "operation": "DELETE"}]}) is None
    assert rest.ask("GET", f"{where}/retention.ms")["is_default"]
    assert rest.ask("GET", f"{where}/segment.ms")["value"] == "9999999"


def test_settings_that_are_only_validated_do_not_change(rest: Running) -> None:
    where = f"@/topics/{rest.topic()}/configs"
    body = {"data": [{"name": "retention.ms", "value": "3"}], "validate_only": True}
    assert rest.ask("POST", f"{where}:alter", body) is None
    assert rest.ask("GET", f"{where}/retention.ms")["is_default"]


def test_wrong_settings_are_refused(rest: Running) -> None:
    where = f"@/topics/{rest.topic()}/configs"
    assert rest.ask("GET", f"{where}/no.such") == (404, 404)
    assert rest.ask("PUT", f"{where}/no.such", {"value": "1"}) == (404, 404)
    assert rest.ask("PUT", f"{where}/retention.ms", {"value": "soon"}) == (400, 40002)
    assert rest.ask("PUT", f"{where}/retention.ms", {}) == (400, 400)
    assert rest.ask("POST", f"{where}:alter", {"data": [{"name": "retention.ms"}]}) == (400, 400)
    assert rest.ask("POST", f"{where}:alter", {"data": [{"value": "1"}]}) == (422, 422)
    assert rest.ask("POST", f"{where}:alter", {"data": [{"name": "a", "operation": "ADD"}]}) == (400, 400)
    assert rest.ask("GET", f"@/topics/{unique()}/configs") == (404, 40403)
    assert rest.ask("GET", "@/brokers/99/configs") == (404, 404)


def test_settings_of_brokers_change(rest: Running) -> None:
    broker = rest.ask("GET", "@/brokers")["data"][0]["broker_id"]
    for where in (f"@/brokers/{broker}/configs", "@/broker-configs"):
        rest.ask("PUT", f"{where}/log.cleaner.threads", {"value": "2"})
        found = rest.ask("GET", f"{where}/log.cleaner.threads")
        assert found["value"] == "2"
        assert found in rest.ask("GET", where)["data"]
        body = {"data": [{"name": "log.cleaner.threads", "operation": "DELETE"}]}
        assert rest.ask("POST", f"{where}:alter", body) is None
        assert rest.ask("DELETE", f"{where}/log.cleaner.threads") is None
    everything = rest.ask("GET", "@/brokers/-/configs")["data"]
    assert {row["broker_id"] for row in everything} == {broker}


def test_a_group_shows_members_assignments_and_lags(rest: Running) -> None:
    topic, group = rest.topic(2), unique("g")
    rest.stream(topic, *[{"partition_id": 0, "value": {"type": "STRING", "data": "x"}}] * 5)
    instance = rest.instance(group)
    rest.ask("POST", f"{instance}/subscription", {"topics": [topic]})
    assert len(rest.read(instance, 5)) == 5
    offsets = [{"topic": topic, "partition": 0, "offset": 1}, {"topic": topic, "partition": 1, "offset": 0}]
    rest.ask("POST", f"{instance}/offsets", {"offsets": offsets[:1]})

    found = rest.ask("GET", f"@/consumer-groups/{group}")
    assert (found["state"], found["type"], found["is_simple"]) == ("STABLE", "CLASSIC", False)
    assert found in rest.ask("GET", "@/consumer-groups")["data"]
    assert rest.ask("GET", found["coordinator"]["related"])["kind"] == "KafkaBroker"
    [member] = rest.ask("GET", found["consumers"]["related"])["data"]
    assert member == rest.ask("GET", member["metadata"]["self"])
    assigned = rest.ask("GET", member["assignments"]["related"])["data"]
    assert [row["partition_id"] for row in assigned] == [0, 1]
    assert rest.ask("GET", assigned[0]["metadata"]["self"]) == assigned[0]
    assert rest.ask("GET", assigned[0]["partition"]["related"])["partition_id"] == 0
    lag = rest.ask("GET", assigned[0]["lag"]["related"])
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (2, 5, 3)
    assert lag["consumer_id"] == member["consumer_id"]
    assert rest.ask("GET", f"@/consumer-groups/{group}/lags")["data"] == [lag]
    summary = rest.ask("GET", found["lag_summary"]["related"])
    assert (summary["max_lag"], summary["total_lag"], summary["max_lag_topic_name"]) == (3, 3, topic)
    missing = f"@/consumer-groups/{group}/consumers/{member['consumer_id']}/assignments/{topic}/partitions/9"
    assert rest.ask("GET", missing) == (404, 404)
    rest.ask("DELETE", instance)


def test_groups_that_are_not_there(rest: Running) -> None:
    group = unique("g")
    for tail in ("", "/consumers", "/consumers/x", "/consumers/x/assignments", "/lags", "/lag-summary"):
        assert rest.ask("GET", f"@/consumer-groups/{group}{tail}") == (404, 404), tail
    assert rest.ask("GET", f"@/consumer-groups/{group}/lags/t/partitions/0") == (404, 404)


ACL = {
    "resource_type": "TOPIC",
    "pattern_type": "PREFIXED",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_acls_are_added_found_and_removed(rest: Running) -> None:
    first, second = ({**ACL, "resource_name": unique("a/é")} for _ in range(2))
    assert rest.raw("POST", "@/acls", first).status_code == 201
    assert rest.raw("POST", "@/acls:batch", {"data": [second]}).status_code == 201
    query = {"resource_name": first["resource_name"], "resource_type": "TOPIC", "pattern_type": "ANY"}
    [found] = rest.ask("GET", "@/acls", params=query)["data"]
    assert found.items() >= first.items()
    assert rest.ask("GET", found["metadata"]["self"])["data"] == [found]
    whole = {"operation": "ANY", "permission": "ANY", **query}
    assert rest.ask("DELETE", "@/acls", params=whole) == {"data": [found]}
    assert rest.ask("GET", "@/acls", params=query)["data"] == []
    assert len(rest.ask("GET", "@/acls", params={"principal": "User:alice"})["data"]) >= 1


def test_wrong_acls_are_refused(rest: Running) -> None:
    row = {**ACL, "resource_name": "x"}
    assert rest.ask("POST", "@/acls", {**row, "operation": "ANY"}) == (400, 400)
    assert rest.ask("POST", "@/acls", {**row, "operation": "DANCE"}) == (400, 400)
    assert rest.ask("POST", "@/acls", ACL) == (422, 422)
    assert rest.ask("POST", "@/acls:batch", {"data": [ACL]}) == (422, 422)
    cluster = {**ACL, "resource_type": "CLUSTER", "resource_name": "mine", "pattern_type": "LITERAL"}
    assert rest.ask("POST", "@/acls", cluster) == (400, 40002)
    assert rest.ask("GET", "@/acls?operation=DANCE") == (400, 400)
    assert rest.ask("DELETE", "@/acls?resource_type=TOPIC") == (400, 400)
