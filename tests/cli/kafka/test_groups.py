"""kafka-consumer-groups, kafka-groups and kafka-share-groups."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cli.kafka.running import Kafka, run


@pytest.fixture
def group(kafka_tools: Kafka, name: str) -> str:
    """A group of the topic's name, with offsets 1 and 2 in its two partitions of three records each."""
    kafka_tools.topic(name, 2)
    for _ in range(3):
        for partition in range(2):
            producer_line(kafka_tools, name, partition)
    consumer = Consumer({"bootstrap.servers": kafka_tools.servers, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 1), TopicPartition(name, 1, 2)], asynchronous=False)
    consumer.close()
    return name


def producer_line(kafka_tools: Kafka, topic: str, partition: int) -> None:
    from moldau.client import Client, Record, build, produce

    with Client({"bootstrap.servers": kafka_tools.servers}) as client:
        produce(client, topic, partition, build([Record(timestamp=1_700_000_000_000, value=b"x")]))


def test_offsets_and_lag_are_shown_in_columns(kafka_tools: Kafka, group: str) -> None:
    done = kafka_tools("kafka-consumer-groups", "--describe", "--group", group)
    columns = (
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
    )
    wide = f"{group:<15} {group:<15} "
    assert done.out == (
        f"\n{columns}HOST            CLIENT-ID\n"
        f"{wide}0          1               3               2               -               -               -\n"
        f"{wide}1          2               3               1               -               -               -\n"
    )
    assert done.err == f"\nConsumer group '{group}' has no active members.\n"
    head = kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", group, "--verbose")[1]
    assert head.split()[3] == "LEADER-EPOCH"


def test_members_and_states_have_tables_of_their_own(kafka_tools: Kafka, group: str) -> None:
    lines = kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", group, "--members")
    assert lines[1].split() == ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    state = kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", group, "--state")
    assert state[2].split()[0] == group and state[2].split()[-2:] == ["Empty", "0"]
    listed = kafka_tools.ok("kafka-consumer-groups", "--list", "--state", "empty", "--type")
    assert [group, "Classic", "Empty"] in [line.split() for line in listed]
    assert group in kafka_tools.ok("kafka-consumer-groups", "--list")
    assert [group, "Classic"] in [line.split() for line in kafka_tools.ok("kafka-groups", "--list")]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (["--to-earliest"], [0, 0]),
        (["--to-latest"], [3, 3]),
        (["--to-current"], [1, 2]),
        (["--to-offset", "9"], [3, 3]),
        (["--shift-by", "1"], [2, 3]),
        (["--to-datetime", "2023-11-14T22:00:00.000"], [0, 0]),
        (["--to-datetime", "2023-11-14T23:30:00.000+01:00"], [3, 3]),
        (["--by-duration", "PT1H"], [3, 3]),
    ],
)
def test_new_offsets_are_shown_and_then_set(
    kafka_tools: Kafka, group: str, how: list[str], expected: list[int]
) -> None:
    words = ("kafka-consumer-groups", "--reset-offsets", "--group", group, *how, "--topic", group)
    rows = [line.split() for line in kafka_tools.ok(*words, "--dry-run") if line.startswith(group)]
    assert sorted(rows) == [[group, group, str(part), str(offset)] for part, offset in enumerate(expected)]
    kafka_tools.ok(*words, "--execute")
    shown = kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", group)[2:]
    assert [int(line.split()[3]) for line in shown] == expected


def test_offsets_are_exported_and_read_back(
    kafka_tools: Kafka, group: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    words = ("kafka-consumer-groups", "--reset-offsets", "--group", group)
    out = kafka_tools(*words, "--to-earliest", "--topic", f"{group}:1", "--dry-run", "--export").out
    assert out == f"{group},1,0\n\n"
    file = tmp_path_factory.mktemp("plan") / "plan.csv"
    file.write_text(f"{group},0,3\n{group},1,3\n")
    kafka_tools.ok(*words, "--from-file", str(file), "--execute")
    assert "3" in kafka_tools.ok("kafka-consumer-groups", "--describe", "--group", group)[2].split()


def test_offsets_and_groups_are_deleted(kafka_tools: Kafka, group: str) -> None:
    lines = kafka_tools.ok("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{group}:1")
    assert lines[0] == f"Request succeeded for deleting offsets from group {group}."
    assert lines[3].split() == [group, "1", "Successful"]
    done = kafka_tools.ok("kafka-consumer-groups", "--delete", "--group", group)
    assert done == [f"Deletion of requested consumer groups ('{group}') was successful."]
    again = kafka_tools.ok("kafka-consumer-groups", "--delete", "--group", group)
    assert again[1:] == [
        "Error: Deletion of some consumer groups failed:",
        f"* Group '{group}' could not be deleted due to: org.apache.kafka.common.errors.GroupIdNotFoundException: "
        "The group id does not exist.",
    ]


def test_what_fails_is_told_and_ends_well_as_in_kafka(kafka_tools: Kafka, group: str) -> None:
    done = kafka_tools("kafka-consumer-groups", "--describe", "--group", "nowhere")
    assert done.code == 0 and "GroupIdNotFoundException" in done.out and "ExecutionException" in done.err
    late = kafka_tools("kafka-consumer-groups", "--reset-offsets", "--group", group, "--to-datetime", "noon",
                       "--topic", group, "--dry-run")  # fmt: skip
    assert late.code == 0 and "It does not contain a 'T' according to ISO8601 format" in late.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--describe"], "Option [describe] takes one of these options: [all-groups], [group]"),
        (["--list", "--state", "foo"], "Invalid state list 'foo'. Valid states are: "),
        (
            ["--reset-offsets", "--group", "g", "--to-latest", "--to-earliest", "--dry-run"],
            'Option "[to-earliest]" can',
        ),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options on the command line"),
        (
            [],
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets",
        ),
    ],
)
def test_flags_that_do_not_go_together_are_refused(kafka_tools: Kafka, words: list[str], said: str) -> None:
    done = kafka_tools("kafka-consumer-groups", *words)
    assert done.code == 1 and done.err.startswith(said)


def test_a_regular_expression_is_judged() -> None:
    assert run("kafka-consumer-groups", "--validate-regex", "a.b").out == "The regular expression `a.b` is valid.\n"
    assert "is invalid" in run("kafka-consumer-groups", "--validate-regex", "a(b").out


def test_a_share_group_begins_is_shown_and_goes(kafka_tools: Kafka, name: str) -> None:
    kafka_tools.topic(name)
    own = f"{name}-s"
    reset = ("--reset-offsets", "--group", own, "--topic", name, "--to-earliest", "--execute")
    assert kafka_tools.ok("kafka-share-groups", *reset)[2].split() == [own, name, "0", "0"]
    assert own in kafka_tools.ok("kafka-share-groups", "--list")
    assert kafka_tools.ok("kafka-share-groups", "--describe", "--group", own)[2].split()[:4] == [own, name, "0", "0"]
    state = kafka_tools.ok("kafka-share-groups", "--describe", "--group", own, "--state")
    assert state[1].split() == ["GROUP", "COORDINATOR", "(ID)", "STATE", "#MEMBERS"]
    gone = kafka_tools.ok("kafka-share-groups", "--delete", "--group", own)
    assert gone == [f"Deletion of requested share groups ('{own}') was successful."]
    bad = kafka_tools.ok("kafka-share-groups", "--delete", "--group", own)
    assert bad[2].endswith(f"java.lang.IllegalArgumentException: Group '{own}' is not a share group.")
