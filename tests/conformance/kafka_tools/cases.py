"""The command lines that are compared.

A row is a tool, a line of words, and how its output may differ. In words and input `{topic}` is a topic of three
partitions with thirty records, `{group}` has offsets of it, `{classic}` and `{new}` have a member each, `{txn}` is a
transactional id, `{share}` a share group, `{files}` a folder of JSON files; `{own}` is a name of the side's own, for
what changes something.
"""

from __future__ import annotations

from dataclasses import dataclass

# How output is made alike before it is compared.
SORTED = "SORTED"  # the lines come in any order
NUMBERS = "NUMBERS"  # some depend on the clock


@dataclass(frozen=True, slots=True)
class Case:
    """A command line. `quick` ones are also part of `make test`."""

    tool: str
    words: str
    stdin: str = ""
    how: str = ""
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.tool} {self.words}"


def _rows(tool: str, text: str, quick: str = "") -> list[Case]:
    """A case a line; `# reason` behind it says how the output is compared."""
    found = []
    for line in text.strip().splitlines():
        words, _, how = line.strip().partition("  # ")
        found.append(Case(tool, words.strip(), how=how.strip(), quick=bool(quick) and quick in words))
    return found


READER = "--partition 0 --offset earliest --timeout-ms 9000"
SHOWN = " ".join(f"--formatter-property print.{what}=true" for what in ("key", "headers", "offset", "timestamp"))
LONG = "org.apache.kafka.common.serialization.LongDeserializer"
INTERNAL = "--topic __consumer_offsets --partition {coordinator} --offset earliest --timeout-ms 1500 --formatter "
INTERNAL += "org.apache.kafka.tools.consumer"

