"""kafka-share-groups: lists, describes, resets and deletes share groups."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from moldau.admin import TopicPartition, groups, resets, shares
from moldau.admin.groups import DescribedGroup
from moldau.cli.kafka import consumer_groups as consumer
from moldau.cli.kafka import consumer_groups_text as text
from moldau.cli.kafka import java_order
from moldau.cli.kafka.consumer_groups_text import MISSING, assigned, complain, print_rows, row, widest
from moldau.cli.kafka.exceptions import spoken, words, words_of
from moldau.cli.kafka.flags import Options, Tool, Usage, forbid, require
from moldau.cli.kafka.running import OK, Terse, connect, tell_usage
from moldau.client import Client, ClientError, Error, outcomes

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
HOW = ("to-datetime", "to-earliest", "to-latest")
STATES = ("Stable", "Dead", "Empty")


def run(options: Options) -> int:
    check(options)
    if len(options.given(*ACTIONS)) != 1:
        named = ", ".join(f"--{name}" for name in ACTIONS)
        raise Usage(f"Command must include exactly one action: {named}.")
    try:
        with connect(options, default_api_timeout_ms=str(max(options["timeout"], 1000))) as client:
            DOING[options.given(*ACTIONS)[0]](client, options)
    except resets.ResetError as error:
        raise Terse(str(error)) from None
    except ClientError as error:
        cause = spoken(error.error, words_of(error))
        complain(f"Executing share group command failed due to {cause}")
        print(f"java.util.concurrent.ExecutionException: {cause}", file=sys.stderr)
    return OK


def check(options: Options) -> None:
    """Check which flags go together, in the order in which Kafka's tool does."""
    require(options, "bootstrap-server")
    consumer.check_describe(options)
    if "delete" in options:
        if not options.given("group", "all-groups"):
            raise Usage("Option [delete] takes the options [group] or [all-groups]")
        if len(options.given("group", "all-groups")) == 2:
            raise Usage("Option [delete] takes either [group] or [all-groups], not both.")
        if "topic" in options:
            raise Usage("Option [delete] does not take the option: [topic]")
    if "delete-offsets" in options and len(options.given("group", "topic")) < 2:
        raise Usage("Option [delete-offsets] takes the following options: [group], [topic]")
    if "reset-offsets" in options:
        check_reset(options)
    forbid(options, "group", ("all-groups", "list"))
    forbid(options, "topic", ("list", "describe"))


