"""kafka-storage: inspects and formats the directories of a broker, makes random ids, shows levels of features."""

from __future__ import annotations

from pathlib import Path

from moldau.cli.kafka.feature_facts import feature_dependencies, version_mapping
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.running import FAILED, OK
from moldau.cli.kafka.storage_settings import directories
from moldau.cli.kafka.subcommands import Command, ParsedTool
from moldau.client.java_settings import read_file
from moldau.log.checkpoints import random_id
from moldau.settings.properties import read_properties

META = "meta.properties"


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
    """Format the directories; the records and files that this takes are imported only here."""
    from moldau.cli.kafka.storage_format import format_directories

    return format_directories(options)


def random_uuid(options: Options) -> int:
    print(random_id())
    return OK


CONFIG = Flag("config", "CONFIG", "file of settings of the broker", required=True, short="c")
RELEASE = Flag("release-version", "RELEASE_VERSION", "release to take the levels from", short="r")
QUORUM = ("standalone", "no-initial-controllers", "initial-controllers")

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
                    "add a user of a new cluster: SCRAM-SHA-256=[name=alice,password=secret]; may be repeated",
                    separator="\0",
                    short="S",
                ),
                Flag("ignore-formatted", help="skip directories that are formatted already", short="g"),
                RELEASE,
                Flag(
                    "feature",
                    "FEATURE",
                    "set the first level of a feature, group.version=1; may be repeated",
                    separator="\0",
                    short="f",
                ),
                Flag("standalone", help="begin a dynamic quorum whose only voter is this controller", short="s"),
                Flag("no-initial-controllers", help="leave it to the quorum who votes", short="N"),
                Flag(
                    "initial-controllers",
                    "INITIAL_CONTROLLERS",
                    "begin a dynamic quorum of these voters, ID@HOST:PORT:DIRECTORY,..., the same on all nodes",
                    short="I",
                ),
            ),
            format_directories,
            at_most_one=QUORUM,
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
