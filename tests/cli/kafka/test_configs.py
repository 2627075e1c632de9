"""kafka-configs and kafka-acls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.cli.kafka.configs import TOOL as CONFIGS
from moldau.cli.kafka.configs import added, entity_names
from moldau.cli.kafka.flags import read
from moldau.testing import broker
from tests.cli.kafka.running import Kafka, run


def test_topic_settings_are_set_shown_and_taken_back(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    entity = ("--entity-type", "topics", "--entity-name", name)
    done = kafka_tools.ok(
        "kafka-configs", "--alter", *entity, "--add-config", "segment.ms=60000,cleanup.policy=[compact,delete]"
    )
    assert done == [f"Completed updating config for topic {name}."]
    assert kafka_tools.ok("kafka-configs", "--describe", *entity) == [
        f"Dynamic configs for topic {name} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  segment.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=60000}",
    ]
    kafka_tools.ok("kafka-configs", "--alter", "--topic", name, "--delete-config", "segment.ms,cleanup.policy")
    assert len(kafka_tools.ok("kafka-configs", "--describe", "--topic", name)) == 1
    assert len(kafka_tools.ok("kafka-configs", "--describe", "--topic", name, "--all")) > 30


def test_quotas_are_numbers_of_java(kafka_tools: Kafka, name: str) -> None:
    words = ("--entity-type", "users", "--entity-name", name, "--entity-type", "clients", "--entity-default")
    kafka_tools.ok("kafka-configs", "--alter", *words, "--add-config", "producer_byte_rate=1e10")
    shown = kafka_tools.ok("kafka-configs", "--describe", *words)
    who = f"user-principal '{name}', the default client-id"
    assert shown == [f"Quota configs for {who} are producer_byte_rate=1.0E10"]
    kafka_tools.ok("kafka-configs", "--alter", *words, "--delete-config", "producer_byte_rate")
    assert kafka_tools.ok("kafka-configs", "--describe", *words) == []


def test_credentials_are_made_and_taken_away(kafka_tools: Kafka, name: str) -> None:
    new = "SCRAM-SHA-512=[iterations=8192,password=secret]"
    kafka_tools.ok("kafka-configs", "--alter", "--user", name, "--add-config", new)
    shown = kafka_tools.ok("kafka-configs", "--describe", "--user", name)
    assert shown == [f"SCRAM credential configs for user-principal '{name}' are SCRAM-SHA-512=iterations=8192"]
    kafka_tools.ok("kafka-configs", "--alter", "--user", name, "--delete-config", "SCRAM-SHA-512")


def test_what_is_not_there_is_said_not_to_be(kafka_tools: Kafka) -> None:
    assert kafka_tools.ok("kafka-configs", "--describe", "--topic", "nowhere") == [
        "The topic 'nowhere' doesn't exist and doesn't have dynamic config."
    ]
    done = kafka_tools("kafka-configs", "--alter", "--topic", "nowhere", "--add-config", "segment.ms=1")
    assert done.code == 1 and done.err.startswith("Error while executing config command with args '")
    assert "UnknownTopicOrPartitionException" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Command must include exactly one action: --describe, --alter"),
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "foo"], "Invalid entity type foo, the entity type must be one of topics"),
        (
            ["--describe", "--broker", "x"],
            "The entity name for brokers must be a valid integer broker id, but it is: x",
        ),
        (["--alter", "--topic", "x"], "At least one of --add-config, --add-config-file, or --delete-config must be"),
        (["--alter", "--topic", "x", "--add-config", "a"], "requirement failed: Invalid entity config: all configs"),
        (["--alter", "--client", "x", "--add-config", "a=1"], "Only quota configs can be added for 'clients'"),
        (
            ["--describe", "--entity-type", "topics", "--entity-type", "users"],
            "Only 'users' and 'clients' entity types",
        ),
    ],
)
def test_mistakes_are_told_in_a_line(kafka_tools: Kafka, words: list[str], said: str) -> None:
    done = kafka_tools("kafka-configs", *words)
    assert done.code == 1 and done.err.startswith(said)


def test_brackets_keep_commas_together() -> None:
    line = ["--alter", "--add-config", "a=1,b=[x,y], c = 3,d="]
    assert added(read(CONFIGS, line)) == {"a": "1", "b": "x,y", "c": "3", "d": ""}


def test_names_and_defaults_keep_their_order() -> None:
    line = ["--entity-type", "users", "--entity-default", "--entity-type", "clients", "--entity-name", "c"]
    assert entity_names(read(CONFIGS, line)) == ["", "c"]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Kafka]:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with broker(settings) as started:
        yield Kafka(started.bootstrap_servers)


def entry(who: str, operation: str, host: str = "*") -> str:
    return f"(principal=User:{who}, host={host}, operation={operation}, permissionType=ALLOW)"


def test_rules_are_added_listed_and_removed(guarded: Kafka) -> None:
    pattern = "ResourcePattern(resourceType=TOPIC, name=x, patternType=LITERAL)"
    words = ("--allow-principal", "User:a", "--topic", "x", "--operation", "Read")
    assert guarded("kafka-acls", "--add", *words).out == (
        f"Adding ACLs for resource `{pattern}`: \n \t{entry('a', 'READ')}\n\n"
    )
    listing = f"Current ACLs for resource `{pattern}`:\n\t{entry('a', 'READ')}\n\n"
    assert guarded("kafka-acls", "--list", "--topic", "x").out == listing
    assert guarded("kafka-acls", "--list", "--principal", "User:a").out == f"ACLs for principal `User:a`\n{listing}"
    kept = guarded("kafka-acls", "--remove", *words, stdin="n\n")
    assert kept.code == 0 and kept.out.endswith(f"from resource filter `{pattern}`? (y/n)\n")
    assert guarded("kafka-acls", "--list", "--topic", "x").out == listing
    assert guarded("kafka-acls", "--remove", *words, "--force") == (0, "", "")
    assert guarded("kafka-acls", "--list", "--topic", "x").out == ""


def test_roles_stand_for_several_rules(guarded: Kafka) -> None:
    role = ("--producer", "--allow-principal", "User:p", "--topic", "t", "--transactional-id", "i", "--idempotent")
    guarded.ok("kafka-acls", "--add", *role)
    guarded.ok("kafka-acls", "--add", "--consumer", "--allow-principal", "User:c", "--topic", "t", "--group", "g")
    lines = {line.strip() for line in guarded.ok("kafka-acls", "--list")}
    expected = [("p", "WRITE"), ("p", "DESCRIBE"), ("p", "CREATE"), ("p", "IDEMPOTENT_WRITE"), ("c", "READ")]
    assert {entry(*pair) for pair in expected} <= lines


@pytest.mark.parametrize(
    ("words", "out", "err"),
    [
        (
            ["--add", "--topic", "x", "--allow-principal", "a"],
            "Error while executing ACL command: expected a string",
            "",
        ),
        (["--add", "--topic", "x"], "", "You must specify one of: --allow-principal, --deny-principal when trying"),
        (["--add", "--allow-principal", "User:a"], "", "You must provide at least one resource: --topic <topic>"),
        (["--add", "--consumer", "--topic", "x"], "", "With --consumer you must specify a --topic and a --group"),
        ([], "", "Command must include exactly one action: --list, --add, --remove. "),
    ],
)
def test_rules_that_make_no_sense_are_refused(guarded: Kafka, words: list[str], out: str, err: str) -> None:
    done = guarded("kafka-acls", *words)
    assert done.code == 1 and done.out.startswith(out) and done.err.startswith(err)


def test_a_broker_without_an_authorizer_says_so(kafka_tools: Kafka) -> None:
    done = kafka_tools("kafka-acls", "--list")
    assert done.code == 1
    assert "org.apache.kafka.common.errors.SecurityDisabledException" in done.out
    assert run("kafka-acls", "--list").err.startswith("One of --bootstrap-server or --bootstrap-controller must be")
