"""kafka-transactions: lists, describes and aborts transactions, and finds those that hang."""

from __future__ import annotations

import time
from collections.abc import Callable

from moldau.admin import TopicPartition, topics, transactions
from moldau.admin.transactions import Producer
from moldau.cli.kafka.exceptions import words_of
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.java_text import table
from moldau.cli.kafka.running import OK, Terse, connect
from moldau.cli.kafka.subcommands import Command, ParsedTool
from moldau.client import Client, ClientError, Error, transaction

LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = ("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState")
DESCRIBED += ("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions")
PRODUCERS = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
PRODUCERS += ("CurrentTransactionStartOffset",)
HANGING = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp")
HANGING += ("Duration(min)",)
MINUTE_MS = 60_000


def failure(what: str, error: ClientError) -> Terse:
    return Terse(f"{what}: {words_of(error)}. Enable debug logging for additional detail.")


def command(do: Callable[[Client, Options], None]) -> Callable[[Options], int]:
    """Make a subcommand that connects to a cluster."""

    def run(options: Options) -> int:
        with connect(options) as client:
            do(client, options)
        return OK

    return run


def now_ms() -> int:
    return int(time.time() * 1000)


def list_all(client: Client, options: Options) -> None:
    duration = options["duration-filter"]
    pattern = options["transactional-id-pattern"]
    try:
        found = transactions.listed(client, duration_ms=-1 if duration is None else duration, pattern=pattern)
    except ClientError as error:
        raise failure("Failed to list transactions", error) from None
    ordered = sorted(found, key=lambda one: one.coordinator)
    print(table(LISTED, [(one.id, one.coordinator, one.producer_id, one.state) for one in ordered]))


def describe(client: Client, options: Options) -> None:
    name = options["transactional-id"]
    try:
        one = transactions.described(client, name)
    except ClientError as error:
        if error.error is Error.TRANSACTIONAL_ID_NOT_FOUND:
            why = f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not be found"
            error = ClientError(Error.UNKNOWN_SERVER_ERROR, why)
        raise failure(f"Failed to describe transaction state of transactional-id `{name}`", error) from None
    address = client.locate(transaction(name), client.deadline())
    brokers = client.refresh().brokers.values()
    coordinator = next((broker.id for broker in brokers if broker.address == address), -1)
    times = (one.start_ms, now_ms() - one.start_ms) if one.start_ms >= 0 else ("None", "None")
    places = ",".join(f"{topic}-{partition}" for topic, partition in one.partitions)
    row = (coordinator, name, one.producer_id, one.producer_epoch, one.state, one.timeout_ms, *times, places)
    print(table(DESCRIBED, [row]))


def describe_producers(client: Client, options: Options) -> None:
    place = (options["topic"], options["partition"])
    try:
        found = transactions.producers(client, place)
    except ClientError as error:
        who = f"broker {options['broker-id']}" if "broker-id" in options else "leader"
        raise failure(f"Failed to describe producers for partition {place[0]}-{place[1]} on {who}", error) from None
    print(table(PRODUCERS, [producer_row(one) for one in found]))


def producer_row(one: Producer) -> tuple[object, ...]:
    start = one.start_offset if one.start_offset >= 0 else "None"
    return one.id, one.epoch, one.coordinator_epoch, one.last_sequence, one.last_timestamp_ms, start


