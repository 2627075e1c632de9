"""What kafka-consumer-groups prints: tables whose columns are as wide as their widest value, or a minimum."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from moldau.admin import TopicPartition, by_topic
from moldau.admin.groups import DescribedGroup, GroupMember, Lag, ListedGroup
from moldau.cli.kafka.exceptions import spoken, words
from moldau.client import Error

MISSING = "-"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
OF_GROUP = (Error.INVALID_GROUP_ID, Error.GROUP_ID_NOT_FOUND, Error.GROUP_AUTHORIZATION_FAILED, Error.NON_EMPTY_GROUP)
OF_PARTITIONS = (Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.TOPIC_AUTHORIZATION_FAILED, Error.UNKNOWN_TOPIC_OR_PARTITION)


def complain(sentence: str) -> None:
    print(f"\nError: {sentence}")


def regex(pattern: str) -> str:
    """Say whether this is a regular expression; the engine of the broker knows fewer of them."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"The regular expression `{pattern}` is invalid: {error.msg.capitalize()}."
    return f"The regular expression `{pattern}` is valid."


def row(values: Sequence[object], widths: Sequence[int]) -> str:
    """Put values into columns; the last one has the width 0 if it is not padded."""
    return " ".join(f"{value!s:<{width}}" for value, width in zip(values, widths, strict=True))


def print_rows(lines: Iterable[Sequence[object]], widths: Sequence[int]) -> None:
    """Print a table after an empty line."""
    sys.stdout.writelines(f"\n{row(line, widths)}" for line in lines)
    print()


def widest(values: Iterable[str], least: int = 15) -> int:
    return max([least, *map(len, values)])


def has_rows(group: DescribedGroup, count: int, kind: str = "Consumer") -> bool:
    """Report the state of the group; return whether there is anything to print."""
    if group.state == "Dead":
        complain(f"{kind} group '{group.id}' does not exist.")
    elif group.state == "Empty":
        sys.stdout.flush()
        print(f"\n{kind} group '{group.id}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING and kind == "Consumer":
        sys.stdout.flush()
        print(f"\nWarning: Consumer group '{group.id}' is rebalancing.", file=sys.stderr)
    return group.state != "Dead" and count > 0


def print_listing(listed: Sequence[ListedGroup], with_type: bool, with_state: bool) -> None:
    widths = [widest(one.id for one in listed) + 10, *([20] * (with_type + with_state))]
    heading = ["GROUP", *(["TYPE"] if with_type else []), *(["STATE"] if with_state else [])]
    print(row(heading, widths))
    for one in listed:
        cells = [one.id, *([one.type.capitalize()] if with_type else []), *([one.state] if with_state else [])]
        print(row(cells, widths))


def print_offsets(group: DescribedGroup, lags: Sequence[Lag], verbose: bool) -> None:
    """Print partitions by member, the member with most partitions first, and then those without a member."""
    ordered = by_member(group, lags)
    if not has_rows(group, len(ordered)):
        return
    cells = [offset_cells(group.id, lag, verbose) for lag in ordered]
    epoch = [15] if verbose else []
    ids, hosts = (widest(str(line[-column]) for line in cells) for column in (3, 2))
    widths = [widest([group.id]), widest(lag.topic for lag in ordered), 10, *epoch, 15, 15, 15, ids, hosts, 0]
    heading = ["GROUP", "TOPIC", "PARTITION", *(["LEADER-EPOCH"] if verbose else []), "CURRENT-OFFSET"]
    heading += ["LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]
    print_rows([heading, *cells], widths)


def by_member(group: DescribedGroup, lags: Sequence[Lag]) -> list[Lag]:
    members = sorted(group.members, key=lambda one: len(one.partitions), reverse=True)
    held = [lag for member in members for lag in lags if lag.member is not None and lag.member.id == member.id]
    return held + [lag for lag in lags if lag.member is None]


def offset_cells(group: str, lag: Lag, verbose: bool) -> list[object]:
    known = lag.offset is not None
    epoch = [MISSING if lag.leader_epoch < 0 or not known else lag.leader_epoch] if verbose else []
    behind = lag.end - lag.offset if lag.end is not None and lag.offset is not None else MISSING
    who = [lag.member.id, lag.member.host, lag.member.client_id] if lag.member else [MISSING] * 3
    offset = lag.offset if known else MISSING
    end = MISSING if lag.end is None else lag.end
    return [group, lag.topic, lag.partition, *epoch, offset, end, behind, *who]


def print_members(group: DescribedGroup, verbose: bool) -> None:
    """Print members in the order of the answer; the heading is printed even without members."""
    there = has_rows(group, len(group.members))
    members = group.members if there else ()
    static = any(one.instance_id for one in members)
    mixed = len({one.is_classic for one in members if group.type == "Consumer"}) == 2
    widths = [widest([group.id]) if there else 15, widest(one.id for one in members)]
    widths += [widest((one.instance_id or "" for one in members), 17)] if static else []
    widths += [widest(one.host for one in members), widest(one.client_id for one in members), 15]
    heading = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else []), "HOST", "CLIENT-ID", "#PARTITIONS"]
    current = widest((assigned(one.partitions) for one in members), 20)
    target = widest((assigned(one.target) for one in members), 20)
    more = [15, current, 15, target, *([0] if mixed else [])]
    names = ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    names += ["UPGRADED"] if mixed else []
    print(f"\n{row(heading, widths)} {row(names, more) if verbose else ''}")
    for one in group.members:
        instance = [one.instance_id or ""] if static else []
        line = row([group.id, one.id, *instance, one.host, one.client_id, len(one.partitions)], widths)
        print(f"{line} {row(member_cells(group, one, mixed), more) if verbose else ''}")


