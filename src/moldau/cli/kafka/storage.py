"""kafka-storage: inspects and formats the directories of a broker, makes random ids, shows levels of features."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

from moldau.cli.kafka.feature_facts import feature_dependencies, known_release, version_mapping
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.java_settings import read_file
from moldau.cli.kafka.java_text import base64_id
from moldau.cli.kafka.releases import LATEST
from moldau.cli.kafka.running import FAILED, OK, Terse
from moldau.cli.kafka.subcommands import Command, ParsedTool
from moldau.settings.properties import read_properties

META = "meta.properties"
DEFAULT_DIR = "/tmp/kafka-logs"  # Kafka's default of log.dirs
RESERVED = (bytes(16), bytes(15) + b"\x01")
_ID = re.compile(r"[A-Za-z0-9_-]{22}")


def directories(config: dict[str, str]) -> list[str]:
    """Return the directories that a file of settings names, sorted."""
    named = config.get("log.dirs") or config.get("log.dir") or DEFAULT_DIR
    found = {part.strip() for part in named.split(",") if part.strip()}
    if config.get("metadata.log.dir"):
        found.add(config["metadata.log.dir"])
    return sorted(found)


def info(options: Options) -> int:
    """Print the directories, their metadata and their problems."""
    found, problems, metas = [], [], []
    for name in directories(read_file(options["config"])):
        path = Path(name)
        if not path.exists():
            problems.append(f"{name} does not exist")
        elif not path.is_dir():
            problems.append(f"{name} is not a directory")
        else:
            found.append(name)
            if (path / META).exists():
                metas.append(read_properties(str(path / META)))
            else:
                problems.append(f"{name} is not formatted.")
    for field, what in (("cluster.id", "cluster IDs"), ("node.id", "node IDs")):
        if len({meta.get(field) for meta in metas}) > 1:
            problems.append(f"Mismatched {what} between storage directories.")
            break
    print_list("Found log director{}:", found, "y", "ies")
    if metas:
        pairs = ", ".join(f"{name}={metas[0][name]}" for name in sorted(metas[0]))
        print(f"Found metadata: {{{pairs}}}\n")
    print_list("Found problem{}:", problems, "", "s")
    return FAILED if problems else OK


def print_list(heading: str, lines: list[str], one: str, many: str) -> None:
    if lines:
        print(heading.format(one if len(lines) == 1 else many))
        print(*(f"  {line}" for line in lines), "", sep="\n")


def format_directories(options: Options) -> int:
    """Write meta.properties to the directories; a broker of Moldau creates the rest when it starts."""
    config = read_file(options["config"])
    cluster = options["cluster-id"]
    if not _ID.fullmatch(cluster):
        raise Terse(f"Cluster ID string {cluster} does not appear to be a valid UUID: it has 22 characters of base64.")
    release = known_release(options["release-version"] or LATEST)
    if release != LATEST:
        raise Terse(f"A new cluster of Moldau begins at {LATEST}; leave --release-version out.")
    node = config.get("node.id", config.get("broker.id", "1"))
    done = [name for name in directories(config) if (Path(name) / META).exists()]
    if done and "ignore-formatted" not in options:
        raise Terse(
            f"Log directory {done[0]} is already formatted. Use --ignore-formatted to ignore this directory "
            "and format the others."
        )
    todo = [name for name in directories(config) if name not in done]
    if not todo:
        print("All of the log directories are already formatted.")
    for name in todo:
        write_meta(Path(name), cluster, node)
        print(f"Formatting data directory {name} with metadata.version {release}.")
    return OK


def write_meta(path: Path, cluster: str, node: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    pairs = {"cluster.id": cluster, "directory.id": random_id(), "node.id": node, "version": "1"}
    partial = path / f"{META}.tmp"
    partial.write_text("#\n" + "".join(f"{name}={value}\n" for name, value in pairs.items()))
    os.replace(partial, path / META)


def random_id() -> str:
    """Make a random id in base64 that is not reserved and does not start like a flag."""
    while True:
        raw = uuid.uuid4().bytes
        text = base64_id(raw)
        if raw not in RESERVED and not text.startswith("-"):
            return text


def random_uuid(options: Options) -> int:
    print(random_id())
    return OK


CONFIG = Flag("config", "CONFIG", "file of settings of the broker", required=True, short="c")
RELEASE = Flag("release-version", "RELEASE_VERSION", "release to take the levels from", short="r")
ONE_VOTER = "the quorum of Moldau has one voter and forms itself."

TOOL = ParsedTool(
    "kafka-storage",
    "kafka-storage",
    "The Kafka storage tool.",
    (),
    (
        Command("info", "Get information about the Kafka log directories on this node.", (CONFIG,), info),
        Command(
            "format",
            "Format the Kafka log directories on this node.",
            (
                CONFIG,
                Flag("cluster-id", "CLUSTER_ID", "id of the cluster, see random-uuid", required=True, short="t"),
                Flag(
                    "add-scram",
                    "ADD_SCRAM",
                    "first credential",
                    short="S",
                    refused="start the broker and use kafka-configs --alter --entity-type users.",
                ),
                Flag("ignore-formatted", help="skip directories that are formatted already", short="g"),
                RELEASE,
                Flag(
                    "feature",
                    "FEATURE",
                    "set the level of a feature",
                    short="f",
                    refused="start the broker and use kafka-features upgrade.",
                ),
                Flag("standalone", help="start a quorum of one voter, as always", short="s"),
                Flag("no-initial-controllers", help="discover the voters, as always", short="N"),
                Flag("initial-controllers", "CONTROLLERS", "name the voters", short="I", refused=ONE_VOTER),
            ),
            format_directories,
        ),
        Command("version-mapping", "Show the levels of features as of a release.", (RELEASE,), version_mapping),
        Command(
            "feature-dependencies",
            "Show what levels of features need.",
            (Flag("feature", "FEATURE", "name a feature and its level", required=True, separator="\0", short="f"),),
            feature_dependencies,
        ),
        Command("random-uuid", "Print a random UUID.", (), random_uuid),
    ),
)