def abort(client: Client, options: Options) -> None:
    place = (options["topic"], options["partition"])
    if options["start-offset"] is None and options["producer-id"] is None:
        raise Terse(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    one = named(options) if options["start-offset"] is None else started(client, place, options["start-offset"])
    try:
        transactions.abort(client, place, one)
    except ClientError as error:
        raise failure(f"Failed to abort transaction of producer {one.id} in {place[0]}-{place[1]}", error) from None


def named(options: Options) -> Producer:
    for flag in ("producer-epoch", "coordinator-epoch"):
        if options[flag] is None:
            raise Terse(f"Missing required argument --{flag}")
    return Producer(options["producer-id"], options["producer-epoch"], -1, -1, options["coordinator-epoch"], -1)


def started(client: Client, place: TopicPartition, offset: int) -> Producer:
    where = f"{place[0]}-{place[1]}"
    try:
        found = transactions.producers(client, place)
    except ClientError as error:
        raise failure(f"Failed to validate producer state for partition {where}", error) from None
    for one in found:
        if one.start_offset == offset:
            return one
    raise Terse(f"Could not find any open transactions starting at offset {offset} on partition {where}")


def find_hanging(client: Client, options: Options) -> None:
    if not options.given("topic", "broker-id"):
        raise Terse(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if "partition" in options and "topic" not in options:
        raise Terse("The --partition argument requires --topic to be provided")
    limit_ms = options["max-transaction-timeout"] * MINUTE_MS
    old = [
        (place, one)
        for place in places(client, options)
        for one in transactions.producers(client, place)
        if one.start_offset >= 0 and now_ms() - one.last_timestamp_ms > limit_ms
    ]
    rows = [hanging_row(place, one) for place, one in old if is_hanging(client, place, one)]
    print(table(HANGING, rows))


def places(client: Client, options: Options) -> list[TopicPartition]:
    """Return the partitions to search; for a broker, those of which it has a replica."""
    if "partition" in options:
        return [(options["topic"], options["partition"])]
    found = topics.described(client, [options["topic"]]) if "topic" in options else topics.listed(client)
    broker = options["broker-id"]
    return [
        (topic.name, part.index)
        for topic in found
        for part in topic.partitions
        if broker is None or broker in part.replicas
    ]


def is_hanging(client: Client, place: TopicPartition, one: Producer) -> bool:
    """Return whether no coordinator will end a transaction: none knows the producer, or that it writes there."""
    known = transactions.listed(client, producer_ids=[one.id])
    if not known:
        return True
    try:
        return place not in transactions.described(client, known[0].id).partitions
    except ClientError as error:
        if error.error is Error.TRANSACTIONAL_ID_NOT_FOUND:
            return True
        raise


def hanging_row(place: TopicPartition, one: Producer) -> tuple[object, ...]:
    minutes = (now_ms() - one.last_timestamp_ms) // MINUTE_MS
    return *place, one.id, one.epoch, one.coordinator_epoch, one.start_offset, one.last_timestamp_ms, minutes


def force_terminate(client: Client, options: Options) -> None:
    name = options["transactionalId"]
    try:
        transactions.terminate(client, name)
    except ClientError as error:
        raise failure(f"Failed to force terminate transactionalId `{name}`", error) from None


TOPIC = Flag("topic", "TOPIC", "topic name", required=True)
PARTITION = Flag("partition", "PARTITION", "partition number", int, required=True)
ID = Flag("transactional-id", "TRANSACTIONAL_ID", "transactional id", required=True)

TOOL = ParsedTool(
    "kafka-transactions",
    "kafka-transactions.sh",
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and "
    "recover from hanging transactions.",
    (
        Flag("version", help="show the version and exit"),
        Flag("command-config", "FILE", "read settings of the client from a properties file"),
        Flag("bootstrap-server", "host:port", "connect to these brokers", required=True),
    ),
    (
        Command(
            "list",
            "list transactions",
            (
                Flag("duration-filter", "DURATION_FILTER", "list only those open for longer than this many ms", int),
                Flag("transactional-id-pattern", "PATTERN", "list only ids that match this expression", since="4.2"),
            ),
            command(list_all),
        ),
        Command("describe", "describe the state of an active transactional-id", (ID,), command(describe)),
        Command(
            "describe-producers",
            "describe the states of active producers for a topic partition",
            (
                Flag(
                    "broker-id",
                    "BROKER_ID",
                    "broker to ask",
                    int,
                    refused="leaders are asked; every replica of Moldau leads.",
                ),
                TOPIC,
                PARTITION,
            ),
            command(describe_producers),
        ),
        Command(
            "abort",
            "abort a hanging transaction (requires administrative privileges)",
            (
                TOPIC,
                PARTITION,
                Flag("start-offset", "START_OFFSET", "first offset of the transaction", int),
                Flag("producer-id", "PRODUCER_ID", "producer id, if the offset is not known", int),
                Flag("producer-epoch", "PRODUCER_EPOCH", "producer epoch", int),
                Flag("coordinator-epoch", "COORDINATOR_EPOCH", "epoch of the coordinator", int),
            ),
            command(abort),
        ),
        Command(
            "find-hanging",
            "find hanging transactions",
            (
                Flag("broker-id", "BROKER_ID", "search the partitions of this broker", int),
                Flag("max-transaction-timeout", "MINUTES", "minimum age of a transaction in minutes", int, 15),
                Flag("topic", "TOPIC", "search this topic"),
                Flag("partition", "PARTITION", "search this partition", int),
            ),
            command(find_hanging),
        ),
        Command(
            "forceTerminateTransaction",
            "abort what is open under an id",
            (Flag("transactionalId", "TRANSACTIONALID", "transactional id", required=True),),
            command(force_terminate),
        ),
    ),
    metavar="COMMAND",
)
