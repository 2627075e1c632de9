"""kafka-streams-application-reset: resets the offsets and deletes the internal topics of an application."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from moldau.admin import TopicPartition, groups, offsets, resets, topics
from moldau.cli.kafka import consumer_groups as consumer
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import HAS_BEEN_DEPRECATED, Flag, Options, Tool, forbid
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, connect, tell_usage
from moldau.client import Client, ClientError, Error, group
from moldau.client import messages as m

HOW = ("to-offset", "to-datetime", "by-duration", "to-earliest", "to-latest", "from-file", "shift-by")
INTERNAL = re.compile(
    r".*(-changelog|-repartition|-subscription-registration-topic|-subscription-response-topic)"
    r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic"
)


class Refused(Exception):
    """A reset that cannot be done."""


def run(options: Options) -> int:
    for how in HOW:
        forbid(options, how, HOW)
    try:
        with connect(options) as client:
            return reset(client, options)
    except (Refused, resets.ResetError) as error:
        return _complain(f"java.lang.IllegalStateException: {error}")
    except ClientError as error:
        return _complain(f"java.util.concurrent.ExecutionException: {spoken(error.error, words_of(error))}")


def _complain(sentence: str) -> int:
    print(f"ERROR: {sentence}", file=sys.stderr)
    return FAILED


def reset(client: Client, options: Options) -> int:
    expel(client, options)
    there = [topic.name for topic in topics.listed(client, internal=False)]
    if "dry-run" in options:
        print("----Dry run displays the actions which will be performed when running Streams Reset Tool----")
    code = reset_inputs(client, options, there)
    delete_internal(client, options, there)
    return code


def expel(client: Client, options: Options) -> None:
    """Refuse to reset a running application, or remove its members with --force."""
    name = options["application-id"]
    try:
        found = groups.described(client, name)
    except ClientError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return
        raise
    if not found.members:
        return
    if "force" not in options:
        raise Refused(
            f"Consumer group '{name}' is still active and has following members: "
            f"[{', '.join(one.id for one in found.members)}]. Make sure to stop all running application instances "
            "before running the reset tool. You can use option '--force' to remove active members from the group."
        )
    print(f"Force deleting all active members in the group: {name}")
    rows = [m.LeaveGroupRequest_MemberIdentity(one.id, one.instance_id) for one in found.members]
    client.send(m.LeaveGroupRequest(group_id=name, members=rows), group(name))


def reset_inputs(client: Client, options: Options, there: Sequence[str]) -> int:
    named, between = options.all("input-topics"), options.all("intermediate-topics")
    if between:
        print("WARN: `--intermediate-topics` is deprecated and will be removed in a future release")
    if not named and not between:
        print("No input or intermediate topics specified. Skipping seek.")
        return OK
    if named:
        print(f"Reset-offsets for input topics [{', '.join(named)}]")
    if between:
        print(f"Seek-to-end for intermediate topics [{', '.join(between)}]")
    lost = missing(named, there, "input") + missing(between, there, "intermediate")
    new = seek(client, options, [name for name in named if name in there])
    new |= seek_to_end(client, options, [name for name in between if name in there])
    if new:
        if "dry-run" not in options:
            groups.commit(client, options["application-id"], new)
        print("Done.")
    return FAILED if lost else OK


def missing(named: Sequence[str], there: Sequence[str], kind: str) -> list[str]:
    lost = [name for name in named if name not in there]
    if lost:
        print(f"Following {kind} topics are not found, skipping them")
        print(*(f"Topic:{' ' if kind == 'input' else ''}{name}" for name in lost), sep="\n")
    return lost


def seek_to_end(client: Client, options: Options, names: Sequence[str]) -> dict[TopicPartition, int]:
    if not names:
        return {}
    group_id = options["application-id"]
    print(f"Following intermediate topics offsets will be reset to end (for consumer group {group_id})")
    places = topics.partitions(client, names)
    print(*(f"Topic: {topic}" for topic, _ in java_order.partitions(places)), sep="\n")
    return offsets.one_time(client, places, offsets.LATEST)


def seek(client: Client, options: Options, names: Sequence[str]) -> dict[TopicPartition, int]:
    """Return the new offsets of input topics."""
    if not names:
        return {}
    places, name = topics.partitions(client, names), options["application-id"]
    committed = {place: one.offset for place, one in groups.committed(client, name).items()}
    how = next(iter(options.given(*HOW)), "to-earliest")
    if how == "shift-by":  # from where a consumer would start
        first = offsets.one_time(client, places, offsets.LATEST)
        committed = {place: committed.get(place, first[place]) for place in places}
    print(f"Following input topics offsets will be reset to (for consumer group {name})")
    new = resets.plan(client, consumer.WANTED[how](options, name), places, committed)
    for topic, partition in java_order.partitions(new):
        print(f"Topic: {topic} Partition: {partition} Offset: {new[topic, partition]}")
    return new


def delete_internal(client: Client, options: Options, there: Sequence[str]) -> None:
    prefix = f"{options['application-id']}-"
    inputs = options.all("input-topics") + options.all("intermediate-topics")
    found = [name for name in there if name.startswith(prefix) and INTERNAL.fullmatch(name) and name not in inputs]
    named = options.all("internal-topics")
    if any(name not in found for name in named):
        raise Refused(
            "Invalid topic specified in the --internal-topics option. Ensure that the topics specified are all "
            "internal topics. Do a dry run without the --internal-topics option to see the list of all internal topics "
            "that can be deleted."
        )
    doomed = named or java_order.names(found)
    print(f"Deleting {'specified' if named else 'inferred'} internal topics [{', '.join(doomed)}]")
    if doomed and "dry-run" not in options:
        topics.delete(client, doomed)
    print("Done.")


TOOL = Tool(
    "kafka-streams-application-reset",
    "This tool resets a Kafka Streams application: the offsets of its input topics, and its internal topics, which are "
    "deleted. Stop the application first, try --dry-run, and delete its local state afterwards.",
    (
        Flag("application-id", "id", "Name the application (application.id).", required=True),
        Flag("bootstrap-server", BOOTSTRAP.argument, BOOTSTRAP.help, default="localhost:9092"),
        Flag("input-topics", "list", "Reset the offsets of these topics, separated by commas.", separator=","),
        Flag("intermediate-topics", "list", "Go to the end of these topics, separated by commas.", separator=","),
        Flag("internal-topics", "list", "Delete only these internal topics.", separator=","),
        Flag("to-offset", "offset", "Start at this offset.", int),
        Flag("to-datetime", "datetime", "Start at the first record since this time, 2026-11-15T10:00:00.000."),
        Flag("by-duration", "duration", "Start at the first record since this long ago, P1DT2H."),
        Flag("to-earliest", help="Start at the first record; this is the default."),
        Flag("to-latest", help="Start at the end, after the last record."),
        Flag("from-file", "file", "Start at the offsets in a file: topic,partition,offset."),
        Flag("shift-by", "number-of-offsets", "Skip this many records, or go back if negative.", int),
        COMMAND_CONFIG,
        Flag("config-file", "file", "Read settings of the client from this file.", deprecated="command-config"),
        Flag("force", help="Remove the members of the group first."),
        Flag("dry-run", help="Only say what would be done."),
    ),
    run,
    tell_usage,
    HAS_BEEN_DEPRECATED,
)
