"""kafka-topics: creates, lists, describes, enlarges and deletes topics."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from moldau.admin import configs, reassignments, topics
from moldau.admin.reassignments import Reassignment
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import class_name, words_of
from moldau.cli.kafka.flags import Flag, Mistake, Options, Tool, Usage, forbid, require
from moldau.cli.kafka.java_text import base64_id, log
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, ZOOKEEPER, Terse, connect
from moldau.cli.kafka.topic_filter import TopicFilter
from moldau.client import Client, ClientError, Error
from moldau.settings import TOPIC, rows

MOST_REPLICAS = 32767
NUMBERS = {"int": int, "long": int, "short": int, "double": float}
ACTIONS = ("create", "list", "alter", "describe", "delete")
REPORTS = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions")
REPORTS += ("unavailable-partitions",)
BY_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
COLLIDES = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)


@dataclass(frozen=True, slots=True)
class Described:
    """The data that is printed of a topic."""

    topic: topics.TopicState
    configs: Mapping[str, configs.Entry]
    reassignments: Mapping[int, Reassignment]


def run(options: Options) -> int:
    check(options)
    try:
        with connect(options) as client:
            DOING[options.given(*ACTIONS)[0]](client, options)
    except (Terse, Mistake) as error:
        return report(str(error), "java.lang.IllegalArgumentException")
    except ClientError as error:
        return report(words_of(error), class_name(error.error))
    return OK


def report(sentence: str, kind: str) -> int:
    print(f"Error while executing topic command : {sentence}")
    log("ERROR", f"{kind}: {sentence}", "org.apache.kafka.tools.TopicCommand")
    return FAILED


def check(options: Options) -> None:
    """Check which flags go together, in the order in which Kafka's tool does."""
    if len(options.given(*ACTIONS)) != 1:
        raise Usage("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if "bootstrap-server" not in options:
        raise Terse("--bootstrap-server must be specified")
    if "describe" in options and "if-exists" in options and not options.given("topic", "topic-id"):
        raise Usage("--topic or --topic-id is required to describe a topic")
    if not options.given("list", "describe"):
        require(options, "topic")
    if "alter" in options:
        if "config" in options:
            pair = "[[bootstrap-server], [config]]"
            raise Usage(f'Option combination "{pair}" can\'t be used with option "[alter]"{BY_CONFIGS}')
        require(options, "partitions")
    for flag, allowed in GOES_WITH.items():
        others = [action for action in ACTIONS if action not in allowed]
        if flag in REPORTS:
            others.append("topics-with-overrides")
        forbid(options, flag, [*others, *(REPORTS if flag == "topics-with-overrides" else ())])
    if "create" in options:
        forbid(options, "replica-assignment", ("partitions", "replication-factor"))


GOES_WITH = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(REPORTS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


def create(client: Client, options: Options) -> None:
    name = options["topic"]
    new = topics.NewTopic(
        name,
        topics.DEFAULT if options["partitions"] is None else options["partitions"],
        topics.DEFAULT if options["replication-factor"] is None else options["replication-factor"],
        settings_of(options.all("config")),
        assignment(options["replica-assignment"] or ""),
    )
    if "_" in name or "." in name:
        print(COLLIDES)
    if "replication-factor" in options and not 1 <= new.replication_factor <= MOST_REPLICAS:
        raise Terse(f"The replication factor must be between 1 and {MOST_REPLICAS} inclusive")
    if "partitions" in options and new.partitions < 1:
        raise Terse("The partitions must be greater than 0")
    try:
        topics.create(client, [new])
        print(f"Created topic {name}.")
    except ClientError as error:
        if not (error.error is Error.TOPIC_ALREADY_EXISTS and "if-not-exists" in options):
            raise


def settings_of(texts: Iterable[str]) -> dict[str, str]:
    """Parse `name=value` pairs: with one equals sign, and something after it."""
    pairs = [re.split(r"\s*=\s*", text) for text in texts]
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        raise Terse(
            'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
        )
    found = {name.strip(): value.strip() for name, value in pairs}
    for name, value in found.items():
        check_setting(name, value)
    return found


def check_setting(name: str, value: str) -> None:
    """Check a setting as Kafka's tool does; the broker checks the rest."""
    row = rows(TOPIC).get(name)
    if row is None:
        raise Terse(f"Unknown topic config name: {name}")
    wrong = ""
    if row.type in NUMBERS:
        try:
            NUMBERS[row.type](value)
        except ValueError:
            wrong = f"Not a number of type {row.type.upper()}"
    elif row.type == "boolean" and value.lower() not in ("true", "false"):
        wrong = "Expected value to be either true or false"
    if wrong:
        raise Terse(f"Invalid value {value} for configuration {name}: {wrong}")


def assignment(text: str) -> dict[int, list[int]] | None:
    """Parse the brokers of each partition: `1:2,2:3`."""
    if not text:
        return None
    found = {}
    for index, part in enumerate(text.split(",")):
        ids = [_integer(one.strip()) for one in part.split(":")]
        if twice := sorted({one for one in ids if ids.count(one) > 1}):
            listed = ",".join(map(str, twice))
            raise Mistake(f"Partition replica lists may not contain duplicate entries: {listed}")
        found[index] = ids
        if len(ids) != len(found[0]):
            raise Mistake(f"Partition {index} has different replication factor: {ids}")
    return found


def _integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise Terse(f'For input string: "{text}"')
    return int(text)


def list_names(client: Client, options: Options) -> None:
    print("\n".join(chosen(client, options)))


def chosen(client: Client, options: Options) -> list[str]:
    """Return the topics that --topic matches, or all."""
    internal = "exclude-internal" not in options
    found = [topic.name for topic in topics.listed(client, internal=internal)]
    if "topic" not in options:
        return found
    wanted = TopicFilter(options["topic"])
    return [name for name in found if wanted.allows(name, internal=internal)]


def existing(client: Client, options: Options) -> list[str]:
    """Return the same topics; if there are none, fail, unless --if-exists is given."""
    found = chosen(client, options)
    if not found and options["topic"] and "if-exists" not in options:
        raise Terse(f"Topic '{options['topic']}' does not exist as expected")
    return found


def alter(client: Client, options: Options) -> None:
    places = assignment(options["replica-assignment"] or "")
    names = existing(client, options)
    if not names:
        return
    new: dict[str, Sequence[Sequence[int]]] = {}
    if places:
        rows = list(places.values())
        new = {topic.name: rows[len(topic.partitions) :] for topic in topics.described(client, names)}
    total: int = options["partitions"]
    topics.add_partitions(client, dict.fromkeys(names, total), new)


def delete(client: Client, options: Options) -> None:
    if names := existing(client, options):
        topics.delete(client, names)


def describe(client: Client, options: Options) -> None:
    names = named(client, options)
    if not names:
        return
    live = frozenset(client.refresh().brokers)
    states = {topic.name: topic for topic in topics.described(client, names)}
    detailed = topics.with_elr(client, names)
    moving = reassignments.known(client)
    for name in java_order.names(names, len(names)):
        state = states[name]
        parts = tuple(detailed.get((name, part.index), part) for part in state.partitions)
        own = {part.index: moving[name, part.index] for part in parts if (name, part.index) in moving}
        entries = configs.described(client, configs.Resource(configs.Kind.TOPIC, name))
        full = Described(
            topics.TopicState(name, state.id, state.internal, parts), {one.name: one for one in entries}, own
        )
        sys.stdout.writelines(f"{line}\n" for line in lines(full, options, live))


def named(client: Client, options: Options) -> list[str]:
    """Return the topics to describe, by id or by name."""
    wanted = options["topic-id"]
    if wanted is None or wanted == base64_id(bytes(16)):
        return existing(client, options)
    internal = "exclude-internal" not in options
    found = [topic.name for topic in topics.listed(client, internal=internal) if base64_id(topic.id) == wanted]
    if not found and "if-exists" not in options:
        raise Terse(f"TopicId '{wanted}' does not exist as expected")
    return found


def lines(one: Described, options: Options, live: frozenset[int]) -> Iterable[str]:
    """Yield the lines about a topic."""
    reports = options.given(*REPORTS)
    own = [name for name in java_order.names(one.configs) if not one.configs[name].is_default]
    if not reports and (own or "topics-with-overrides" not in options):
        yield heading(one, own)
    if "topics-with-overrides" not in options:
        least = int(one.configs["min.insync.replicas"].value or 1)
        for part in one.topic.partitions:
            moving = one.reassignments.get(part.index)
            if not reports or any(REPORT[report](part, moving, least, live) for report in reports):
                yield partition_line(one.topic.name, part, moving)


def heading(one: Described, own: Sequence[str]) -> str:
    first = one.topic.partitions[0]
    known = f"\tTopicId: {base64_id(one.topic.id)}" if any(one.topic.id) else ""
    overrides = ",".join(f"{name}={one.configs[name].value}" for name in own)
    factor = replication_factor(first, one.reassignments.get(first.index))
    count = len(one.topic.partitions)
    return f"Topic: {one.topic.name}{known}\tPartitionCount: {count}\tReplicationFactor: {factor}\tConfigs: {overrides}"


def replication_factor(part: topics.PartitionState, moving: Reassignment | None) -> int:
    """Count the replicas of a partition, without those that a move is adding."""
    if moving and set(part.replicas) & {*moving.adding, *moving.removing}:
        return len(moving.replicas) - len(moving.adding)
    return len(part.replicas)


def partition_line(name: str, part: topics.PartitionState, moving: Reassignment | None) -> str:
    leader = part.leader if part.leader >= 0 else "none"
    line = f"\tTopic: {name}\tPartition: {part.index}\tLeader: {leader}"
    line += f"\tReplicas: {ids(part.replicas)}\tIsr: {ids(part.isr)}"
    if moving:
        line += f"\tAdding Replicas: {ids(moving.adding)}\tRemoving Replicas: {ids(moving.removing)}"
    return f"{line}\tElr: {ids(part.elr)}\tLastKnownElr: {ids(part.last_known_elr)}"


def ids(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


# Which partitions a report shows, by the partition, its move, min.insync.replicas and the live brokers.
REPORT: dict[str, Callable[[topics.PartitionState, Reassignment | None, int, frozenset[int]], bool]] = {
    "under-replicated-partitions": lambda part, moving, least, live: replication_factor(part, moving) > len(part.isr),
    "unavailable-partitions": lambda part, moving, least, live: part.leader not in live,
    "under-min-isr-partitions": lambda part, moving, least, live: part.leader < 0 or len(part.isr) < least,
    "at-min-isr-partitions": lambda part, moving, least, live: len(part.isr) == least,
}
DOING = {"create": create, "list": list_names, "alter": alter, "describe": describe, "delete": delete}

TOOL = Tool(
    "kafka-topics",
    "This tool helps to create, delete, describe, or change a topic.",
    (
        BOOTSTRAP,
        ZOOKEEPER,
        COMMAND_CONFIG,
        Flag("list", help="List topics."),
        Flag("create", help="Create a topic."),
        Flag("delete", help="Delete topics."),
        Flag("alter", help="Add partitions to topics. To change settings use kafka-configs."),
        Flag("describe", help="Show topics with their partitions and settings."),
        Flag("topic", "topic", "Name the topic; except with --create it is a regular expression."),
        Flag("topic-id", "topic-id", "Describe the topic with this id."),
        Flag("config", "name=value", "With --create: set a setting of the topic; may be repeated."),
        Flag("delete-config", "name", "Has no effect any more."),
        Flag("partitions", "# of partitions", "Number of partitions in all.", int),
        Flag("replication-factor", "replication factor", "Number of replicas of each partition.", int),
        Flag("replica-assignment", "1:2,2:3,...", "Name the brokers of each partition."),
        Flag("under-replicated-partitions", help="Describe only partitions that lack a replica in sync."),
        Flag("unavailable-partitions", help="Describe only partitions without a live leader."),
        Flag("under-min-isr-partitions", help="Describe only partitions with fewer replicas in sync than needed."),
        Flag("at-min-isr-partitions", help="Describe only partitions with exactly as many replicas in sync as needed."),
        Flag("topics-with-overrides", help="Describe only topics with settings of their own."),
        Flag("if-exists", help="With --alter, --delete, --describe: do not fail if the topic does not exist."),
        Flag("if-not-exists", help="With --create: do not fail if the topic exists."),
        Flag("exclude-internal", help="With --list, --describe: omit internal topics."),
        Flag("partition-size-limit-per-response", "partitions", "Ask for this many partitions at once.", int),
    ),
    run,
)
