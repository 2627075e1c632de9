"""`moldau secure`: a secured broker from one command, its certificate renewed while it runs, and what `check` finds."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from moldau.admin.weaknesses import SERVICES_OF_HTTP, find_in_brokers, find_service_weaknesses, find_weaknesses
from moldau.cli.console import folder_of
from moldau.cli.secured_files import make_files, rotate
from moldau.client import Client, ClientError
from moldau.client.java_settings import read_file, translated
from moldau.settings import Settings, read_properties
from moldau.testing.ports import free_port
from moldau.testing.process import Broker
from moldau.tls.stores import read_store
from moldau.wire import messages as m
from tests.cli.running import Moldau


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "secure"
    port = free_port()
    make_files(folder, "127.0.0.1", port, ["127.0.0.1", "localhost"])
    return folder


@pytest.fixture(scope="module")
def broker(made: Path) -> Iterator[Broker]:
    running = Broker(read_properties(str(made / "broker.properties")))
    running.start()
    yield running
    running.close()


def cluster_id(settings: dict[str, str]) -> str:
    with Client(settings) as client:
        return client.send(m.DescribeClusterRequest(), timeout_s=30).cluster_id


def test_only_their_owner_reads_the_files(made: Path) -> None:
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in made.iterdir()} == {0o600}


def test_parts_that_write_schemas_can_log_in_to_the_registry(made: Path) -> None:
    users = (made / "users").read_text()
    for part, prefix in {"rest": "", "sql": "ksql.", "worker": ""}.items():
        given = read_properties(str(made / f"{part}.properties"))[f"{prefix}schema.registry.basic.auth.user.info"]
        assert given.startswith(f"{part}:") and f"\n{part}:" in f"\n{users}"


def test_the_administrator_comes_in_and_nobody_else(made: Path, broker: Broker) -> None:
    settings = translated(read_file(str(made / "admin.properties")))
    assert cluster_id(settings)
    for change in ({"sasl.password": "guess"}, {"security.protocol": "plaintext"}, {"security.protocol": "ssl"}):
        with pytest.raises(ClientError):
            cluster_id({**settings, **change, "retries": "0", "socket.connection.setup.timeout.ms": "5000"})


def test_a_certificate_is_renewed_while_the_broker_runs(made: Path, broker: Broker) -> None:
    settings = translated(read_file(str(made / "admin.properties")))
    with Client(settings) as client:
        client.send(m.MetadataRequest([]))
        before = serial(made)
        rotate(made)
        assert serial(made) != before
        client.send(m.MetadataRequest([]))
    assert cluster_id(settings)
    assert "stores of a listener were loaded again" in broker.log


def serial(made: Path) -> int:
    return read_store(str(made / "broker.pem")).identities[0].certificate.serial_number


def test_the_authority_signs_hosts_and_no_authorities(made: Path) -> None:
    (one,) = read_store(str(made / "broker.pem")).identities
    (authority,) = read_store(str(made / "ca.pem")).certificates
    one.certificate.verify_directly_issued_by(authority)
    assert not one.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0


def test_what_was_made_has_no_weakness(made: Path) -> None:
    file = made / "broker.properties"
    assert list(find_weaknesses(Settings.load(read_properties(str(file))), file)) == []


def weaknesses(**given: str) -> set[str]:
    settings = Settings.load({name.replace("_", "."): value for name, value in given.items()})
    return {what for _, what, _ in find_weaknesses(settings)}


def test_open_doors_are_found(made: Path) -> None:
    assert {"nobody authenticates", "everybody may do everything"} <= weaknesses()
    assert any("anybody on the way" in what for what in weaknesses(listeners="SASL_PLAINTEXT://:9092"))
    assert "it has no certificate" in weaknesses(listeners="SSL://:9092")
    assert "clients need no certificate" in weaknesses(listeners="SSL://:9092")
    line = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="bob";'
    short = weaknesses(listeners="SASL_SSL://:1", sasl_enabled_mechanisms="PLAIN", sasl_jaas_config=line)
    assert "the password of bob is short" in short
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    found = weaknesses(super_users="User:ANONYMOUS", authorizer_class_name=authorizer)
    assert "who has not authenticated may do everything" in found


def test_brokers_say_which_doors_are_open(made: Path, broker: Broker, kafka_shared: Broker) -> None:
    with Client(translated(read_file(str(made / "admin.properties")))) as client:
        assert find_in_brokers(client) == {}
    with Client({"bootstrap.servers": kafka_shared.bootstrap_servers}) as client:
        found = find_in_brokers(client)
    assert {"nobody authenticates", "everybody may do everything"} <= {what for _, what, _ in found}
    assert len({tuple(brokers) for brokers in found.values()}) == 1


def test_a_console_with_settings_of_the_folder_checks_the_folder(made: Path, tmp_path: Path) -> None:
    assert folder_of(str(made / "console.properties")) == made.resolve()
    assert folder_of(str(tmp_path / "console.properties")) is None and folder_of(None) is None


def test_open_doors_of_services_are_found(made: Path, tmp_path: Path) -> None:
    for part in SERVICES_OF_HTTP:
        file = made / f"{part}.properties"
        assert list(find_service_weaknesses(part, read_properties(str(file)), file)) == []
    file, users = tmp_path / "rest.properties", tmp_path / "users"
    file.write_text("")
    users.write_text("ada: plain,admin\nbob: !,viewer\n")
    file.chmod(0o644)
    users.chmod(0o600)
    found = {what for _, what, _ in find_service_weaknesses("rest", {"authentication.users.file": str(users)}, file)}
    assert "anybody may use it" in found and any("speaks HTTP" in what for what in found)
    assert any("others can read" in what for what in found)
    assert [what for what in found if "scrypt" in what] == ["the password of ada is not hashed with scrypt"]
    broken = {"ssl.keystore.location": str(users), "authentication.method": "BASIC"}
    assert any(
        "cannot be used" in what for _, what, _ in find_service_weaknesses("rest", broken, made / "rest.properties")
    )


def test_the_command_makes_files_once(tmp_path: Path, moldau: Moldau) -> None:
    folder = tmp_path / "secure"
    assert moldau.json("secure", "init", str(folder), "--port", "19093")["changed"] is True
    before = (folder / "broker.properties").read_bytes()
    assert moldau.json("secure", "init", str(folder))["changed"] is False
    assert (folder / "broker.properties").read_bytes() == before
    assert moldau.json("secure", "check", str(folder / "broker.properties")) == []
    assert moldau.json("secure", "check", str(folder)) == []
    assert moldau.json("secure", "rotate", str(folder))["until"]
    shown = moldau.json("profile", "show", "secure")
    assert (shown["bootstrap_servers"], shown["settings"]["sasl.password"]) == ("127.0.0.1:19093", "***")
