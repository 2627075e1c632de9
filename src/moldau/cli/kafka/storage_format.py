"""`kafka-storage format`: what a new node's directories hold before its first start, as Kafka writes it.

Each directory gets `meta.properties` and `bootstrap.checkpoint`, the feature levels and credentials with which a new
cluster begins. With a dynamic quorum (KIP-853) the metadata directory gets the first snapshot of the metadata log too,
which names the voters; with static voters, and for a Moldau that is alone, the settings say who votes.

meta.properties is written last, so a directory that has it is complete.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.cli.kafka import java_order
from moldau.cli.kafka.feature_facts import known_release, name_and_level, release_of
from moldau.cli.kafka.flags import Options
from moldau.cli.kafka.initial_voters import Voter, parse_voters, voters_record
from moldau.cli.kafka.java_text import base64_id
from moldau.cli.kafka.releases import DEPENDENCIES, FEATURES, LATEST, METADATA, RELEASES, highest, levels_of
from moldau.cli.kafka.running import OK, Terse
from moldau.cli.kafka.scram_arguments import parse_credential
from moldau.cli.kafka.storage_settings import NodeSettings, read_node
from moldau.client.java_settings import read_file
from moldau.log.checkpoints import decode_id, random_id, write_properties
from moldau.log.disk import OsDisk
from moldau.machines.metadata import records as metadata_records
from moldau.machines.metadata.checkpoints import DYNAMIC_VOTERS, checkpoint, metadata_values, voter_controls
from moldau.settings.properties import read_properties
from moldau.wire import messages as m

META, BOOTSTRAP = "meta.properties", "bootstrap.checkpoint"
FIRST_SNAPSHOT = f"{metadata_records.TOPIC}-0/{0:020d}-{0:010d}.checkpoint"
KRAFT = "kraft.version"
SCRAM_RELEASE = "3.5-IV2"  # the first whose metadata has credentials
SALT_BYTES = 32
HIDDEN = "(hidden)"
_CLUSTER_ID = re.compile(r"[!-\[\]-~]+")  # what stands in a properties file as it is


def format_directories(options: Options) -> int:
    """Format the directories that are not formatted yet. The checks come in Kafka's order."""
    node = read_node(read_file(options["config"]))
    cluster = options["cluster-id"]
    if not _CLUSTER_ID.fullmatch(cluster):
        raise Terse(f"'{cluster}' cannot be the id of a cluster: it has no blanks; see kafka-storage random-uuid.")
    release, wanted = requested_levels(options)
    voters = initial_voters(options, node)
    release = effective_release(release, wanted)
    levels = effective_levels(release, wanted, has_dynamic_quorum(node, voters))
    records = bootstrap_records(release, levels, options.all("add-scram"))
    state = inspect(node, cluster)
    if state.formatted and "ignore-formatted" not in options:
        raise Terse(
            f"Log directory {state.formatted[0]} is already formatted. Use --ignore-formatted to ignore this directory "
            "and format the others."
        )
    for name in state.unreadable:
        print(f"I/O error trying to read log directory {name}. Ignoring...")
    if state.unreadable and not state.empty and not state.formatted:
        raise Terse("No available log directories to format.")
    if not state.empty:
        print("All of the log directories are already formatted.")
        return OK
    print(f"Bootstrap metadata: {bootstrap_text(records)}")
    for name in state.empty:
        format_directory(name, node, cluster, voters, records)
    return OK


def requested_levels(options: Options) -> tuple[str | None, dict[str, int]]:
    """Return the release and the levels that were asked for; the last level of a feature counts."""
    text = options["release-version"]
    release = None if text is None else known_release(text, LATEST)
    return release, dict(name_and_level(one) for one in options.all("feature"))