def member_cells(group: DescribedGroup, one: GroupMember, mixed: bool) -> list[object]:
    epochs = [MISSING if epoch < 0 else epoch for epoch in (one.epoch, group.target_epoch)]
    upgraded = [str(not one.is_classic).lower()] if mixed else []
    return [epochs[0], assigned(one.partitions), epochs[1], assigned(one.target), *upgraded]


def assigned(places: Iterable[TopicPartition]) -> str:
    """Write partitions as `topic:0,1;other:2`."""
    parts = (f"{topic}:{','.join(map(str, sorted(ids)))}" for topic, ids in by_topic(places).items())
    return ";".join(sorted(parts)) or MISSING


def print_state(group: DescribedGroup, verbose: bool) -> None:
    if not has_rows(group, 1):
        return
    coordinator = f"{group.coordinator_address}  ({group.coordinator})"
    widths = [widest([group.id]), widest([coordinator], 25), 20, 20, *([15, 25] if verbose else []), 0]
    heading = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    heading += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"] if verbose else []
    epochs = [MISSING if epoch < 0 else epoch for epoch in (group.epoch, group.target_epoch)] if verbose else []
    cells = [group.id, coordinator, group.assignor or MISSING, group.state, *epochs, len(group.members)]
    print(f"\n{row([*heading, '#MEMBERS'], widths)}\n{row(cells, widths)}")


def print_new_offsets(by_group: Mapping[str, Mapping[TopicPartition, int]]) -> None:
    widths = [widest(by_group), widest(topic for new in by_group.values() for topic, _ in new), 10, 0]
    lines: list[Sequence[object]] = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]] if by_group else []
    lines += [[group, *place, offset] for group, new in by_group.items() for place, offset in new.items()]
    print_rows(lines, widths)


def print_deleted_offsets(group: str, whole: Error, done: Mapping[TopicPartition, Error]) -> None:
    if not whole:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif whole in OF_GROUP:
        complain(words(whole))
    elif whole in OF_PARTITIONS:
        complain("Encountered some partition-level error, see the follow-up details.")
    else:
        complain(f"Encountered some unknown error: {whole.name}")
    widths = [widest(topic for topic, _ in done), 10, 15]
    lines: list[Sequence[object]] = [["TOPIC", "PARTITION", "STATUS"]]
    for topic, partition in sorted(done, key=lambda place: f"{place[0]}{place[1]}"):
        error = done[topic, partition]
        status = f"Error: {spoken(error)}" if error else "Successful"
        lines.append([topic, partition if partition >= 0 else MISSING, status])
    print_rows(lines, widths)
