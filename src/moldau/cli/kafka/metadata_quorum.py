"""kafka-metadata-quorum: prints the replicas of the cluster's metadata and their lag."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from moldau.admin import clusters
from moldau.admin.clusters import Quorum, Replica
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.java_text import base64_id, table
from moldau.cli.kafka.running import OK, Terse, reach
from moldau.cli.kafka.subcommands import CONNECTION, Command, ParsedTool
from moldau.client import Client
from moldau.client import messages as m

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
        where = endpoints(client)
        cluster = clusters.described(client).id
    human = "human-readable" in options
    print(replication(quorum, human) if "replication" in options else status(cluster, quorum, where))
    return OK


def endpoints(client: Client) -> dict[int, list[str]]:
    """Return the listeners of each controller; old brokers do not name them."""
    row = m.DescribeQuorumRequest_TopicData(clusters.METADATA_TOPIC, [m.DescribeQuorumRequest_PartitionData(0)])
    answer = client.send(m.DescribeQuorumRequest([row]))
    return {
        node.node_id: [f"{one.name}://{one.host}:{one.port}" for one in node.listeners] for node in answer.nodes or ()
    }


def leader_of(quorum: Quorum) -> Replica:
    return next(one for one in quorum.replicas if one.is_voter and one.id == quorum.leader)


def replication(quorum: Quorum, human: bool) -> str:
    leader = leader_of(quorum)
    voters = [one for one in quorum.replicas if one.is_voter and one.id != quorum.leader]
    observers = [one for one in quorum.replicas if not one.is_voter]
    ordered = [(leader, "Leader"), *((one, "Follower") for one in voters), *((one, "Observer") for one in observers)]
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


def status(cluster: str, quorum: Quorum, where: Mapping[int, Sequence[str]]) -> str:
    leader = leader_of(quorum)
    voters = [one for one in quorum.replicas if one.is_voter]
    last = min(voters, key=lambda one: one.log_end_offset)
    known = leader.last_caught_up_ms >= 0 and last.last_caught_up_ms >= 0
    lag_ms = 0 if last.id == leader.id else leader.last_caught_up_ms - last.last_caught_up_ms if known else -1
    lines = (
        ("ClusterId:", cluster),
        ("LeaderId:", quorum.leader),
        ("LeaderEpoch:", quorum.leader_epoch),
        ("HighWatermark:", quorum.high_watermark),
        ("MaxFollowerLag:", leader.log_end_offset - last.log_end_offset),
        ("MaxFollowerLagTimeMs:", lag_ms),
        ("CurrentVoters:", replicas(voters, where)),
        ("CurrentObservers:", replicas([one for one in quorum.replicas if not one.is_voter], where)),
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


def refused(options: Options) -> int:
    raise Terse("The quorum of Moldau has one voter, and it stays; see process.roles in the settings of brokers.")


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
        Command("add-controller", "Add a controller (refused: the quorum has one voter)", (DRY_RUN,), refused),
        Command(
            "remove-controller",
            "Remove a controller (refused: the quorum has one voter)",
            (
                Flag("controller-id", "CONTROLLER_ID", "the id of the controller", int, required=True),
                Flag("controller-directory-id", "DIRECTORY_ID", "the id of its directory", required=True),
                DRY_RUN,
            ),
            refused,
        ),
    ),
    one_of=("bootstrap-server", "bootstrap-controller"),
)
