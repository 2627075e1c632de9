"""kafka-groups: lists groups of all types."""

from __future__ import annotations

from moldau.admin import groups
from moldau.admin.groups import ListedGroup
from moldau.cli.kafka import java_order
from moldau.cli.kafka.exceptions import words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage, forbid
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, Terse, connect, tell_usage
from moldau.client import ClientError

TYPES = ("classic", "consumer", "share", "streams")
KINDS = ("consumer", "share", "streams")  # types that have a flag
LEAST_WIDTH = 20


def run(options: Options) -> int:
    if "list" not in options:
        raise Usage("Command must include exactly one action: --list.")
    if "group-type" in options and options["group-type"].lower() not in TYPES:
        raise Terse("--group-type must be a valid group type.")
    for kind in KINDS:
        forbid(options, kind, ("group-type", "protocol", *KINDS))
    try:
        with connect(options) as client:
            found = {one.id: one for one in groups.listed(client) if is_wanted(options, one)}
    except ClientError as error:
        print(f"Error while executing groups command : {words_of(error)}")
        return FAILED
    print(table([found[name] for name in java_order.names(found)]))
    return OK


def is_wanted(options: Options, one: ListedGroup) -> bool:
    kind = one.type.lower()
    if "group-type" in options:
        same = "protocol" not in options or one.protocol == options["protocol"]
        return kind == options["group-type"].lower() and same
    if "protocol" in options:
        return one.protocol == options["protocol"]
    if "consumer" in options:
        return one.protocol in ("", "consumer") or kind == "consumer"
    return all(kind == flag for flag in options.given("share", "streams"))


def table(listed: list[ListedGroup]) -> str:
    rows = [(one.id, one.type.capitalize(), one.protocol) for one in listed]
    width = max([LEAST_WIDTH, *(len(text) for row in rows for text in row)])
    lines = [" ".join(f"{text:<{width}}" for text in ("GROUP", "TYPE", "PROTOCOL"))]
    lines += ["".join(f"{text:<{width}} " for text in row) for row in rows]
    return "\n".join(lines)


TOOL = Tool(
    "kafka-groups",
    "This tool helps to list groups of all types.",
    (
        Flag("bootstrap-server", BOOTSTRAP.argument, BOOTSTRAP.help, required=True),
        COMMAND_CONFIG,
        Flag("list", help="List groups."),
        Flag("group-type", "type", "List only groups of this type: classic, consumer, share, streams."),
        Flag("protocol", "protocol", "List only groups of this protocol."),
        Flag("consumer", help="List only groups of consumers, classic and new."),
        Flag("share", help="List only share groups."),
        Flag("streams", help="List only streams groups."),
    ),
    run,
    tell_usage,
)
