"""kafka-metadata-quorum: prints the replicas of the cluster's metadata and their lag; adds and removes voters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from moldau.admin import clusters, voters
from moldau.admin.clusters import Quorum, Replica
from moldau.admin.mistakes import Mistake
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.java_text import base64_id, table
from moldau.cli.kafka.running import OK, Terse, reach
from moldau.cli.kafka.subcommands import CONNECTION, Command, ParsedTool
from moldau.client.java_settings import read_file

HEADERS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
NO_DIRECTORY = bytes(16)


def describe(options: Options) -> int:
    if len(options.given("status", "replication")) == 2:
        raise Terse("Only one of --status or --replication should be specified with describe sub-command")
    if not options.given("status", "replication"):
        raise Terse("One of --status or --replication must be specified with describe sub-command")
    if "status" in options and "human-readable" in options:
        raise Terse("The option --human-readable is only supported along with --replication")
    with reach(options) as client:
        quorum = clusters.quorum(client)
        cluster = clusters.described(client).id
    human = "human-readable" in options
    print(replication(quorum, human) if "replication" in options else status(cluster, quorum))
    return OK


def leader_of(quorum: Quorum) -> Replica:
    return next(one for one in quorum.replicas if one.is_voter and one.id == quorum.leader)


def replication(quorum: Quorum, human: bool) -> str:
    leader = leader_of(quorum)
    followers = [one for one in quorum.replicas if one.is_voter and one.id != quorum.leader]
    observers = [one for one in quorum.replicas if not one.is_voter]
    ordered = [(leader, "Leader"), *((one, "Follower") for one in followers), *((one, "Observer") for one in observers)]
    rows = [
        (
            one.id,
            base64_id(one.directory_id),
            one.log_end_offset,
            leader.log_end_offset - one.log_end_offset,
            moment(one.last_fetch_ms, human),
            moment(one.last_caught_up_ms, human),
            role,
        )
        for one, role in ordered
    ]
    return table(HEADERS, rows)


def moment(time_ms: int, human: bool) -> str:
    if time_ms < 0 or not human:
        return str(time_ms)
    return f"{int(time.time() * 1000) - time_ms} ms ago"


def status(cluster: str, quorum: Quorum) -> str:
    leader = leader_of(quorum)
    voting = [one for one in quorum.replicas if one.is_voter]
    last = min(voting, key=lambda one: one.log_end_offset)
    known = leader.last_caught_up_ms >= 0 and last.last_caught_up_ms >= 0
    lag_ms = 0 if last.id == leader.id else leader.last_caught_up_ms - last.last_caught_up_ms if known else -1
    lines = (
        ("ClusterId:", cluster),
        ("LeaderId:", quorum.leader),
        ("LeaderEpoch:", quorum.leader_epoch),
        ("HighWatermark:", quorum.high_watermark),
        ("MaxFollowerLag:", leader.log_end_offset - last.log_end_offset),
        ("MaxFollowerLagTimeMs:", lag_ms),
        ("CurrentVoters:", replicas(voting, quorum.endpoints)),
        ("CurrentObservers:", replicas([one for one in quorum.replicas if not one.is_voter], quorum.endpoints)),
    )
    return "\n".join(f"{name:<23} {value}" for name, value in lines)


def replicas(listed: Iterable[Replica], where: Mapping[int, Sequence[str]]) -> str:
    return f"[{', '.join(replica(one, where.get(one.id, ())) for one in listed)}]"


def replica(one: Replica, listeners: Sequence[str]) -> str:
    parts = [f'"id": {one.id}']
    if one.directory_id != NO_DIRECTORY:
        parts.append(f'"directoryId": "{base64_id(one.directory_id)}"')
    if listeners:
        named = ", ".join(f'"{listener}"' for listener in listeners)
        parts.append(f'"endpoints": [{named}]')
    return f"{{{', '.join(parts)}}}"


def add_controller(options: Options) -> int:
    if "command-config" not in options:
        raise Terse(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    dry = "dry-run" in options
    try:
        voter = voters.of_settings(read_file(options["command-config"]))
    except Mistake as error:
        raise Terse(str(error)) from None
    if not dry:
        with reach(options) as client:
            voters.add(client, voter)
    where = ", ".join(map(str, voter.endpoints))
    done = "DRY RUN of adding" if dry else "Added"
    print(f"{done} controller {voter.id} with directory id {base64_id(voter.directory_id)} and endpoints: {where}")
    return OK


def remove_controller(options: Options) -> int:
    controller, directory, dry = options["controller-id"], options["controller-directory-id"], "dry-run" in options
    if controller < 0:
        raise Terse(f"Invalid negative --controller-id: {controller}")
    try:
        raw = voters.id_of(directory)
    except Mistake as error:
        raise Terse(f"Failed to parse --controller-directory-id: {error}") from None
    if not dry:
        with reach(options) as client:
            voters.remove(client, controller, raw)
    done = "DRY RUN of removing " if dry else "Removed "  # Kafka has two blanks, too
    print(f"{done} KRaft controller {controller} with directory id {directory}")
    return OK


DRY_RUN = Flag("dry-run", help="only say what would be done")

TOOL = ParsedTool(
    "kafka-metadata-quorum",
    "kafka-metadata-quorum",
    "This tool describes kraft metadata quorum status.",
    CONNECTION,
    (
        Command(
            "describe",
            "Describe the metadata quorum info",
            (
                Flag("status", help="show a short summary"),
                Flag("replication", help="show each replica"),
                Flag("human-readable", help="show how long ago instead of timestamps"),
            ),
            describe,
        ),
        Command("add-controller", "Add a controller to the KRaft controller cluster", (DRY_RUN,), add_controller),
        Command(
            "remove-controller",
            "Remove a controller from the KRaft controller cluster",
            (
                Flag("controller-id", "CONTROLLER_ID", "the id of the controller", int, required=True, short="i"),
                Flag("controller-directory-id", "DIRECTORY_ID", "the id of its directory", required=True, short="d"),
                DRY_RUN,
            ),
            remove_controller,
        ),
    ),
    one_of=("bootstrap-server", "bootstrap-controller"),
)