def initial_voters(options: Options, node: NodeSettings) -> dict[int, Voter]:
    """Return the voters of a dynamic quorum, if it begins here."""
    given = options.given("standalone", "initial-controllers", "no-initial-controllers")
    if node.has_static_voters and {"standalone", "initial-controllers"} & {*given}:
        raise Terse(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if "initial-controllers" in given:
        return parse_voters(options["initial-controllers"])
    if "standalone" in given:
        return {node.id: standalone_voter(node)}
    if node.is_controller and not (given or node.has_static_voters or node.is_alone):
        raise Terse(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    return {}


def standalone_voter(node: NodeSettings) -> Voter:
    if not node.is_controller:
        raise Terse("You can only use --standalone on a controller.")
    if node.controller_address is None:
        raise Terse(
            f"No controller listeners found. Add {node.controller_listener}://HOST:PORT to listeners; a broker of "
            "Moldau that stays alone needs neither the listener nor --standalone."
        )
    return Voter(node.id, *node.controller_address, decode_id(random_id()))


def has_dynamic_quorum(node: NodeSettings, voters: Mapping[int, Voter]) -> bool:
    return bool(voters) or not (node.has_static_voters or node.is_alone)


def effective_release(release: str | None, wanted: Mapping[str, int]) -> str:
    """Return the release whose levels are the defaults."""
    if METADATA not in wanted:
        return release or LATEST
    if release is not None:
        raise Terse(f"Use --release-version instead of --feature {METADATA}=X to avoid ambiguity.")
    named = release_of(wanted[METADATA])
    if wanted[METADATA] > RELEASES[LATEST]:
        raise Terse(f"{METADATA} {named} is not yet stable.")
    return named


def effective_levels(release: str, wanted: Mapping[str, int], is_dynamic: bool) -> dict[str, int]:
    """Return the level of each feature: the one that was asked for, or that of the release."""
    for name in sorted(wanted):
        if name != METADATA and name not in FEATURES:
            raise Terse(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(FEATURES))}")
    check_kraft_version(wanted.get(KRAFT), is_dynamic)
    levels = {**levels_of(release), KRAFT: DYNAMIC_VOTERS if is_dynamic else 0, **wanted}
    for name in sorted(FEATURES):
        if not 0 <= levels[name] <= highest(name):
            raise Terse(f"No feature:{name} with feature level {levels[name]}")
        needed = DEPENDENCIES.get((name, levels[name]), 0)
        if levels[METADATA] < needed:
            raise Terse(f"{name} could not be set to {levels[name]} because it depends on {METADATA} level {needed}")
    return levels


def check_kraft_version(level: int | None, is_dynamic: bool) -> None:
    """Refuse a level of kraft.version that does not fit the kind of quorum."""
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    condition = f"controller.quorum.voters is empty and one of the flags {flags} is used."
    if level == 0 and is_dynamic:
        advice = "try removing the --feature flag for kraft.version."
        raise Terse(f"Cannot set {KRAFT} to 0 if {condition} For dynamic controllers support, {advice}")
    if level and not is_dynamic:
        advice = f"try using one of {flags} and removing controller.quorum.voters."
        raise Terse(f"Cannot set {KRAFT} to {level} unless {condition} For dynamic controllers support, {advice}")


def bootstrap_records(release: str, levels: Mapping[str, int], credentials: Sequence[str]) -> list[Any]:
    """Return the records with which a new cluster begins. kraft.version is a control record of the log instead."""
    records: list[Any] = [m.FeatureLevelRecord(METADATA, levels[METADATA])]
    others = (name for name in sorted(levels) if name not in (METADATA, KRAFT) and levels[name])
    records += [m.FeatureLevelRecord(name, levels[name]) for name in others]
    if credentials and RELEASES[release] < RELEASES[SCRAM_RELEASE]:
        raise Terse(f"SCRAM is only supported in {METADATA} {SCRAM_RELEASE} or later.")
    return records + [parse_credential(one, lambda: os.urandom(SALT_BYTES)) for one in credentials]


def bootstrap_text(records: Sequence[Any]) -> str:
    """Describe the records as Kafka does, without the secrets of credentials."""
    texts = ", ".join(f"ApiMessageAndVersion({record_text(record)} at version 0)" for record in records)
    level = records[0].feature_level
    return f"BootstrapMetadata(records=[{texts}], metadataVersionLevel={level}, source=format command)"


def record_text(record: Any) -> str:
    if isinstance(record, m.FeatureLevelRecord):
        return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
    secrets = ", ".join(f"{name}={HIDDEN}" for name in ("salt", "storedKey", "serverKey"))
    who = f"name='{record.name}', mechanism={record.mechanism}"
    return f"UserScramCredentialRecord({who}, {secrets}, iterations={record.iterations})"


@dataclass(slots=True)
class Directories:
    """The directories by their state, each list in the order in which Kafka prints."""

    formatted: list[str] = field(default_factory=list[str])
    empty: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])


def inspect(node: NodeSettings, cluster: str) -> Directories:
    """Find out which directories are formatted; one of another cluster or node is refused."""
    state = Directories()
    for name in java_order.names(node.directories):
        path = os.path.join(name, META)
        try:
            meta = read_properties(path)
        except FileNotFoundError:
            state.empty.append(name)
            continue
        except OSError:
            meta = {}
        if {"cluster.id", "node.id"} <= meta.keys():
            check_owner(path, meta, node, cluster)
            state.formatted.append(name)
        else:
            state.unreadable.append(name)
    state.formatted = java_order.copied_names(state.formatted)
    return state


def check_owner(path: str, meta: Mapping[str, str], node: NodeSettings, cluster: str) -> None:
    if meta["cluster.id"] != cluster:
        raise Terse(f"Invalid cluster.id in: {path}. Expected {cluster}, but read {meta['cluster.id']}")
    if meta["node.id"] != str(node.id):
        raise Terse(
            f"Stored node id {meta['node.id']} doesn't match previous node id {node.id} in {path}. If you moved your "
            "data, make sure your configured node id matches. If you intend to create a new node, you should remove "
            "all data in your data directories."
        )


def format_directory(
    name: str, node: NodeSettings, cluster: str, voters: Mapping[int, Voter], records: Sequence[Any]
) -> None:
    """Write the files of one directory."""
    is_home = name == node.metadata_directory
    release = release_of(records[0].feature_level)
    print(f"Formatting {directory_kind(is_home, node.id, voters)} {name} with {METADATA} {release}.")
    disk, now = OsDisk(), time.time_ns() // 1_000_000
    disk.mkdir(name)
    # No record of a log stands behind the first levels of a cluster, so none has a time.
    first = checkpoint([], metadata_values(records, now), now, 0, contained_ms=0)
    disk.write_atomic(os.path.join(name, BOOTSTRAP), first)
    if is_home and voters:
        controls = voter_controls(voters_record(voters.values(), node.controller_listener), now)
        path = os.path.join(name, FIRST_SNAPSHOT)
        disk.mkdir(os.path.dirname(path))
        disk.write_atomic(path, checkpoint(controls, [], now, 0))
        disk.sync_dir(name)
    own = voters[node.id].directory if is_home and node.id in voters else None
    directory = random_id() if own is None else base64_id(own)
    pairs = {"cluster.id": cluster, "directory.id": directory, "node.id": str(node.id), "version": "1"}
    write_properties(disk, os.path.join(name, META), pairs)


def directory_kind(is_home: bool, node: int, voters: Mapping[int, Voter]) -> str:
    if not is_home:
        return "data directory"
    if not voters:
        return "metadata directory"
    return "dynamic metadata voter directory" if node in voters else "dynamic metadata directory"
