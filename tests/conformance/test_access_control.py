"""Access control and credentials as clients meet them: confluent-kafka, and Kafka's own kafka-acls and kafka-configs.

All clients are User:ANONYMOUS, so here a client is told apart by what it does, not by who it is.
"""
# pyright: reportPrivateImportUsage=false, reportArgumentType=false

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from moldau.testing import Broker, broker
from tests.conformance.java_tools import Tools

WAIT = 120
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ANYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with broker(SETTINGS) as started:
        yield started


@pytest.fixture
def admin(secured: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": secured.bootstrap_servers})


@pytest.fixture
def run(secured: Broker, jvm: subprocess.Popen[str]) -> Tools:
    return Tools(jvm, secured.bootstrap_servers)


def binding(name: str, operation: AclOperation, permission: AclPermissionType = AclPermissionType.ALLOW) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission
    )


def create(admin: AdminClient, *bindings: AclBinding) -> None:
    for future in admin.create_acls(list(bindings)).values():
        future.result(WAIT)


def write(bootstrap: str, topic: str) -> KafkaError | None:
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 10_000})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    producer.flush(WAIT)
    return errors[0]


def test_confluent_kafka_makes_finds_and_removes_entries(admin: AdminClient) -> None:
    made = [binding("found", AclOperation.READ), binding("found", AclOperation.WRITE, AclPermissionType.DENY)]
    create(admin, *made)
    assert set(admin.describe_acls(ANYTHING).result(WAIT)) >= set(made)
    only = AclBindingFilter(
        ResourceType.TOPIC, "found", ResourcePatternType.MATCH, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    assert set(admin.delete_acls([only])[only].result(WAIT)) == set(made)
    assert admin.describe_acls(only).result(WAIT) == []


def test_confluent_kafka_is_refused_what_is_not_allowed(secured: Broker, admin: AdminClient) -> None:
    admin.create_topics([NewTopic("readable", 1, 1)])["readable"].result(WAIT)
    assert write(secured.bootstrap_servers, "readable") is None
    create(admin, binding("readable", AclOperation.READ))
    error = write(secured.bootstrap_servers, "readable")
    assert error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert "readable" in admin.list_topics(timeout=WAIT).topics, "READ brings DESCRIBE with it"
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions("readable", 2)])["readable"].result(WAIT)
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    create(admin, binding("readable", AclOperation.ALL, AclPermissionType.DENY))
    assert "readable" not in admin.list_topics(timeout=WAIT).topics


def test_confluent_kafka_alters_and_describes_scram_credentials(admin: AdminClient) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    futures = admin.alter_user_scram_credentials([UserScramCredentialUpsertion("ada", info, b"secret")])
    futures["ada"].result(WAIT)
    described = admin.describe_user_scram_credentials(["ada"])["ada"].result(WAIT)
    (known,) = described.scram_credential_infos
    assert (known.mechanism, known.iterations) == (ScramMechanism.SCRAM_SHA_256, 8192)
    gone = UserScramCredentialDeletion("ada", ScramMechanism.SCRAM_SHA_256)
    admin.alter_user_scram_credentials([gone])["ada"].result(WAIT)
    with pytest.raises(KafkaException):
        admin.describe_user_scram_credentials(["ada"])["ada"].result(WAIT)


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_kafka_acls_adds_lists_and_removes_entries(run: Tools) -> None:
    producer = ["--producer", "--topic", "orders", "--allow-principal", "User:ada"]
    run("kafka-acls", "--add", *producer)
    run(
        "kafka-acls",
        "--add",
        "--deny-principal",
        "User:eve",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "Read",
        "--group",
        "team-",
        "--resource-pattern-type",
        "prefixed",
    )
    listed = run("kafka-acls", "--list").out
    assert "resourceType=TOPIC, name=orders, patternType=LITERAL" in listed
    for operation in ("WRITE", "DESCRIBE", "CREATE"):
        assert f"(principal=User:ada, host=*, operation={operation}, permissionType=ALLOW)" in listed
    assert "resourceType=GROUP, name=team-, patternType=PREFIXED" in listed
    assert "(principal=User:eve, host=10.0.0.1, operation=READ, permissionType=DENY)" in listed
    run("kafka-acls", "--remove", "--force", *producer)
    run("kafka-acls", "--remove", "--force", "--group", "team-", "--resource-pattern-type", "prefixed")
    left = run("kafka-acls", "--list").out
    assert "orders" not in left and "team-" not in left


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_kafka_configs_keeps_scram_credentials_of_users(run: Tools) -> None:
    user = ["--entity-type", "users", "--entity-name", "grace"]
    run("kafka-configs", "--alter", *user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret]")
    described = run("kafka-configs", "--describe", *user).out
    assert "SCRAM credential configs for user-principal 'grace' are SCRAM-SHA-512=iterations=8192" in described
    run("kafka-configs", "--alter", *user, "--delete-config", "SCRAM-SHA-512")
    assert "SCRAM-SHA-512" not in run("kafka-configs", "--describe", *user).out


@pytest.mark.needs("java", "javac", "kafka-jars")
def test_kafka_configs_is_refused_without_the_cluster(run: Tools, admin: AdminClient) -> None:
    cluster = ["--cluster", "--deny-principal", "User:ANONYMOUS", "--operation", "DescribeConfigs"]
    keep = ["--cluster", "--allow-principal", "User:ANONYMOUS", "--operation", "Alter"]
    run("kafka-acls", "--add", *keep)
    run("kafka-acls", "--add", *cluster)
    try:
        refused = run("kafka-configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", check=False)
        assert refused.exit != 0 and "ClusterAuthorizationException" in refused.out + refused.err
    finally:
        run("kafka-acls", "--remove", "--force", "--cluster")
