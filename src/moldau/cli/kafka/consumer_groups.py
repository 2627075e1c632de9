"""kafka-consumer-groups: lists, describes, resets and deletes groups."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from moldau.admin import TopicPartition, groups, offsets, resets, topics
from moldau.cli.kafka import consumer_groups_text as text
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import spoken, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, forbid, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, connect, tell_usage
from moldau.client import Client, ClientError, Error, group
from moldau.client import messages as m

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
HOW = ("to-offset", "to-earliest", "to-current", "to-latest", "by-duration", "to-datetime", "from-file", "shift-by")
SELECTIONS = "[all-groups], [group]"
STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
TYPES = ("Classic", "Consumer")
KINDS = ("classic", "consumer")  # the types of consumer groups, as requests name them
NO_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)
MOST_BYTES = 64 << 20  # of a file of offsets
_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3})(Z|[+-]\d\d:?\d\d)?")


def run(options: Options) -> int:
    check(options)
    if len(options.given(*ACTIONS, "validate-regex")) != 1:
        raise Usage(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, "
            "--validate-regex"
        )
    if "validate-regex" in options:
        print(text.regex(options["validate-regex"]))
        return OK
    try:
        with connect(options, default_api_timeout_ms=str(max(options["timeout"], 5000))) as client:
            DOING[options.given(*ACTIONS)[0]](client, options)
    except resets.ResetError as error:
        report_failure(
            f"java.text.ParseException: {error}", f"java.lang.RuntimeException: java.text.ParseException: {error}"
        )
    except ClientError as error:
        cause = spoken(error.error, words_of(error))
        if "describe" in options:
            report_failure(cause, f"java.util.concurrent.ExecutionException: {cause}")
        else:
            report_failure(words_of(error), cause)
    return OK


def report_failure(why: str, exception: str) -> None:
    """Report a failure twice, as Kafka's tool does; it exits with 0 nevertheless."""
    text.complain(f"Executing consumer group command failed due to {why}")
    print(exception, file=sys.stderr)


def check(options: Options) -> None:
    """Check which flags go together, in the order in which Kafka's tool does."""
    if "validate-regex" not in options:
        require(options, "bootstrap-server")
    named = options.given("group", "all-groups")
    check_describe(options)
    if "delete" in options:
        if not named:
            raise Usage(f"Option [delete] takes one of these options: {SELECTIONS}")
        if "topic" in options:
            raise Usage("The consumer does not support topic-specific offset deletion from a consumer group.")
    if "delete-offsets" in options and len(options.given("group", "topic")) < 2:
        raise Usage("Option [delete-offsets] takes the following options: [topic], [group]")
    if "reset-offsets" in options:
        check_reset(options)
    forbid(options, "group", ("all-groups",))
    forbid(options, "group", ("list",))
    forbid(options, "topic", ("list", "describe"))


def check_describe(options: Options) -> None:
    if "describe" not in options:
        return
    if not options.given("group", "all-groups"):
        raise Usage(f"Option [describe] takes one of these options: {SELECTIONS}")
    if len(options.given("members", "offsets", "state")) > 1:
        raise Usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if options["state"] is not None:
        raise Usage("Option [describe] does not take a value for [state]")


def check_reset(options: Options) -> None:
    both = options.given("dry-run", "execute")
    if len(both) == 2:
        raise Usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not both:
        print(NO_EXECUTE, file=sys.stderr)
    if not options.given("group", "all-groups"):
        raise Usage(f"Option [reset-offsets] takes one of these options: {SELECTIONS}")
    for how in HOW:
        forbid(options, how, HOW)


def list_groups(client: Client, options: Options) -> None:
    types, states = chosen(options, "type", TYPES), chosen(options, "state", STATES)
    found = listed(client, states, types)
    if options.given("type", "state"):
        text.print_listing(found, "type" in options, "state" in options)
    else:
        sys.stdout.writelines(f"{one.id}\n" for one in found)


