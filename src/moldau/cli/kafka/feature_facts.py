"""Facts about releases and features that kafka-features and kafka-storage print without a cluster."""

from __future__ import annotations

import re

from moldau.cli.kafka.flags import Options
from moldau.cli.kafka.releases import DEPENDENCIES, FEATURES, LATEST, METADATA, RELEASES, highest, level_text, levels_of
from moldau.cli.kafka.running import OK, Terse

LOWEST_LEVEL, MOST_LEVEL = -32768, 32767


def known_release(text: str, latest: str = "") -> str:
    """Find a release by its name, up to the latest; `4.0` and `4.0.1` mean the last of 4.0."""
    names = [name for name, level in RELEASES.items() if not latest or level <= RELEASES[latest]]
    series = re.fullmatch(r"(\d+\.\d+)(\.\d+)*", text)
    if series:
        text = max((name for name in names if name.startswith(f"{series[1]}-")), default=text)
    if text not in names:
        raise Terse(f"Unknown metadata.version '{text}'. Supported metadata.version are: {', '.join(names)}")
    return text


def release_of(level: int) -> str:
    """Find the release with this level of metadata.version."""
    if level not in RELEASES.values():
        raise Terse(f"No MetadataVersion with feature level {level}. Valid feature levels are from 7 to 31.")
    return level_text(METADATA, level)


def name_and_level(text: str) -> tuple[str, int]:
    """Parse `metadata.version=25`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise Terse(f"Can't parse feature=level string {text}: equals sign not found.")
    level = level.strip()
    if not re.fullmatch(r"[+-]?\d+", level) or not LOWEST_LEVEL <= int(level) <= MOST_LEVEL:
        raise Terse(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return name.strip(), int(level)


def version_mapping(options: Options) -> int:
    release = known_release(options["release-version"] or LATEST)
    print(f"{METADATA}={RELEASES[release]} ({options['release-version'] or release})")
    for name, level in levels_of(release).items():
        if name != METADATA:
            print(f"{name}={level}")
    return OK


def feature_dependencies(options: Options) -> int:
    for text in options.all("feature"):
        name, level = name_and_level(text)
        if name == METADATA:
            print(f"{name}={level} ({release_of(level)}) has no dependencies.")
            continue
        if name not in FEATURES:
            raise Terse(f"Unknown feature: {name}")
        if not 0 <= level <= highest(name):
            raise Terse(f"No feature:{name} with feature level {level}")
        needed = DEPENDENCIES.get((name, level))
        if needed is None:
            print(f"{name}={level} has no dependencies.")
        else:
            print(f"{name}={level} requires:\n    {METADATA}={needed} ({level_text(METADATA, needed)})")
    return OK
