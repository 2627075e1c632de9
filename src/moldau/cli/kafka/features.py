"""kafka-features: shows and changes levels of features."""

from __future__ import annotations

from moldau.admin import clusters, features
from moldau.admin.features import Direction
from moldau.cli.kafka.exceptions import words
from moldau.cli.kafka.feature_facts import feature_dependencies, known_release, name_and_level, version_mapping
from moldau.cli.kafka.flags import Flag, Options
from moldau.cli.kafka.releases import METADATA, RELEASES, level_text, levels_of
from moldau.cli.kafka.running import OK, Terse, reach
from moldau.cli.kafka.subcommands import CONNECTION, Command, ParsedTool


def describe(options: Options) -> int:
    with reach(options) as client:
        brokers = clusters.described(client).brokers
        listed, epoch = clusters.features(client, brokers[0].id)
    for one in listed:
        levels = [level_text(one.name, level) for level in (one.lowest, one.highest, one.level)]
        print(
            f"Feature: {one.name:<42}SupportedMinVersion: {levels[0]:<17}SupportedMaxVersion: {levels[1]:<17}"
            f"FinalizedVersionLevel: {levels[2]:<17}Epoch: {epoch if epoch >= 0 else '-'}"
        )
    return OK


def downwards(options: Options) -> Direction:
    return Direction.UNSAFE_DOWNGRADE if "unsafe" in options else Direction.SAFE_DOWNGRADE


def upgrade(options: Options) -> int:
    return change("upgrade", options, Direction.UPGRADE)


def downgrade(options: Options) -> int:
    return change("downgrade", options, downwards(options))


def change(verb: str, options: Options, direction: Direction) -> int:
    if "release-version" in options and options.given("metadata", "feature"):
        raise Terse("Can not specify `release-version` with other feature flags.")
    wanted: dict[str, int] = {}
    if "release-version" in options:
        wanted = levels_of(known_release(options["release-version"]))
        if direction is Direction.UPGRADE:
            wanted = {name: level for name, level in wanted.items() if level > 0}
    if "metadata" in options:
        print(" `metadata` flag is deprecated and may be removed in a future release.")
        wanted[METADATA] = RELEASES[known_release(options["metadata"])]
    for text in options.all("feature"):
        name, level = name_and_level(text)
        if name in wanted:
            raise Terse(f"Feature {name} was specified more than once.")
        wanted[name] = level
    return update(verb, options, wanted, direction)


def disable(options: Options) -> int:
    names = options.all("feature")
    if twice := [name for name in names if names.count(name) > 1]:
        raise Terse(f"Feature {twice[0]} was specified more than once.")
    return update("disable", options, dict.fromkeys(names, 0), downwards(options))


def update(verb: str, options: Options, wanted: dict[str, int], direction: Direction) -> int:
    if not wanted:
        raise Terse(f"You must specify at least one feature to {verb}")
    dry = "dry-run" in options
    with reach(options) as client:
        done = features.update(client, wanted, direction, validate_only=dry)
    failures = 0
    for name in sorted(done):
        error, message = done[name]
        if error:
            what = f"disable {name}" if verb == "disable" else f"{verb} {name} to {wanted[name]}"
            print(f"{'Can not' if dry else 'Could not'} {what}. {words(error, message)}")
            failures += 1
        else:
            became = "disabled." if verb == "disable" else f"{verb}d to {wanted[name]}."
            print(f"{name} {'can be' if dry else 'was'} {became}")
    if failures:
        raise Terse(f"{failures} out of {len(wanted)} operation(s) failed.")
    return OK


FEATURE = Flag("feature", "FEATURE", "name a feature and its level, metadata.version=25; repeatable", separator="\0")
DRY_RUN = Flag("dry-run", help="validate only; change nothing")
UNSAFE = Flag("unsafe", help="downgrade even if data is lost")
RELEASE = Flag("release-version", "RELEASE_VERSION", "take the levels of all features from this release")
OLD = Flag("metadata", "METADATA", "set metadata.version to its level in this release")

TOOL = ParsedTool(
    "kafka-features",
    "kafka-features",
    "This tool manages feature flags in Kafka.",
    CONNECTION,
    (
        Command("describe", "Describes the current active feature flags.", (), describe),
        Command("upgrade", "Upgrade one or more feature flags.", (OLD, RELEASE, FEATURE, DRY_RUN), upgrade),
        Command(
            "downgrade", "Downgrade one or more feature flags.", (OLD, RELEASE, FEATURE, UNSAFE, DRY_RUN), downgrade
        ),
        Command("disable", "Disable one or more feature flags: level 0.", (FEATURE, UNSAFE, DRY_RUN), disable),
        Command("version-mapping", "Show the levels of features as of a release.", (RELEASE,), version_mapping),
        Command(
            "feature-dependencies",
            "Show what levels of features need.",
            (Flag("feature", "FEATURE", FEATURE.help, required=True, separator="\0"),),
            feature_dependencies,
        ),
    ),
    one_of=("bootstrap-server", "bootstrap-controller"),
    mistake="Command line error: {error}. Type --help for help.",
)
