"""The whole of a secured platform, `make secured`: all parts, a browser, Java's tools, Spark, three brokers.

It takes minutes, so `make test` has only tests/test_secured_platform.py.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import KafkaException, Producer

from moldau.admin import acls, tokens
from moldau.cli.secured_files import UP, make_files, rotate
from moldau.cli.snippets import snippets
from moldau.client import Client, ClientError, Error, Record, build, produce
from moldau.client.java_settings import read_file, translated
from moldau.platform import PARTS
from moldau.testing import eventually
from moldau.testing.ports import free_ports
from moldau.testing.process import Broker
from moldau.wire import messages as m
from tests.conformance.java_tools import Output, Tools, started
from tests.needs import find
from tests.secured import SecuredPlatform, secured_platform
from tests.test_platform import free_offset


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPlatform]:
    with secured_platform(tmp_path_factory.mktemp("whole")) as running:
        yield running


def status(secured: SecuredPlatform, part: str, path: str, user: str | None, method: str = "GET", **more: Any) -> int:
    with secured.http(user) as client:
        return client.request(method, secured.url(part) + path, **more).status_code


def served(secured: SecuredPlatform, part: str, path: str) -> None:
    """Wait for a part that nobody waits for at the start."""

    eventually(lambda: answered(secured, part, path, "admin") == 200, 300)


def answered(secured: SecuredPlatform, part: str, path: str, user: str | None) -> int:
    """Return the status of an answer, 0 if nobody listens yet."""
    try:
        return status(secured, part, path, user)
    except httpx.ConnectError:
        return 0


def test_connect_and_sql_ask_for_a_password_and_a_role(secured: SecuredPlatform) -> None:
    served(secured, "connect", "/connectors")
    served(secured, "sql", "/info")
    config = {"name": "x", "config": {"connector.class": "FileStreamSource", "topic": "lines", "file": "/dev/null"}}
    secured.moldau(
        "secure", "add-user", "vera", "--role", "viewer", "--folder", str(secured.folder), "-b", secured.brokers
    )
    assert status(secured, "connect", "/connectors", None) == status(secured, "sql", "/info", None) == 401
    assert status(secured, "connect", "/connectors", "vera") == status(secured, "sql", "/info", "vera") == 200
    assert status(secured, "connect", "/connectors", "vera", "POST", json=config) == 403
    assert status(secured, "connect", "/connectors", "app", "POST", json=config) == 201
    create = {"ksql": "CREATE STREAM s (a INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON', PARTITIONS=1);"}
    with secured.http("vera") as client:
        refused = client.post(f"{secured.url('sql')}/ksql", json=create)
        assert (refused.status_code, refused.json()["error_code"]) == (403, 40300)
        assert client.post(f"{secured.url('sql')}/ksql", json={"ksql": "SHOW STREAMS;"}).status_code == 200
    assert status(secured, "sql", "/ksql", "app", "POST", json=create) == 200


def test_sql_asks_kafka_what_its_caller_may(secured: SecuredPlatform) -> None:
    served(secured, "sql", "/info")
    secured.moldau(
        "secure", "add-user", "emil", "--role", "editor", "--folder", str(secured.folder), "-b", secured.brokers
    )
    secured.produce("app", "orders", {"A": 1})
    stream = "CREATE STREAM {} (a INT) WITH (KAFKA_TOPIC='{}', VALUE_FORMAT='JSON'{});"

    def ask(user: str, text: str, path: str = "/ksql") -> tuple[int, int]:
        with secured.http(user) as client:
            answer = client.post(secured.url("sql") + path, json={"ksql": text, "streamsProperties": {}})
            return answer.status_code, answer.json().get("error_code", 0) if answer.status_code != 200 else 0

    assert ask("emil", stream.format("o", "orders", "")) == (403, 40301)
    assert ask("app", stream.format("o", "orders", "")) == (200, 0)
    for text in ("INSERT INTO o VALUES (1);", "CREATE STREAM p AS SELECT * FROM o;", "DROP STREAM o DELETE TOPIC;"):
        assert ask("emil", text) == (403, 40301), text
    assert ask("emil", "SELECT * FROM o;", "/query") == (403, 40301)
    with secured.kafka("admin") as client:
        rules = [acls.Acl("TOPIC", "orders", "LITERAL", "User:emil", "*", "READ", "ALLOW")]
        acls.create(client, rules)
    eventually(lambda: ask("emil", "SELECT * FROM o;", "/query") == (200, 0))
    assert ask("emil", "INSERT INTO o VALUES (1);") == (403, 40301)  # he may read, and not write
    assert ask("emil", "CREATE STREAM p AS SELECT * FROM o;") == (403, 40301)  # nor create a topic


def test_avro_goes_from_sql_and_connect_through_the_registry(secured: SecuredPlatform) -> None:
    served(secured, "sql", "/info")
    text = "CREATE STREAM av (a INT) WITH (KAFKA_TOPIC='av', VALUE_FORMAT='AVRO', PARTITIONS=1);"
    with secured.http("app") as client:
        answer = client.post(f"{secured.url('sql')}/ksql", json={"ksql": text + "INSERT INTO av VALUES (7);"})
        assert answer.status_code == 200, answer.text
        assert "av-value" in client.get(f"{secured.url('registry')}/subjects").json()


def test_a_browser_logs_in_and_acts_as_its_user(secured: SecuredPlatform) -> None:
    from playwright.sync_api import sync_playwright

    served(secured, "connect", "/connectors")
    eventually(lambda: answered(secured, "console", "/login", None) == 200, 300)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(find("chromium").path), args=["--no-sandbox"])
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{secured.url('console')}/topics")
        assert "/login" in page.url
        page.fill("input[name=name]", "app")
        page.fill("input[name=password]", "guess")
        page.press("input[name=password]", "Enter")
        page.get_by_role("alert").wait_for()
        page.fill("input[name=name]", "app")
        page.fill("input[name=password]", secured.password("app"))
        page.press("input[name=password]", "Enter")
        page.wait_for_url("**/topics*")
        secured.produce("app", "seen-in-the-browser")
        page.reload()
        page.get_by_text("seen-in-the-browser").first.wait_for()
        assert not page.get_by_text("_schemas", exact=True).count()  # app may not see it
        browser.close()


def jars() -> Path:
    found = find("kafka-jars")
    assert found.path is not None, found.reason
    return found.path


def shown(output: Output) -> list[str]:
    """Return lines without what differs from call to call."""
    return [re.sub(r"\S{22,}", "SECRET", line) for line in output.lines()]


def test_javas_tools_work_over_sasl_ssl_and_ours_say_the_same(secured: SecuredPlatform) -> None:
    config = ("--command-config", str(secured.folder / "admin.properties"))
    with started(jars()) as jvm:
        run = Tools(jvm, secured.brokers)

        def java(name: str, *arguments: str) -> Output:
            return run(name, *arguments, *config, check=False)

        def ours(name: str, *arguments: str) -> Output:
            command = [sys.executable, "-m", "moldau", name, *arguments, "--bootstrap-server", secured.brokers, *config]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            return Output(done.returncode, done.stdout, done.stderr)

        user = ("--alter", "--add-config", "SCRAM-SHA-256=[password=java-secret]", "--entity-type", "users")
        assert java("kafka-configs", *user, "--entity-name", "jim").exit == 0
        assert java("kafka-acls", "--add", "--allow-principal", "User:jim", "--producer", "--topic", "t").exit == 0
        assert java("kafka-topics", "--create", "--topic", "from-java").exit == 0
        create = ("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:jim")
        assert shown(java("kafka-delegation-tokens", *create)) == shown(ours("kafka-delegation-tokens", *create))
        for owner in ((), ("--owner-principal", "User:admin"), ("--owner-principal", "User:nobody")):
            both = [tool("kafka-delegation-tokens", "--describe", *owner) for tool in (java, ours)]
            assert sorted(both[0].lines()) == sorted(both[1].lines())
        described = java("kafka-delegation-tokens", "--describe", "--owner-principal", "User:admin").lines()
        hmacs = [line.split()[1] for line in described if "[User:jim]" in line]
        assert len(hmacs) == 2
        renewed = [
            tool("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", hmac)
            for tool, hmac in zip((java, ours), hmacs, strict=True)
        ]
        assert shown(renewed[0]) == shown(renewed[1])
        ended = [
            tool("kafka-delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
            for tool, hmac in zip((java, ours), hmacs, strict=True)
        ]
        assert shown(ended[0]) == shown(ended[1])
        late = ("--renew", "--renew-time-period", "-1", "--hmac", hmacs[0])
        gone = [tool("kafka-delegation-tokens", *late) for tool in (java, ours)]
        assert gone[0].exit == gone[1].exit == 1 and "DELEGATION" in "".join(gone[1].lines()).upper()


class Load:
    """A user who produces without end, in a thread: how often, and what went wrong and when."""

    def __init__(self, secured: SecuredPlatform, user: str, topic: str) -> None:
        self.sent, self.failures = 0, list[tuple[float, str]]()
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": secured.brokers,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": user,
                "sasl.password": secured.password(user),
                "ssl.ca.location": str(secured.folder / "ca.pem"),
            }
        )
        self._topic = topic
        self._thread = threading.Thread(target=self._run, name=user)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.produce(self._topic, b"x" * 100, on_delivery=self._delivered)
            except KafkaException as error:  # it knows already that it may not
                self._delivered(error.args[0], None)
                self._stop.wait(0.1)
            self._producer.flush(60)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.sent += 1
        else:
            self.failures.append((time.monotonic(), error.name()))

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


def test_a_certificate_a_user_and_an_acl_change_under_load(secured: SecuredPlatform) -> None:
    where = ("--folder", str(secured.folder), "-b", secured.brokers)
    for name in ("rob", "sue"):
        secured.moldau("secure", "add-user", name, "--role", "editor", *where)
    with secured.kafka("admin") as client:
        row = m.CreateTopicsRequest_CreatableTopic(name="load", num_partitions=3, replication_factor=1)
        client.send(m.CreateTopicsRequest([row]))
        rules = [
            acls.Acl("TOPIC", "load", "LITERAL", f"User:{name}", "*", operation, "ALLOW")
            for name in ("rob", "sue")
            for operation in ("WRITE", "DESCRIBE")
        ]
        acls.create(client, rules)
        app, rob, sue = (Load(secured, name, "load") for name in ("app", "rob", "sue"))
        try:
            eventually(lambda: all(one.sent > 20 for one in (app, rob, sue)), 300)
            with secured.http("app") as web:
                before, port = app.sent, int(secured.brokers.rpartition(":")[2])
                shown = certificate(secured, port)
                rotate(secured.folder)
                assert certificate(secured, port) != shown  # the very next connection has the new one
                file = secured.folder / "user-rob.properties"
                login = translated(read_file(str(file))) | {"bootstrap.servers": secured.brokers}
                removed = time.monotonic()
                secured.moldau("secure", "remove-user", "rob", *where)
                with Client({**login, "retries": "0"}) as late, pytest.raises(ClientError):
                    late.send(m.MetadataRequest([]))
                eventually(lambda: rob.failures, 120)
                with secured.kafka("sue") as hers:
                    produce(hers, "load", 0, build([Record(value=b"before")]), acks=1)
                    revoked = time.monotonic()
                    acls.delete(client, [acls.Filter(principal="User:sue")])
                    with pytest.raises(ClientError) as refused:  # on a connection that is there
                        produce(hers, "load", 0, build([Record(value=b"after")]), acks=1)
                    assert refused.value.error is Error.TOPIC_AUTHORIZATION_FAILED
                eventually(lambda: sue.failures, 120)
                assert web.get(f"{secured.url('registry')}/subjects").status_code == 200
            eventually(lambda: app.sent > before + 100, 300)
        finally:
            for one in (app, rob, sue):
                one.close()
    assert not app.failures
    assert {why for _, why in rob.failures + sue.failures} <= {"TOPIC_AUTHORIZATION_FAILED", "_AUTHENTICATION"}
    took = rob.failures[0][0] - removed, sue.failures[0][0] - revoked
    print(
        f"\na user was out after {took[0]:.2f} s (with the command), a right after {took[1]:.2f} s; {app.sent} unharmed"
    )


def certificate(secured: SecuredPlatform, port: int) -> bytes | None:
    """Return the certificate that a port shows."""
    plain = socket.create_connection(("127.0.0.1", port), 60)
    with plain, secured.trust().wrap_socket(plain, server_hostname="localhost") as channel:
        return channel.getpeercert(binary_form=True)


SPARK = """
from moldau.spark import session
{made}
spark = session("secured", **{{"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file://{events}"}})
rows = spark.read.format("moldau").options(**options).option("subscribe", "for-spark").load()
assert rows.count() == 1, rows.count()
rows.explain(True)
spark.stop()
"""


def test_three_secured_brokers(tmp_path: Path) -> None:
    with secured_platform(tmp_path, "broker", "registry", "rest", toml="brokers = 3\n") as running:
        assert running.produce("app", "replicated").json()["offsets"][0]["offset"] == 0
        with running.kafka("admin") as client:
            assert len(client.refresh().brokers) == 3


def test_it_starts_within_one_and_a_half_times_the_plain_start(tmp_path: Path) -> None:
    """A figure for people, not an assertion: the machine may be busy."""

    def seconds(*more: str) -> float:
        began = time.monotonic()
        command = [sys.executable, "-m", "moldau", "up", "--port-offset", str(free_offset()), *more]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        assert any(line.strip() == "ready" for line in process.stdout)
        took = time.monotonic() - began
        process.terminate()
        process.communicate(timeout=120)
        return took

    make_files(tmp_path / "secure", "127.0.0.1", PARTS["broker"].port, ["127.0.0.1"])
    plain = min(seconds("--data-dir", str(tmp_path / f"plain-{one}")) for one in range(2))
    config = ("--config", str(tmp_path / "secure" / UP))
    secured = min(seconds(*config, "--data-dir", str(tmp_path / f"secured-{one}")) for one in range(2))
    print(f"\nplain {plain:.2f} s, secured {secured:.2f} s: {secured / plain:.2f} times")


def test_java_and_spark_snippets(secured: SecuredPlatform, tmp_path: Path) -> None:
    secured.produce("app", "for-spark")
    made = snippets(secured.brokers, "app", secured.password("app"), secured.folder / "ca.pem", secured.url("registry"))
    (tmp_path / "java.properties").write_text(made["java.properties"])
    with started(jars()) as jvm:
        listed = Tools(jvm, secured.brokers)(
            "kafka-topics", "--list", "--command-config", f"{tmp_path}/java.properties"
        )
        assert "for-spark" in listed.lines()
    (events := tmp_path / "events").mkdir()
    code = SPARK.format(made=made["spark.py"], events=events)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    written = "".join(file.read_text(errors="replace") for file in events.rglob("*") if file.is_file())
    assert "SparkListenerApplicationEnd" in written
    for place, text in {"event log": written, "plans": done.stdout, "log": done.stderr}.items():
        assert secured.password("app") not in text, f"the password is in Spark's {place}"


# What each part is asked for, as admin; answers may not have secrets, whatever the question.
PATHS = {
    "registry": ("/subjects", "/config", "/mode", "/contexts", "/metrics"),
    "rest": ("/brokers", "/topics", "/v3/clusters", "/openapi.json", "/metrics"),
    "connect": ("/", "/connectors?expand=info&expand=status", "/connector-plugins", "/admin/loggers", "/metrics"),
    "sql": ("/info", "/status", "/clusterStatus", "/metrics"),
    "console": ("/login", "/", "/topics", "/brokers", "/brokers/1", "/access", "/groups", "/connectors", "/metrics"),
}


def test_no_planted_secret_is_found(secured: SecuredPlatform, tmp_path: Path) -> None:
    """Logs, audit logs, data, metrics, answers over HTTP, settings and process lists have none; Spark: see above."""
    planted = {file.name: secrets_of(file.read_text()) for file in secured.folder.glob("*.properties")}
    assert len(planted) > 8 and all(planted.values())
    all_served(secured)
    planted["mistyped"] = {wrong := f"mistyped-{time.time_ns()}"}
    with secured.http("admin") as web:
        answers = [web.get(secured.url(part) + path) for part, paths in PATHS.items() for path in paths]
    for part in PATHS:
        with secured.http("app", wrong) as web:
            answers.append(web.get(secured.url(part) + PATHS[part][-2], headers={"X-Api-Key": wrong}))
    with secured.kafka("app", sasl_password=wrong, retries="0") as client, pytest.raises(ClientError) as refused:
        client.send(m.MetadataRequest([]))
    with secured.kafka("admin") as client:
        planted["token"] = {tokens.create(client).password}
        resource = m.DescribeConfigsRequest_DescribeConfigsResource(4, "1")
        settings = str(client.send(m.DescribeConfigsRequest([resource])))
    places = {
        "an error": str(refused.value),
        "settings": settings,
        "answers": "".join(f"{answer.url} {answer.headers} {answer.text}" for answer in answers),
        "metrics of a broker": metrics_of(secured, tmp_path),
        "processes": "".join(command_line(one) for one in Path("/proc").iterdir() if one.name.isdigit()),
        "audit logs": "".join(file.read_text() for file in secured.folder.glob("audit*.log")),
        # Logs are among the data.
        **{str(file): file.read_bytes().decode("latin-1") for file in secured.data.rglob("*") if file.is_file()},
    }
    assert "moldau_requests_total" in places["metrics of a broker"] and "SASL_SSL" in places["settings"]
    pairs = [(who, secret) for who, several in planted.items() for secret in several]
    found = {(who, place) for who, secret in pairs for place, text in places.items() if secret in text}
    assert not found, found
    print(f"\n{len(pairs)} secrets are in none of {len(places)} places")


def all_served(secured: SecuredPlatform) -> None:
    for part, paths in PATHS.items():
        if part != "console":
            served(secured, part, paths[0])
    eventually(lambda: answered(secured, "console", "/login", None) == 200, 300)


def secrets_of(text: str) -> set[str]:
    """Return the passwords and keys of a file of settings."""
    pattern = r"(?:password=\"|password=|secret\.key=|user\.info=[\w-]+:|user_\w+=\")([^\s\";]+)"
    return set(re.findall(pattern, text))


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""  # it has just ended


def metrics_of(secured: SecuredPlatform, place: Path) -> str:
    """Return the metrics of another broker with the same settings, after a login that succeeds and one that fails."""
    port, page = free_ports(2)
    broker = Broker({"listeners": f"SASL_SSL://127.0.0.1:{port}"}, str(place / "data"))
    broker.arguments = ("--config", str(secured.folder / "broker.properties"), "--metrics-port", str(page))
    broker.start()
    try:
        for password in ({}, {"sasl.password": "guess"}):
            login = translated(read_file(str(secured.folder / "admin.properties"))) | {"retries": "0", **password}
            with Client(login | {"bootstrap.servers": f"127.0.0.1:{port}"}) as client, suppress(ClientError):
                client.send(m.MetadataRequest([]))
        return httpx.get(f"http://127.0.0.1:{page}/metrics", timeout=120).text
    finally:
        broker.kill()


# What testssl.sh holds against an authority of one's own, whose certificates nobody else can look up.
OWN_AUTHORITY = ("cert_revocation",)
SEVERE = ("MEDIUM", "HIGH", "CRITICAL", "FATAL")


@pytest.mark.needs("testssl")
def test_testssl_finds_nothing_above_low(secured: SecuredPlatform, tmp_path: Path) -> None:
    testssl = find("testssl").path
    assert testssl is not None
    severe: list[str] = []
    all_served(secured)
    for part in ("broker", *PATHS):
        report = tmp_path / f"{part}.json"
        options = ("--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none", "--ip", "127.0.0.1")
        where = ("--add-ca", str(secured.folder / "ca.pem"), "--jsonfile", str(report))
        address = f"localhost:{PARTS[part].port + secured.offset}"
        subprocess.run([str(testssl), *options, *where, address], capture_output=True, timeout=1200)
        rows = json.loads(report.read_text())
        assert any(row["id"] == "TLS1_3" for row in rows), f"{part} was not scanned"
        severe += [
            f"{part}: {row['severity']} {row['id']}: {row['finding']}"
            for row in rows
            if row["severity"] in SEVERE and row["id"] not in OWN_AUTHORITY
        ]
    assert not severe, "\n".join(severe)
