"""`moldau secure init && moldau up`: everything is encrypted and authenticated, and works for those who may."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx
import pytest

from moldau.admin import acls, tokens
from moldau.cli.secured_files import GRANTS, PARTS, rotate
from moldau.cli.snippets import SNIPPETS, snippets
from moldau.client import Client, ClientError, Error
from moldau.platform import LOGS
from moldau.testing import eventually
from moldau.wire import messages as m
from tests.secured import V2, SecuredPlatform, secured_platform

SUBJECTS = "ada: write ada-*, read shared\nrest: write *\napp: write *\n"
QUICK = {"retries": "0", "socket.connection.setup.timeout.ms": "10000", "default.api.timeout.ms": "20000"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPlatform]:
    place = tmp_path_factory.mktemp("secured")
    (place / "subjects").write_text(SUBJECTS)
    toml = f'[registry]\n"authorization.subjects.file" = "{place}/subjects"\n'
    with secured_platform(place, "broker", "registry", "rest", toml=toml) as running:
        yield running


@pytest.fixture(scope="module")
def ada(secured: SecuredPlatform) -> str:
    """An editor of the services, who may do nothing in Kafka."""
    add(secured, "ada", "editor")
    return "ada"


def add(secured: SecuredPlatform, name: str, role: str, **more: str) -> None:
    where = ("--folder", str(secured.folder), "-b", secured.brokers)
    secured.moldau("secure", "add-user", name, "--role", role, *where)


def allow(secured: SecuredPlatform, name: str, topic: str, *operations: str) -> None:
    rules = [acls.Acl("TOPIC", topic, "LITERAL", f"User:{name}", "*", one, "ALLOW") for one in operations]
    with secured.kafka("admin") as client:
        acls.create(client, rules)


def test_nothing_works_without_a_password(secured: SecuredPlatform) -> None:
    for part in ("registry", "rest"):
        with secured.http(None) as client:
            assert client.get(f"{secured.url(part)}/subjects").status_code == 401
        with secured.http("admin", "guess") as client:
            assert client.get(f"{secured.url(part)}/topics").status_code == 401
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{secured.url(part)}/subjects".replace("https", "http"), timeout=20)
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE"):
            httpx.get(f"{secured.url(part)}/subjects", timeout=60)
    for protocol in ("plaintext", "ssl", "sasl_plaintext"):
        given = {"bootstrap.servers": secured.brokers, **QUICK, **login(protocol)}
        with Client(given) as client, pytest.raises(ClientError):
            client.send(m.MetadataRequest([]))
    with secured.kafka("app", sasl_password="guess", **QUICK) as client, pytest.raises(ClientError) as refused:
        client.send(m.MetadataRequest([]))
    assert refused.value.error is Error.SASL_AUTHENTICATION_FAILED


def login(protocol: str) -> dict[str, str]:
    known = {"sasl.mechanism": "PLAIN", "sasl.username": "app", "sasl.password": "x"}
    return {"security.protocol": protocol, **(known if "sasl" in protocol else {})}


def test_the_rest_proxy_acts_as_its_caller(secured: SecuredPlatform, ada: str) -> None:
    assert secured.produce("app", "shop").json()["offsets"][0]["offset"] == 0
    refused = secured.produce(ada, "shop")
    assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)
    # Who may write nowhere gets no producer id, and librdkafka's producer is of no use any more.
    eventually(lambda: "Cluster authorization failed" in (secured.data / LOGS / "rest.log").read_text())
    allow(secured, ada, "shop", "WRITE", "DESCRIBE")
    eventually(lambda: secured.produce(ada, "shop").is_success)
    with secured.http(ada) as client:
        rest = secured.url("rest")
        assert client.get(f"{rest}/topics").json() == ["shop"]  # what ada may see
        cluster = client.get(f"{rest}/v3/clusters").json()["data"][0]["cluster_id"]
        assert client.get(f"{rest}/v3/clusters/{cluster}/acls").json()["error_code"] == 40301  # Kafka says so
        body = {"resource_type": "TOPIC"}
        refused = client.post(f"{rest}/v3/clusters/{cluster}/acls", json=body)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40301)  # the role says so
    with secured.http("app") as client:
        # The platform's own topics are closed to applications.
        assert "_schemas" not in client.get(f"{rest}/topics").json()
    assert secured.produce("app", "_schemas").status_code == 403


def test_a_consumer_belongs_to_the_caller_who_made_it(secured: SecuredPlatform, ada: str) -> None:
    secured.produce("app", "read", {"a": 1})
    types = {"content-type": "application/vnd.kafka.v2+json"}
    with secured.http("app") as client, secured.http(ada) as other:
        body = {"format": "json", "auto.offset.reset": "earliest"}
        url = client.post(f"{secured.url('rest')}/consumers/g", json=body, headers=types).json()["base_uri"]
        assert client.post(f"{url}/subscription", json={"topics": ["read"]}, headers=types).status_code == 204
        assert other.get(f"{url}/records", headers={"accept": V2}).json()["error_code"] == 40403

        def read() -> Any:
            return client.get(f"{url}/records", params={"timeout": 2000}, headers={"accept": V2}).json()

        assert eventually(read)[0]["value"] == {"a": 1}
        assert client.delete(url).status_code == 204


def test_subjects_have_rules_of_their_own(secured: SecuredPlatform, ada: str) -> None:
    schema = {"schema": '{"type": "int"}'}
    registry = secured.url("registry")
    with secured.http("app") as app, secured.http(ada) as client:
        for subject in ("shared", "closed"):
            assert app.post(f"{registry}/subjects/{subject}/versions", json=schema).is_success
        assert client.get(f"{registry}/subjects").json() == ["shared"]
        assert client.post(f"{registry}/subjects/ada-x/versions", json={"schema": '"string"'}).is_success
        assert client.get(f"{registry}/subjects/shared/versions").json() == [1]
        for method, path, body in (
            ("GET", "/subjects/closed/versions", None),
            ("GET", "/subjects/closed/versions/latest", None),
            ("GET", "/contexts/:.:/subjects/closed/versions", None),
            ("GET", "/subjects/%3A.%3Aclosed/versions", None),
            ("POST", "/subjects/shared/versions", schema),
            ("PUT", "/config/shared", {"compatibility": "NONE"}),
            ("DELETE", "/subjects/closed", None),
            ("PUT", "/config", {"compatibility": "NONE"}),
            ("POST", "/subjects/ada-y/versions", schema | {"references": [reference("closed")]}),
        ):
            answer = client.request(method, registry + path, json=body)
            assert (answer.status_code, answer.json()["error_code"]) == (403, 40301), (method, path, answer.text)
        number = app.get(f"{registry}/subjects/closed/versions/latest").json()["id"]
        assert client.get(f"{registry}/schemas/ids/{number}/subjects").json() == ["shared"]
        assert [one["subject"] for one in client.get(f"{registry}/schemas").json()] == ["ada-x", "shared"]


def reference(subject: str) -> dict[str, Any]:
    return {"name": "x", "subject": subject, "version": 1}


def test_a_user_who_is_removed_is_out_at_once(secured: SecuredPlatform) -> None:
    add(secured, "gus", "editor")
    allow(secured, "gus", "removed", "WRITE", "DESCRIBE", "CREATE")
    with secured.http("gus") as web, secured.kafka("gus") as inside, secured.http("app") as app:
        assert secured.produce("gus", "removed").is_success  # he has a token by now
        assert inside.send(m.MetadataRequest([])).brokers
        with secured.kafka("admin") as client:
            assert len(tokens.described(client, ["User:gus"])) == 1
        told = json.loads(
            secured.moldau(
                "secure", "remove-user", "gus", "--folder", str(secured.folder), "-b", secured.brokers, "-o", "json"
            )
        )
        assert told == {"user": "gus", "acls": 3, "tokens": 1}
        assert web.get(f"{secured.url('registry')}/subjects").status_code == 401
        assert web.get(f"{secured.url('rest')}/topics").status_code == 401
        # The connection is still there, as in Kafka, but it may do nothing.
        wanted = m.MetadataRequest([m.MetadataRequest_MetadataRequestTopic(name="removed")], False)
        assert Error(inside.send(wanted).topics[0].error_code) is Error.TOPIC_AUTHORIZATION_FAILED
        assert app.get(f"{secured.url('registry')}/subjects").is_success
    with secured.kafka("admin") as client:
        assert not tokens.described(client, ["User:gus"])


def test_certificates_are_replaced_without_a_lost_connection(secured: SecuredPlatform) -> None:
    ports = [int(secured.url(part).rpartition(":")[2]) for part in ("registry", "rest")]
    ports.append(int(secured.brokers.rpartition(":")[2]))
    before = [serial(secured, port) for port in ports]
    with secured.http("app") as web, secured.kafka("app") as kafka:
        with web.stream("GET", f"{secured.url('registry')}/subjects") as first:
            connection = first.extensions["network_stream"].get_extra_info("client_addr")
            first.read()
        kafka.send(m.MetadataRequest([]))
        rotate(secured.folder)
        eventually(lambda: not {serial(secured, port) for port in ports} & set(before))
        kafka.send(m.MetadataRequest([]))
        with web.stream("GET", f"{secured.url('registry')}/subjects") as again:
            assert again.status_code == 200
            assert again.extensions["network_stream"].get_extra_info("client_addr") == connection


def serial(secured: SecuredPlatform, port: int) -> bytes:
    """Return the certificate that a port shows."""
    plain = socket.create_connection(("127.0.0.1", port), 60)
    with plain, secured.trust().wrap_socket(plain, server_hostname="localhost") as channel:
        shown = channel.getpeercert(binary_form=True)
        assert shown is not None
        return shown


CONFLUENT = "producer.produce('{topic}', b'x'); assert producer.flush(60) == 0"
KAFKA_PYTHON = "producer.send('{topic}', b'x').get(60); producer.close()"
RUN = {"confluent-kafka": CONFLUENT, "kafka-python": KAFKA_PYTHON}
AIOKAFKA = """
import asyncio
async def main():
{made}
    await producer.start()
    try:
        await producer.send_and_wait("{topic}", b"x")
    finally:
        await producer.stop()