def check_reset(options: Options) -> None:
    both = options.given("execute", "dry-run")
    if len(both) == 2:
        raise Usage("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not both:
        raise Usage("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    if "group" not in options:
        raise Usage("Option [reset-offsets] takes the option: [group]")
    for how in HOW:
        forbid(options, how, HOW)


def listed(client: Client, states: Sequence[str] = ()) -> list[groups.ListedGroup]:
    found = {one.id: one for one in groups.listed(client, states, ["share"]) if one.type.lower() == "share"}
    return [found[name] for name in java_order.names(found)]


def list_groups(client: Client, options: Options) -> None:
    found = listed(client, consumer.chosen(options, "state", STATES))
    if "state" not in options:
        sys.stdout.writelines(f"{one.id}\n" for one in found)
        return
    widths = [widest(one.id for one in found), 0]
    for cells in [("GROUP", "STATE"), *((one.id, one.state) for one in found)]:
        print(row(cells, widths))


def selected(client: Client, options: Options) -> list[str]:
    return [one.id for one in listed(client)] if "all-groups" in options else options.all("group")


def describe(client: Client, options: Options) -> None:
    verbose = "verbose" in options
    for name in sorted(selected(client, options)):
        one = consumer.described(client, name, "share")
        if "members" in options:
            print_members(one, verbose)
        elif "state" in options:
            print_state(one, verbose)
        else:
            print_offsets(name, shares.offsets(client, name), verbose)


def print_offsets(name: str, offsets: Sequence[shares.ShareOffset], verbose: bool) -> None:
    if not offsets:
        print(f"\nShare group '{name}' has no offset information.")
        return
    widths = [widest([name]), widest(one.topic for one in offsets), 10, *([13] if verbose else []), 13, 0]
    heading = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET", "LAG"]
    lines: list[Sequence[object]] = [heading]
    for one in sorted(offsets, key=lambda each: (each.topic, each.partition)):
        epoch = [MISSING if one.start is None else one.leader_epoch] if verbose else []
        numbers = [MISSING if number is None else number for number in (one.start, one.lag)]
        lines.append([name, one.topic, one.partition, *epoch, *numbers])
    print_rows(lines, widths)


def print_state(one: DescribedGroup, verbose: bool) -> None:
    text.has_rows(one, 1, "Share")
    coordinator = f"{one.coordinator_address}  ({one.coordinator})"
    widths = [widest([one.id]), widest([coordinator], 25), 15, *([12, 17] if verbose else []), 0]
    heading = ["GROUP", "COORDINATOR (ID)", "STATE", *(["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else [])]
    epochs = [one.epoch, one.target_epoch] if verbose else []
    cells = [one.id, coordinator, one.state, *epochs, len(one.members)]
    print(f"\n{row([*heading, '#MEMBERS'], widths)}\n{row(cells, widths)}")


def print_members(one: DescribedGroup, verbose: bool) -> None:
    if not text.has_rows(one, len(one.members), "Share"):
        return
    members = sorted(one.members, key=lambda member: member.id)
    widths = [widest([one.id]), *(widest(getattr(each, name) for each in members) for name in ("id", "host"))]
    widths += [widest(each.client_id for each in members), 12, *([13] if verbose else []), 0]
    heading = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *(["MEMBER-EPOCH"] if verbose else [])]
    lines: list[Sequence[object]] = [[*heading, "ASSIGNMENT"]]
    for each in members:
        places = assigned(each.partitions) if each.partitions else ""
        epoch = [each.epoch] if verbose else []
        lines.append([one.id, each.id, each.host, each.client_id, len(each.partitions), *epoch, places])
    print_rows(lines, widths)


def reset(client: Client, options: Options) -> None:
    name = options["group"]
    state = consumer.state_of(client, name)
    if state not in ("Empty", "Dead"):
        raise Terse(f"Share group '{name}' is not empty.")
    new = new_offsets(client, options, name)
    if "execute" in options:
        shares.alter(client, name, new)
    text.print_new_offsets({name: new} if new else {})


def new_offsets(client: Client, options: Options, name: str) -> dict[TopicPartition, int]:
    if "topic" in options:
        places = consumer.partitions(client, options.all("topic"))
    else:
        places = [(one.topic, one.partition) for one in shares.offsets(client, name)]
    how = options.given(*HOW)
    if not how:
        raise Usage(f"Option '[reset-offsets]' requires one of the following scenarios: {[[how] for how in HOW]}")
    new = resets.plan(client, consumer.WANTED[how[0]](options, name), places, {})
    return {place: new[place] for place in java_order.partitions(new)}


def delete(client: Client, options: Options) -> None:
    there = {one.id: one for one in listed(client)}
    names = list(there) if "all-groups" in options else list(dict.fromkeys(options.all("group")))
    bad = {name: refusal(name, there.get(name)) for name in names}
    bad = {name: why for name, why in bad.items() if why}
    done = groups.delete(client, [name for name in names if name not in bad])
    bad |= {name: spoken(error) for name, error in done.items() if error}
    good = java_order.names([name for name, error in done.items() if not error])
    if not bad:
        print(f"Deletion of requested share groups ({quoted(good)}) was successful.")
        return
    complain("Deletion of some share groups failed:")
    for name in java_order.names(bad):
        print(f"* Group '{name}' could not be deleted due to: {bad[name]}")
    if good:
        print(f"\nThese share groups were deleted successfully: {quoted(good)}")


def refusal(name: str, one: groups.ListedGroup | None) -> str | None:
    """Return why a group cannot be deleted, before the broker is asked."""
    if one is None:
        return f"java.lang.IllegalArgumentException: Group '{name}' is not a share group."
    if one.state == "Dead":
        return f"java.lang.IllegalStateException: Share group '{name}' group state is DEAD."
    return None if one.state == "Empty" else spoken(Error.NON_EMPTY_GROUP, f"Share group '{name}' is not EMPTY.")


def quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def delete_offsets(client: Client, options: Options) -> None:
    wanted = sorted(set(options.all("topic")))
    done: dict[str, str] = dict.fromkeys(wanted, "Successful")
    try:
        shares.delete_offsets(client, options["group"], wanted)
    except ClientError as error:
        if error.answer is None or error.answer.error_code:
            complain(words_of(error))
            done = dict.fromkeys(wanted, f"Error: {words_of(error)}")
        else:
            bad = {one.item: one for one in outcomes(error.answer) if one.error}
            done |= {item: f"Error: {words(one.error, one.message)}" for item, one in bad.items()}
    widths = [widest(done), 0]
    print_rows([("TOPIC", "STATUS"), *done.items()], widths)


DOING = {
    "list": list_groups,
    "describe": describe,
    "delete": delete,
    "reset-offsets": reset,
    "delete-offsets": delete_offsets,
}

OTHERS = ("export", "to-offset", "from-file", "by-duration", "to-current", "shift-by", "type", "validate-regex")
TOOL = Tool(
    "kafka-share-groups",
    "This tool helps to list, describe, reset and delete share groups.",
    tuple(
        replace(flag, default=30_000) if flag.name == "timeout" else flag
        for flag in consumer.FLAGS
        if flag.name not in OTHERS
    ),
    run,
    tell_usage,
)
