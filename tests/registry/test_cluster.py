"""Several registries on one topic: one writes, the others forward, and another takes over."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from moldau.testing import Broker, eventually
from tests.certificates import Certificates
from tests.registry.running import Running, body, record, running, unique

A = record("x:int")
B = record("x:int", "y:string", y="")
FORWARDED = {"X-Moldau-Forwarded": "true"}
QUICK = ("kafkagroup.session.timeout.ms=1500", "kafkagroup.heartbeat.interval.ms=200", "kafkastore.timeout.ms=5000")


def own(name: str) -> tuple[str, ...]:
    return (f"kafkastore.topic={name}", f"schema.registry.group.id={name}", *QUICK)


@pytest.fixture
def pair(registry_broker: Broker) -> Iterator[tuple[Running, Running]]:
    """The first leads."""
    name = unique("_pair")
    with running(registry_broker.bootstrap_servers, *own(name)) as first:
        first.register("first", A)
        with running(registry_broker.bootstrap_servers, *own(name)) as second:
            yield first, second


def test_a_follower_forwards_what_changes_something(pair: tuple[Running, Running]) -> None:
    leader, follower = pair
    id = follower.register("a%2Fb", B)
    assert leader.get("/subjects/a%2Fb/versions/1")["id"] == id
    assert follower.put("/config/a%2Fb", {"compatibility": "NONE"}) == {"compatibility": "NONE"}
    assert leader.get("/config/a%2Fb") == {"compatibilityLevel": "NONE"}
    assert follower.post("/contexts/.c/subjects/x/versions?normalize=true", body(A))["id"] == 1
    assert leader.get("/subjects/:.c:x/versions") == [1]
    assert follower.delete("/subjects/:.c:x") == [1]
    assert follower.delete("/subjects/nobody") == (404, 40401)
    assert follower.post("/subjects/first/versions", body("{")) == (422, 42201)
    assert follower.put("/mode/first", {"mode": "X"}) == (422, 42204)
    eventually(lambda: follower.get("/subjects?deleted=true") == [":.c:x", "a/b", "first"])
    assert follower.delete("/subjects/:.c:x?permanent=true") == [1]
    assert follower.delete("/contexts/.c") is None


def test_a_follower_shows_what_was_changed_through_it(pair: tuple[Running, Running]) -> None:
    _, follower = pair
    for number in range(20):
        follower.register(f"seen-{number}", A)
        assert follower.get(f"/subjects/seen-{number}/versions") == [1]


def test_a_leader_that_was_paused_writes_nothing_when_it_wakes_up(pair: tuple[Running, Running]) -> None:
    """What it is asked while it is paused it answers before it can have heard that another one leads."""
    paused, other = pair
    paused.service.process.send_signal(signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            # On a connection of its own: the service closes one that was idle for long when it wakes up.
            url = f"{paused.url}/subjects/late/versions"
            late = pool.submit(httpx.post, url, json=body(B), headers=FORWARDED, timeout=60.0)
            eventually(lambda: isinstance(other.post("/subjects/meanwhile/versions", body(B)), dict))
            paused.service.process.send_signal(signal.SIGCONT)
            refused = late.result(60.0).json()
    finally:
        paused.service.process.send_signal(signal.SIGCONT)
    assert refused["error_code"] == 50004
    id = other.get("/subjects/meanwhile/versions/1")["id"]
    assert other.register("late", record("z:int")) == id + 1
    assert eventually(lambda: paused.get("/subjects") == ["first", "late", "meanwhile"])
    assert paused.get("/subjects/late/versions/1")["id"] == id + 1


def test_another_takes_over_when_the_leader_stops_or_dies(registry_broker: Broker) -> None:
    name = unique("_over")
    servers = registry_broker.bootstrap_servers
    registries = [Running(servers, *own(name)) for _ in range(3)]
    try:
        ids = [registries[0].register("s", A)]
        for end in ("stop", "kill"):
            leader = led_by(registries)
            registries.remove(leader)
            getattr(leader, end)()
            schema = record("x:int", name=f"After_{end}")
            survivor = registries[-1]
            eventually(lambda: isinstance(survivor.post(f"/subjects/{end}/versions", body(schema)), dict))  # noqa: B023
            ids.append(survivor.register(end, schema))
        assert ids == [1, 2, 3]
        assert registries[0].get("/subjects") == ["kill", "s", "stop"]
    finally:
        for registry in registries:
            registry.stop()


def led_by(registries: list[Running]) -> Running:
    """The one that takes a forwarded request; the others refuse to send it on. While one joins, nobody leads."""
    return eventually(lambda: next(filter(leads, registries), None), what="that one of them leads")


def leads(registry: Running) -> bool:
    answer = registry.http.put("/config", json={"compatibility": "BACKWARD"}, headers=FORWARDED)
    assert answer.is_success or answer.json()["error_code"] == 50004
    return answer.is_success


def test_a_known_schema_needs_no_leader(registry_broker: Broker) -> None:
    name = unique("_known")
    with running(registry_broker.bootstrap_servers, *own(name)) as registry:
        id = registry.register("a", A)
    with running(registry_broker.bootstrap_servers, *own(name), "leader.eligibility=false") as registry:
        assert registry.register("a", A) == id


def test_basic_auth_goes_on_to_the_leader(registry_broker: Broker, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("anna: secret\n")
    given = (*own(unique("_auth")), "authentication.method=BASIC", f"authentication.users.file={users}")
    with (
        running(registry_broker.bootstrap_servers, *given) as first,
        running(registry_broker.bootstrap_servers, *given) as second,
    ):
        for registry in (first, second):
            assert registry.get("/subjects") == (401, 401)
            registry.http.auth = ("anna", "secret")
            registry.register("a", A)


def test_registries_talk_https_to_each_other(registry_broker: Broker, tmp_path: Path) -> None:
    """With a certificate of its own each: the follower shows it to the leader."""
    known = Certificates.within(tmp_path)
    given = (*own(unique("_https")), *known.settings)
    verify = {"verify": known.trusting(known.client)}
    with (
        running(registry_broker.bootstrap_servers, *given, **verify) as first,
        running(registry_broker.bootstrap_servers, *given, **verify) as second,
    ):
        assert first.url.startswith("https://") and second.url.startswith("https://")
        leader = led_by([first, second])
        follower = second if leader is first else first
        id = follower.register("a", A)
        assert leader.get("/subjects/a/versions/1")["id"] == id
        client = SchemaRegistryClient(
            {
                "url": follower.url,
                "ssl.ca.location": str(known.authority),
                "ssl.certificate.location": str(known.client),
                "ssl.key.location": str(known.client),
            }
        )
        assert client.register_schema("b", Schema(json.dumps(B), "AVRO")) > id


def test_no_write_that_was_acknowledged_is_lost_when_the_leader_is_killed(registry_broker: Broker) -> None:
    """Three registries are written through while the one that leads is killed: each schema keeps the id it was given,
    no two schemas have the same, and the two that are left agree."""
    name, servers = unique("_killed"), registry_broker.bootstrap_servers
    registries = [Running(servers, *own(name)) for _ in range(3)]
    given: dict[str, int] = {}
    going = threading.Event()

    def write(registry: Running, number: int) -> None:
        for turn in range(10_000):
            if going.is_set():
                return
            schema = f"R{number}_{turn % 40}"
            try:
                answer = registry.post(f"/subjects/{schema}/versions", body(record("x:int", name=schema)))
            except httpx.TransportError:
                return  # it was killed
            if isinstance(answer, dict):
                assert given.setdefault(schema, answer["id"]) == answer["id"]

    threads = [threading.Thread(target=write, args=(one, number)) for number, one in enumerate(registries)]
    try:
        leader = led_by(registries)
        for thread in threads:
            thread.start()
        eventually(lambda: len(given) > 20)
        leader.service.process.kill()
        before = len(given)
        eventually(lambda: len(given) > before + 20)
    finally:
        going.set()
        for thread in threads:
            thread.join()
        leader.kill()
    left = [one for one in registries if one is not leader]
    try:
        for registry in left:
            eventually(lambda: shown(registry, given) == given)  # noqa: B023
        assert len(set(given.values())) == len(given)
    finally:
        for registry in left:
            registry.stop()


def shown(registry: Running, names: Iterable[str]) -> dict[str, Any]:
    answers = {name: registry.get(f"/subjects/{name}/versions/1") for name in names}
    return {name: answer["id"] if isinstance(answer, dict) else answer for name, answer in answers.items()}
