"""Requests that are wrong, limits, and a broker that goes away: a right answer, and service goes on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from moldau.testing import Broker, broker, eventually
from tests.rest.running import V2, Running, running, unique, v2


def test_paths_and_methods_that_are_not_there(rest: Running) -> None:
    assert rest.ask("GET", "/nothing") == (404, 404)
    assert rest.ask("GET", "/v3/nothing") == (404, 404)
    assert rest.ask("PUT", "/topics") == (405, 405)
    assert rest.ask("GET", "/topics/..%2F..%2Fetc") == (404, 40401)


@pytest.mark.parametrize(
    "body",
    [b"{", b"[]", b"1", b'"x"', b"\xff", b"{} {}", b"nan", b"[" * 100_000, b'{"topic_name": "\\ud800"}'],
    ids=str,
)
def test_what_is_no_document_is_refused(rest: Running, body: bytes) -> None:
    status, code = rest.ask("POST", "@/topics", body)
    assert (status, code) == (400, 400)
    status, code = rest.ask("POST", f"/consumers/{unique('g')}", body)
    assert (status, code) == (400, 400)


def test_media_types_must_fit(rest: Running) -> None:
    topic = rest.topic()
    assert rest.ask("POST", "@/topics", {}, type="text/plain") == (415, 415)
    assert rest.ask("POST", "@/topics", {}, type=V2) == (415, 415)
    assert rest.ask("POST", f"/topics/{topic}", {"records": []}, type=V2) == (415, 415)
    assert rest.ask("POST", f"/consumers/{unique('g')}", {}, type="application/json") == (415, 415)
    assert rest.ask("GET", "@/topics", headers={"accept": "text/html"}) == (406, 406)
    assert rest.ask("GET", "/topics", headers={"accept": "text/html, */*;q=0.1"})
    assert rest.ask("GET", "/topics", headers={"accept": "text/html;q=1, application/json;q=0"}) == (406, 406)
    assert rest.ask("GET", "@/topics", headers={"accept": "application/json; charset=utf-8"})["data"]


def test_a_body_beyond_the_limit_is_refused(rest_broker: Broker) -> None:
    with running(rest_broker.bootstrap_servers, "size.limit.filter.max.request.body.size=1000") as small:
        topic = small.topic()
        body = {"records": [{"value": "x" * 2000}]}
        assert small.ask("POST", f"/topics/{topic}", body, type=v2("json")) == (413, 413)
        [report] = small.stream(topic, {"value": {"type": "STRING", "data": "x" * 2000}})
        assert report["error_code"] == 400


def test_versions_can_be_left_out(rest_broker: Broker) -> None:
    with running(rest_broker.bootstrap_servers, "api.v2.enable=false") as three:
        assert three.ask("GET", "/topics") == (404, 404)
        assert three.ask("GET", "@/topics")["data"] is not None


def test_basic_authentication_guards_everything(rest_broker: Broker, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: secret,admin\n")
    given = ("authentication.method=BASIC", f"authentication.users.file={users}")
    guarded = Running(rest_broker.bootstrap_servers, *given, auth=("ann", "secret"))
    try:
        assert guarded.ask("GET", "@/topics")["data"] is not None
        for path in ("/", "/topics", "/v3/clusters", "/openapi.json"):
            answer = httpx.get(guarded.url + path)
            assert answer.status_code == 401
            assert answer.json()["error_code"] == 401
    finally:
        guarded.stop()


def test_broker_settings_that_are_wrong_are_named(rest_broker: Broker) -> None:
    with pytest.raises(AssertionError, match="did not start"):
        Running(rest_broker.bootstrap_servers, "no.such.setting=1")
    with pytest.raises(AssertionError, match="did not start"):
        Running("")


QUICK = ("client.timeout.ms=1500", "request.timeout.ms=3000", "producer.reconnect.backoff.max.ms=200")


def test_service_goes_on_when_the_broker_is_back(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    settings: dict[str, Any] = {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 1}
    with broker({**settings, "log.dirs": data}) as first:
        address = first.bootstrap_servers
        proxy = Running(address, *QUICK)
        topic = unique("made-by-itself")
        written = proxy.ask("POST", f"/topics/{topic}", {"records": [{"value": 1}]}, type=v2("json"))
        assert written["offsets"][0]["offset"] == 0
        assert proxy.ask("GET", "@/acls") == (400, 40002)
        instance = proxy.instance(format="json")
        proxy.ask("POST", f"{instance}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
        assert len(proxy.read(instance, 1)) == 1
    try:
        assert proxy.ask("GET", "@/topics") == (500, 50003)
        assert proxy.ask("GET", f"/topics/{topic}") == (500, 50003)
        away = proxy.ask("POST", f"/topics/{topic}", {"records": [{"value": 2}]}, type=v2("json"))
        assert away["offsets"][0]["error_code"] == 50003
        [report] = proxy.stream(topic, {"value": {"type": "JSON", "data": 2}})
        assert report["error_code"] == 50003
        assert proxy.ask("GET", f"{instance}/records?timeout=200") == []
        with broker({**settings, "log.dirs": data, "listeners": f"PLAINTEXT://{address}"}):

            def writes() -> bool:
                found = proxy.ask("POST", f"/topics/{topic}", {"records": [{"value": 3}]}, type=v2("json"))
                return isinstance(found, dict) and found["offsets"][0]["error_code"] is None

            eventually(writes, timeout_s=30)
            assert proxy.ask("GET", "@/topics")["data"]
            assert 3 in [row["value"] for row in proxy.read(instance, 1)]
            proxy.ask("DELETE", instance)
    finally:
        proxy.stop()


def test_many_requests_at_once_are_all_answered(rest: Running) -> None:
    topic = rest.topic(3)
    answers: list[int] = []

    def work(number: int) -> None:
        with httpx.Client(base_url=rest.url, timeout=60) as client:
            for turn in range(10):
                body = json.dumps({"records": [{"value": [number, turn]}]})
                answer = client.post(f"/topics/{topic}", content=body, headers={"content-type": v2("json")})
                answers.append(answer.status_code)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 100
    ends = [rest.ask("GET", f"/topics/{topic}/partitions/{p}/offsets")["end_offset"] for p in range(3)]
    assert sum(ends) == 100