def listed(client: Client, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[groups.ListedGroup]:
    """List groups of consumers; of the classic groups only those that consumers use."""
    found = groups.listed(client, states, [kind.lower() for kind in types] or KINDS)
    ours = [one for one in found if one.type.lower() in ("", *KINDS) and one.protocol in ("", groups.CONSUMER)]
    by_name = {one.id: one for one in ours}
    return [by_name[name] for name in java_order.names(by_name)]


def chosen(options: Options, flag: str, known: tuple[str, ...]) -> list[str]:
    """Return the states or types that were given."""
    given = options[flag] or ""
    spelt = {name.lower(): name for name in known}
    parts = [part.strip().lower() for part in given.split(",")] if given else []
    if any(part not in spelt for part in parts):
        what = "state" if flag == "state" else "types"
        raise Usage(f"Invalid {what} list '{given}'. Valid {flag}s are: {', '.join(known)}")
    return [spelt[part] for part in parts]


def selected(client: Client, options: Options) -> list[str]:
    return [one.id for one in listed(client)] if "all-groups" in options else options.all("group")


def describe(client: Client, options: Options) -> None:
    by_name = {name: described(client, name) for name in selected(client, options)}
    verbose = "verbose" in options
    for name in sorted(by_name):
        one = by_name[name]
        if "members" in options:
            text.print_members(one, verbose)
        elif "state" in options:
            text.print_state(one, verbose)
        else:
            text.print_offsets(one, groups.lags(client, one), verbose)


def described(client: Client, name: str, kind: str | None = None) -> groups.DescribedGroup:
    """Describe a group; if it does not exist, fail with the coordinator's own words."""
    try:
        return groups.described(client, name, kind) if kind else groups.described(client, name)
    except ClientError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        request = m.ShareGroupDescribeRequest([name]) if kind else m.ConsumerGroupDescribeRequest([name])
        raise ClientError(error.error, str(error), answer=client.send(request, group(name))) from None


def reset(client: Client, options: Options) -> None:
    by_group: dict[str, dict[TopicPartition, int]] = {}
    for name in java_order.names(selected(client, options)):
        state = state_of(client, name)
        if state in ("Empty", "Dead"):
            by_group[name] = new_offsets(client, options, name)
            if "execute" in options:
                groups.commit(client, name, by_group[name])
        else:
            why = f"inactive, but the current state is {state}."
            text.complain(f"Assignments can only be reset if the group '{name}' is {why}")
            by_group[name] = {}
    if "export" in options:
        alone = len(options.all("group")) == 1
        print("".join(resets.to_csv(None if alone else name, new) for name, new in by_group.items()))
    else:
        text.print_new_offsets(by_group)


def state_of(client: Client, name: str) -> str:
    """Return the state of a group; one that does not exist counts as dead, and gets offsets too."""
    try:
        return groups.described(client, name).state
    except ClientError as error:
        if error.error is Error.GROUP_ID_NOT_FOUND:
            return "Dead"
        raise


def new_offsets(client: Client, options: Options, name: str) -> dict[TopicPartition, int]:
    """Return the new offset of each partition, in the order in which Kafka's tool prints them."""
    committed = {place: one.offset for place, one in groups.committed(client, name).items()}
    places = to_reset(client, options, committed)
    how = options.given(*HOW)
    if not how:
        ways = ", ".join(f"[{name}]" for name in HOW)
        raise Usage(f"Option '[reset-offsets]' requires one of the following scenarios: [{ways}]")
    wanted = WANTED[how[0]](options, name)
    if isinstance(wanted, resets.At):
        warn_of_no_record(client, places, wanted.time_ms)
    if isinstance(wanted, resets.Shift):
        for place in places:
            if place not in committed:
                where = f"{place[0]}-{place[1]}"
                raise Usage(f"Cannot shift offset for partition {where} since there is no current committed offset")
    if isinstance(wanted, resets.Given) and not wanted.offsets:
        text.complain(f"No reset plan for group {name} found.")
        return {}
    new = resets.plan(client, wanted, places, committed)
    return {place: new[place] for place in java_order.partitions(new)}


def to_reset(client: Client, options: Options, committed: Mapping[TopicPartition, int]) -> list[TopicPartition]:
    if "all-topics" in options:
        return list(committed)
    if "topic" in options:
        return partitions(client, options.all("topic"))
    if "from-file" not in options:
        raise Usage("One of the reset scopes should be defined: --all-topics, --topic.")
    return []


def partitions(client: Client, given: Iterable[str]) -> list[TopicPartition]:
    """Return all partitions of `topic`, or those of `topic:0,2`."""
    named = [place for word in given if ":" in word for place in some_of(word)]
    return named + topics.partitions(client, [word for word in given if ":" not in word])


def some_of(word: str) -> Iterable[TopicPartition]:
    parts = word.split(":")
    if len(parts) != 2:
        raise Usage(f"Invalid topic arg '{word}', expected topic name and partitions")
    for number in parts[1].split(","):
        if not number.isdecimal():
            raise Usage(f"Invalid partition '{number}' specified in topic arg '{word}''")
        yield parts[0], int(number)


def warn_of_no_record(client: Client, places: Iterable[TopicPartition], time_ms: int) -> None:
    for topic, partition in java_order.partitions(places):
        if offsets.one_time(client, [(topic, partition)], time_ms)[topic, partition] < 0:
            print(f"\nWarn: Partition {partition} from topic {topic} is empty. Falling back to latest known offset.")


def moment(given: str) -> int:
    """Parse a time as Kafka's tool does, with milliseconds and an optional zone, into ms since 1970."""
    match = _DATE.fullmatch(given)
    if not match:
        if "T" not in given:
            raise resets.ResetError("Error parsing timestamp. It does not contain a 'T' according to ISO8601 format")
        raise resets.ResetError(f'Unparseable date: "{given}"')
    zone = "+00:00" if match[3] in (None, "Z") else match[3]
    return int(datetime.fromisoformat(f"{match[1]}.{match[2]}{zone}").timestamp() * 1000)


def ago(given: str) -> int:
    return int((datetime.now(UTC) - resets.duration(given)).timestamp() * 1000)


def from_file(options: Options, name: str) -> resets.Given:
    with open(options["from-file"]) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise resets.ResetError(f"A file of offsets has at most {MOST_BYTES} characters.")
    return resets.Given(resets.from_csv(content, name))


WANTED = {
    "to-offset": lambda options, name: resets.To(options["to-offset"]),
    "shift-by": lambda options, name: resets.Shift(options["shift-by"]),
    "to-datetime": lambda options, name: resets.At(moment(options["to-datetime"])),
    "by-duration": lambda options, name: resets.At(ago(options["by-duration"])),
    "to-earliest": lambda options, name: resets.Earliest(),
    "to-latest": lambda options, name: resets.Latest(),
    "to-current": lambda options, name: resets.Current(),
    "from-file": from_file,
}


def delete(client: Client, options: Options) -> None:
    done = groups.delete(client, selected(client, options))
    bad = {name: error for name, error in done.items() if error}
    good = java_order.names([name for name in done if name not in bad])
    if not bad:
        print(f"Deletion of requested consumer groups ('{', '.join(good)}') was successful.")
        return
    text.complain("Deletion of some consumer groups failed:")
    for name in java_order.names(bad):
        print(f"* Group '{name}' could not be deleted due to: {spoken(bad[name])}")
    if good:
        listing = "'".join(good)
        print(f"\nThese consumer groups were deleted successfully: '{listing}', '")


def delete_offsets(client: Client, options: Options) -> None:
    name, given = options["group"], options.all("topic")
    unknown: dict[TopicPartition, Error] = {}
    places = [place for word in given if ":" in word for place in some_of(word)]
    for word in given:
        if ":" not in word:
            try:
                places += topics.partitions(client, [word])
            except ClientError as error:
                unknown[word, -1] = error.error
    whole = Error.NONE
    done: dict[TopicPartition, Error] = {}
    try:
        done = groups.delete_offsets(client, name, places) if places else {}
        whole = next((error for error in done.values() if error), Error.NONE)
    except ClientError as error:
        whole = error.error
        done = dict.fromkeys(places, whole)
    text.print_deleted_offsets(name, whole, {**unknown, **done})


DOING = {
    "list": list_groups,
    "describe": describe,
    "delete": delete,
    "reset-offsets": reset,
    "delete-offsets": delete_offsets,
}

STATED = ("describe", "list")
FLAGS = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    Flag("group", "group", "Name the group; may be repeated."),
    Flag("topic", "topic", "Name the topic, or some of its partitions: topic:0,2. May be repeated."),
    Flag("all-topics", help="With --reset-offsets: reset all topics for which the group has offsets."),
    Flag("list", help="List groups."),
    Flag("describe", help="Show groups, by default with their offsets and lag."),
    Flag("all-groups", help="Take all groups."),
    Flag("delete", help="Delete groups that have no members."),
    Flag("timeout", "timeout (ms)", "Wait this long for the cluster.", int, 5000),
    Flag("reset-offsets", help="Reset the offsets of groups without members; without --execute only show them."),
    Flag("delete-offsets", help="Delete the offsets of a group for topics."),
    Flag("dry-run", help="Only show the new offsets."),
    Flag("execute", help="Set the new offsets."),
    Flag("export", help="Print the new offsets as CSV."),
    Flag("to-offset", "offset", "Go to this offset.", int),
    Flag("from-file", "path to CSV file", "Read the new offsets from a file: topic,partition,offset."),
    Flag("to-datetime", "datetime", "Go to the first record since this time, 2026-11-15T10:00:00.000."),
    Flag("by-duration", "duration", "Go to the first record since this long ago, P1DT2H3M4S."),
    Flag("to-earliest", help="Go to the first record."),
    Flag("to-latest", help="Go to the end, after the last record."),
    Flag("to-current", help="Stay at the committed offsets."),
    Flag("shift-by", "number-of-offsets", "Skip this many records, or go back if negative.", int),
    Flag("members", help="Describe members.", beside=("describe",)),
    Flag("verbose", help="Describe in more detail.", beside=("describe",)),
    Flag("offsets", help="Describe offsets and lag.", beside=("describe",)),
    Flag("state", "states", "Describe or list states, or list groups in these.", optional=True, beside=STATED),
    Flag("type", "types", "List types, or only groups of these types.", optional=True, beside=("list",)),
    Flag("validate-regex", "regex", "Check whether this is a regular expression."),
)
TOOL = Tool(
    "kafka-consumer-groups",
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, "
    "or reset consumer group offsets.",
    FLAGS,
    run,
    tell_usage,
)
