"""kafka-share-groups: share groups listed and described, reset, and deleted."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from moldau.admin import TopicPartition, groups, resets, shares
from moldau.admin.groups import DescribedGroup
from moldau.cli.kafka import consumer_groups as consumer
from moldau.cli.kafka import consumer_groups_text as text
from moldau.cli.kafka import java_order
from moldau.cli.kafka.consumer_groups_text import MISSING, assigned, complain, row, widest
from moldau.cli.kafka.exceptions import spoken, words, words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, forbid, require
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, OK, Terse, connect, tell_usage
from moldau.client import Client, ClientError, Error, group, outcomes
from moldau.client import messages as m

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
    """The flags that go together, in the order in which Kafka's tool looks at them."""
    require(options, "bootstrap-server")
    if "describe" in options:
        if not options.given("group", "all-groups"):
            raise Usage("Option [describe] takes one of these options: [all-groups], [group]")
        if len(options.given("members", "offsets", "state")) > 1:
            raise Usage("Option [describe] takes at most one of these options: [members], [offsets], [state]")
        if options["state"] is not None:
            raise Usage("Option [describe] does not take a value for [state]")
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
        one = described(client, name)
        if "members" in options:
            print_members(one, verbose)
        elif "state" in options:
            print_state(one, verbose)
        else:
            print_offsets(name, shares.offsets(client, name), verbose)


def described(client: Client, name: str) -> DescribedGroup:
    """A share group; where there is none, what the coordinator says about it."""
    try:
        return groups.described(client, name, "share")
    except ClientError as error:
        if error.error is not Error.GROUP_ID_NOT_FOUND:
            raise
        answer = client.send(m.ShareGroupDescribeRequest([name]), group(name))
        raise ClientError(error.error, str(error), answer=answer) from None


def has_rows(one: DescribedGroup, count: int) -> bool:
    if one.state == "Dead":
        complain(f"Share group '{one.id}' does not exist.")
    elif one.state == "Empty":
        sys.stdout.flush()
        print(f"\nShare group '{one.id}' has no active members.", file=sys.stderr)
    return one.state != "Dead" and count > 0


def print_offsets(name: str, found: Sequence[shares.ShareOffset], verbose: bool) -> None:
    if not found:
        print(f"\nShare group '{name}' has no offset information.")
        return
    widths = [widest([name]), widest(one.topic for one in found), 10, *([13] if verbose else []), 13, 0]
    heading = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "START-OFFSET", "LAG"]
    lines: list[list[object]] = [list(heading)]
    for one in sorted(found, key=lambda each: (each.topic, each.partition)):
        epoch = [MISSING if one.start is None else one.leader_epoch] if verbose else []
        numbers = [MISSING if number is None else number for number in (one.start, one.lag)]
        lines.append([name, one.topic, one.partition, *epoch, *numbers])
    sys.stdout.writelines(f"\n{row(line, widths)}" for line in lines)
    print()


def print_state(one: DescribedGroup, verbose: bool) -> None:
    has_rows(one, 1)
    coordinator = f"{one.coordinator_address}  ({one.coordinator})"
    widths = [widest([one.id]), widest([coordinator], 25), 15, *([12, 17] if verbose else []), 0]
    heading = ["GROUP", "COORDINATOR (ID)", "STATE", *(["GROUP-EPOCH", "ASSIGNMENT-EPOCH"] if verbose else [])]
    epochs = [one.epoch, one.target_epoch] if verbose else []
    cells = [one.id, coordinator, one.state, *epochs, len(one.members)]
    print(f"\n{row([*heading, '#MEMBERS'], widths)}\n{row(cells, widths)}")


def print_members(one: DescribedGroup, verbose: bool) -> None:
    if not has_rows(one, len(one.members)):
        return
    members = sorted(one.members, key=lambda member: member.id)
    widths = [widest([one.id]), *(widest(getattr(each, name) for each in members) for name in ("id", "host"))]
    widths += [widest(each.client_id for each in members), 12, *([13] if verbose else []), 0]
    heading = ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *(["MEMBER-EPOCH"] if verbose else [])]
    lines: list[list[object]] = [[*heading, "ASSIGNMENT"]]
    for each in members:
        places = assigned(each.partitions) if each.partitions else ""
        epoch = [each.epoch] if verbose else []
        lines.append([one.id, each.id, each.host, each.client_id, len(each.partitions), *epoch, places])
    sys.stdout.writelines(f"\n{row(line, widths)}" for line in lines)
    print()


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
    """Why a group is not deleted, before anybody is asked."""
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
    sys.stdout.writelines(f"\n{row(line, widths)}" for line in [("TOPIC", "STATUS"), *done.items()])
    print()


DOING = {
    "list": list_groups,
    "describe": describe,
    "delete": delete,
    "reset-offsets": reset,
    "delete-offsets": delete_offsets,
}

TOOL = Tool(
    "kafka-share-groups",
    "This tool helps to list, describe, reset and delete share groups.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("group", "share group", "The group; may be repeated."),
        Flag("topic", "topic", "The topic; to reset also some of its partitions: topic:0,2."),
        Flag("all-topics", help="With --reset-offsets: all topics of the group."),
        Flag("list", help="List share groups."),
        Flag("describe", help="Show groups, with their offsets if nothing else is said."),
        Flag("all-groups", help="All share groups."),
        Flag("delete", help="Delete groups that have no members."),
        Flag("timeout", "timeout (ms)", "How long a cluster may take to answer.", int, 30_000),
        Flag("reset-offsets", help="Set where a group without members begins."),
        Flag("delete-offsets", help="Forget where a group is in topics."),
        Flag("dry-run", help="Only show what would be set."),
        Flag("execute", help="Set it."),
        Flag("to-datetime", "datetime", "The first record since then, 2026-11-15T10:00:00.000."),
        Flag("to-earliest", help="The first record."),
        Flag("to-latest", help="Behind the last record."),
        Flag("members", help="Describe members.", beside=("describe",)),
        Flag("offsets", help="Describe offsets.", beside=("describe",)),
        Flag(
            "state",
            "states",
            "Describe the state; or list states, or only groups in these.",
            optional=True,
            beside=("describe", "list"),
        ),
        Flag("verbose", help="Describe more.", beside=("describe",)),
    ),
    run,
    tell_usage,
)