asyncio.run(main())
"""


KCAT = pytest.param("kcat", marks=pytest.mark.needs("kcat"))
CURL = pytest.param("http", marks=pytest.mark.needs("curl"))


@pytest.mark.parametrize("name", ["confluent-kafka", "kafka-python", "aiokafka", KCAT, CURL])
def test_a_snippet_works_as_it_is_printed(secured: SecuredPlatform, tmp_path: Path, name: str) -> None:
    topic = f"snippet-{name}"
    with secured.kafka("admin") as client:
        row = m.CreateTopicsRequest_CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
        client.send(m.CreateTopicsRequest([row]))
    made = snippets(secured.brokers, "app", secured.password("app"), secured.folder / "ca.pem", secured.url("registry"))
    assert len(made) == len(SNIPPETS)
    if name == "http":
        command = ["bash", "-c", made["http.sh"].replace("curl ", "curl --silent --fail --max-time 60 ")]
    elif name == "kcat":
        (tmp_path / "kcat.conf").write_text(made["kcat.conf"])
        # Debian's kcat has a librdkafka that repeats its nonce in SCRAM, which is refused: ours is newer.
        library = next(Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*"))
        command = ["bash", "-c", f"echo x | LD_PRELOAD={library} kcat -F {tmp_path}/kcat.conf -P -t {topic}"]
    else:
        text = made[f"{name}.py"]
        if name == "aiokafka":
            text = AIOKAFKA.format(made="".join(f"    {line}\n" for line in text.splitlines()), topic=topic)
        else:
            text += RUN[name].format(topic=topic)
        command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    if name != "http":
        with secured.kafka("app") as client:
            assert end_of(client, topic) == 1


def end_of(client: Client, topic: str) -> int:
    from moldau.admin.offsets import ends

    return ends(client, [(topic, 0)])[topic, 0][1]


def test_no_secret_in_any_output(secured: SecuredPlatform) -> None:
    """Passwords, keys and HMACs are in the files that hold them, and nowhere else."""
    planted = {name: secured.password(name) for name in ("admin", "app")}
    for part in PARTS:
        text = (secured.folder / f"{part}.properties").read_text()
        found = re.search(r'(?:sasl.password=|password=")([\w-]+)', text)
        assert found is not None
        planted[part] = found[1]
    with secured.kafka("admin") as client:
        made = tokens.create(client)
        planted["token"] = made.password
        settings = client.send(describe_broker())
        shown = str([(one.name, one.value) for row in settings.results for one in row.configs])
    processes = "".join(arguments(one) for one in Path("/proc").iterdir() if one.name.isdigit())
    logs = "".join(file.read_text(errors="replace") for file in (secured.data / ".moldau" / "logs").glob("*.log"))
    audits = "".join(file.read_text() for file in secured.folder.glob("audit*.log"))
    with secured.http("admin") as web:
        answers = "".join(web.get(secured.url("rest") + path).text for path in ("/openapi.json", "/brokers"))
    data = b"".join(file.read_bytes() for file in secured.data.rglob("*") if file.is_file())
    places = {"settings": shown, "processes": processes, "logs": logs, "audit": audits, "http": answers}
    for who, secret in planted.items():
        for place, text in places.items():
            assert secret not in text, f"the secret of {who} is in {place}"
        assert secret.encode() not in data, f"the secret of {who} is in the data"


def describe_broker() -> Any:
    resource = m.DescribeConfigsRequest_DescribeConfigsResource(4, "1")
    return m.DescribeConfigsRequest([resource])


def arguments(process: Path) -> str:
    with contextlib.suppress(OSError):
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def test_the_audit_log_says_who_was_refused(secured: SecuredPlatform, ada: str) -> None:
    secured.produce(ada, "not-hers")
    with secured.http(ada) as client:
        client.put(f"{secured.url('registry')}/config", json={"compatibility": "NONE"})

    def told(*options: str) -> list[dict[str, Any]]:
        text = secured.moldau("audit", "tail", str(secured.folder), "--json", "--lines", "1000", *options)
        return [json.loads(line) for line in text.splitlines()]

    hers = told("--principal", ada, "--denied")
    assert {line["principal"] for line in hers} == {"User:ada"}
    assert any(line.get("request") == "PUT /config" for line in hers)
    assert any(line.get("name") == "not-hers" and line["resource"] == "TOPIC" for line in hers)
    assert {line["message"] for line in told()} >= {"asked for a change", "denied"}


def test_parts_have_the_rights_that_they_need_and_no_others(secured: SecuredPlatform) -> None:
    with secured.kafka("admin") as client:
        known = acls.described(client, acls.Filter())
    assert {rule.principal.removeprefix("User:") for rule in known} >= {row[0] for row in GRANTS}
    own = {(rule.resource, rule.name) for rule in known if rule.principal == "User:registry"}
    assert own == {(kind, name.removesuffix("*")) for who, kind, name, _ in GRANTS if who == "registry"}


def test_a_weak_context_cannot_be_agreed_on(secured: SecuredPlatform) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(secured.folder / "ca.pem")
    with pytest.warns(DeprecationWarning):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    for port in (int(secured.url("rest").rpartition(":")[2]), int(secured.brokers.rpartition(":")[2])):
        with socket.create_connection(("127.0.0.1", port), 60) as plain, pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(plain, server_hostname="localhost")