CASES: list[Case] = [
    *_rows(
        "kafka-topics",
        """
        --create --topic {own} --partitions 3 --config retention.ms=100000 --config cleanup.policy=compact
        --create --topic {own}
        --create --topic {own} --if-not-exists
        --alter --topic {own} --partitions 5
        --alter --topic {own} --partitions 2
        --delete --topic {own}
        --create --topic a_{own}
        --describe --topic {topic}
        --describe --topic {topic} --at-min-isr-partitions
        --describe --topic {topic} --under-replicated-partitions
        --describe --topic {topic} --topics-with-overrides
        --describe --topic nowhere
        --describe --topic nowhere --if-exists
        --list --topic {topic} --exclude-internal
        --create --topic bad:name
        --create --topic x --config foo=bar
        --create --topic x --config retention.ms=abc
        --create --topic x --config retention.ms
        --create --topic x --partitions 0
        --create --topic x --partitions abc
        --create --topic x --replica-assignment 1:1
        --create --topic x --replica-assignment 1 --partitions 2
        --delete --topic nowhere
        --list --if-exists
        --list --nothing
        --create
        """,
        quick="--describe --topic {topic}",
    ),
    Case("kafka-console-producer", "--topic {topic}-{own}", "plain\nlines\n"),
    Case("kafka-console-producer", "--topic {topic}-{own} --reader-property parse.key=true", "nokey\n"),
    Case("kafka-console-producer", "--topic {topic}-{own} --property parse.key=true", "k\tv\n"),
    Case("kafka-console-producer", "--topic {topic}-{own} --sync --compression-codec zstd", "last", quick=True),
    Case("kafka-console-consumer", f"--topic {{topic}}-{{own}} {READER} --max-messages 4"),
    Case("kafka-console-consumer", f"--topic {{topic}} {READER} --max-messages 5 {SHOWN}", quick=True),
    Case("kafka-console-consumer", f"--topic {{topic}} {READER} --max-messages 2 --property print.value=false"),
    Case("kafka-console-consumer", f"--topic {{topic}} {READER} --max-messages 1 --value-deserializer {LONG}"),
    Case("kafka-console-consumer", f"{INTERNAL}.OffsetsMessageFormatter"),
    Case("kafka-console-consumer", f"{INTERNAL}.GroupMetadataMessageFormatter"),
    *_rows(
        "kafka-console-consumer",
        """
        --topic {topic} --partition 0 --offset 8 --timeout-ms 1200
        --topic {topic} --offset 3
        --topic {topic} --partition 0 --group x
        --topic x --group a --command-property group.id=b
        """,
    ),
    *_rows(
        "kafka-consumer-groups",
        """
        --list  # SORTED
        --list --state  # SORTED
        --list --type --state  # SORTED
        --list --state stable  # SORTED
        --describe --group {group}
        --describe --group {group} --verbose
        --describe --group {group} --members
        --describe --group {group} --members --verbose
        --describe --group {group} --state
        --describe --group {group} --state --verbose
        --describe --group {classic}
        --describe --group {classic} --members
        --describe --group {classic} --members --verbose
        --describe --group {classic} --state --verbose
        --describe --group {new}
        --describe --group {new} --members --verbose
        --describe --group {new} --state --verbose
        --describe --group nowhere
        --reset-offsets --group {group} --to-earliest --all-topics
        --reset-offsets --group {group} --to-latest --topic {topic} --dry-run
        --reset-offsets --group {group} --to-offset 100 --topic {topic}:1,2 --dry-run
        --reset-offsets --group {group} --shift-by -1 --topic {topic} --dry-run
        --reset-offsets --group {group} --to-current --topic {topic} --dry-run
        --reset-offsets --group {group} --to-datetime 2023-11-14T22:20:00.000 --topic {topic} --dry-run
        --reset-offsets --group {group} --by-duration PT1H --topic {topic} --dry-run
        --reset-offsets --group {group} --to-earliest --topic {topic} --dry-run --export
        --reset-offsets --group {group} --to-datetime yesterday --topic {topic} --dry-run
        --reset-offsets --group {group} --to-earliest --topic nowhere --dry-run
        --reset-offsets --group {classic} --to-earliest --topic {topic} --dry-run
        --reset-offsets --group {own} --to-earliest --topic {topic} --execute
        --delete-offsets --group {own} --topic {topic}:2
        --delete-offsets --group {group} --topic nowhere
        --delete-offsets --group {classic} --topic {topic}
        --delete --group {own}
        --delete --group {classic}
        --delete --group nowhere
        """,
        quick="--members --verbose",
    ),
    *_rows(
        "kafka-groups",
        "--list  # SORTED\n--list --consumer  # SORTED\n--list --share  # SORTED\n--list --foo",
        "--share",
    ),
    *_rows(
        "kafka-configs",
        """
        --alter --topic {topic} --add-config max.message.bytes=2000000,cleanup.policy=[compact,delete]
        --describe --topic {topic}
        --describe --topic {topic} --all
        --alter --topic {topic} --delete-config max.message.bytes,cleanup.policy
        --alter --topic {topic} --add-config foo
        --describe --topic nowhere
        --describe --entity-type brokers
        --alter --entity-type clients --entity-name {own} --add-config producer_byte_rate=1000,consumer_byte_rate=2048.5
        --describe --entity-type clients --entity-name {own}
        --alter --client {own} --delete-config producer_byte_rate,consumer_byte_rate
        --alter --client {own} --delete-config foo
        --alter --user {own} --add-config SCRAM-SHA-256=[iterations=8192,password=x]
        --describe --user {own}
        --alter --user {own} --delete-config SCRAM-SHA-256
        --alter --group {own} --add-config consumer.session.timeout.ms=50000
        --describe --group {own}
        --alter --group {own} --delete-config consumer.session.timeout.ms
        --describe
        --describe --entity-type foo
        --alter --topic x
        """,
        quick="{topic} --add-config max",
    ),
    *_rows(
        "kafka-get-offsets",
        """
        --topic {topic}
        --topic {topic} --time earliest
        --topic {topic} --time max-timestamp
        --topic {topic} --time 1700000300000
        --topic-partitions {topic}:0-2
        --topic nowhere
        --topic x --time a
        """,
        quick="0-2",
    ),
    *_rows(
        "kafka-delete-records",
        "--offset-json-file {files}/delete.json\n--offset-json-file {files}/broken.json\n--offset-json-file {files}/no",
        quick="delete.json",
    ),
    *_rows(
        "kafka-log-dirs", "--describe --topic-list {topic}\n--describe --broker-list 77\n--foo", quick="--topic-list"
    ),
    *_rows(
        "kafka-leader-election",
        """
        --election-type preferred --topic {topic} --partition 0
        --election-type preferred --path-to-json-file {files}/elect.json
        --election-type preferred
        """,
        quick="--partition 0",
    ),
    *_rows(
        "kafka-reassign-partitions",
        """
        --list
        --execute --reassignment-json-file {files}/plan.json
        --verify --reassignment-json-file {files}/plan.json
        --cancel --reassignment-json-file {files}/plan.json
        --generate --topics-to-move-json-file {files}/topics.json --broker-list {broker}
        --list --broker-list 1
        """,
        quick="--execute",
    ),
    *_rows(
        "kafka-transactions",
        """
        list  # SORTED
        describe --transactional-id {txn}  # NUMBERS
        describe --transactional-id nowhere
        describe-producers --topic {topic} --partition 0
        find-hanging --topic {topic}
        abort --topic {topic} --partition 0 --start-offset 99
        list --foo
        """,
        quick="describe-producers",
    ),
    *_rows(
        "kafka-features",
        """
        describe  # NUMBERS
        version-mapping
        version-mapping --release-version 3.9
        feature-dependencies --feature eligible.leader.replicas.version=1
        upgrade --feature x
        upgrade
        """,
        quick="describe",
    ),
    *_rows(
        "kafka-metadata-quorum",
        """
        describe --status  # NUMBERS
        describe --replication  # NUMBERS
        describe
        add-controller
        remove-controller
        remove-controller --controller-id 7
        remove-controller --controller-id x --controller-directory-id y
        remove-controller --controller-id -7 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAA
        remove-controller --controller-id 7 --controller-directory-id D_Yv4gHZQYyTVbTyjWSmFA --dry-run
        """,
        quick="--replication",
    ),
    *_rows(
        "kafka-cluster",
        """
        cluster-id
        list-endpoints
        list-endpoints --include-fenced-brokers
        unregister --id 77
        """,
        quick="list-endpoints",
    ),
    *_rows(
        "kafka-share-groups",
        """
        --list  # SORTED
        --reset-offsets --group {own} --topic {topic} --to-earliest --execute
        --describe --group {own}
        --describe --group {own} --verbose
        --describe --group {own} --state --verbose
        --describe --group {own} --members
        --describe --group nowhere
        --delete --group {own}
        """,
        quick="{own} --verbose",
    ),
    Case("kafka-broker-api-versions", "", how=SORTED, quick=True),
    *_rows(
        "kafka-streams-application-reset",
        """
        --application-id {own} --dry-run
        --application-id {own} --input-topics {topic},nowhere --dry-run
        --application-id {own} --input-topics {topic} --to-latest
        """,
        quick="nowhere",
    ),
]
