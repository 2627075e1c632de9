"""What kafka-storage has to know of a node: its directories, its roles, and where its controller listens."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moldau.cli.kafka.running import Terse

DEFAULT_DIR = "/tmp/kafka-logs"  # Kafka's default of log.dirs
DEFAULT_ROLES, DEFAULT_LISTENER = "broker,controller", "CONTROLLER"  # Moldau's; Kafka requires both settings
HOST_IF_NONE = "localhost"
WILDCARDS = ("", "0.0.0.0", "::")
_LISTENER = re.compile(r"([\w.-]+)://(?:\[(.*)\]|([^:\[\]]*)):(\d+)")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The settings of a node, as far as its directories depend on them."""

    id: int
    directories: tuple[str, ...]  # sorted
    metadata_directory: str
    is_controller: bool
    is_alone: bool  # a Moldau that no other node can reach as a controller
    has_static_voters: bool
    controller_listener: str
    controller_address: tuple[str, int] | None


def read_node(config: Mapping[str, str]) -> NodeSettings:
    """Read the settings that matter here; the server checks all of them when it starts."""
    names = split_list(config.get("controller.listener.names")) or [DEFAULT_LISTENER]
    roles = split_list(config.get("process.roles"))
    is_controller = "controller" in (roles or split_list(DEFAULT_ROLES))
    address = controller_address(config, names)
    return NodeSettings(
        id=node_id(config),
        directories=tuple(directories(config)),
        metadata_directory=config.get("metadata.log.dir") or log_dirs(config)[0],
        is_controller=is_controller,
        is_alone=not roles or (is_controller and address is None),
        has_static_voters=bool(split_list(config.get("controller.quorum.voters"))),
        controller_listener=names[0],
        controller_address=address,
    )


def directories(config: Mapping[str, str]) -> list[str]:
    """Return the directories that a file of settings names, sorted."""
    metadata = config.get("metadata.log.dir")
    return sorted({*log_dirs(config), *([metadata] if metadata else [])})


def log_dirs(config: Mapping[str, str]) -> list[str]:
    return split_list(config.get("log.dirs") or config.get("log.dir")) or [DEFAULT_DIR]


def node_id(config: Mapping[str, str]) -> int:
    text = config.get("node.id", config.get("broker.id", "1")).strip()
    if not re.fullmatch(r"\d{1,9}", text):
        raise Terse(f"node.id is {text or 'empty'}; it is a number, 0 or more.")
    return int(text)


def controller_address(config: Mapping[str, str], names: list[str]) -> tuple[str, int] | None:
    """Return where others reach the controller: where its listener is advertised, or otherwise where it listens."""
    bound = dict(listeners(config.get("listeners")))
    name = next((name for name in map(str.upper, names) if name in bound), None)
    if name is None:
        return None
    host, port = dict(listeners(config.get("advertised.listeners"))).get(name, bound[name])
    return (HOST_IF_NONE if host in WILDCARDS else host), port


def listeners(text: str | None) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield name, host and port of each listener."""
    for one in split_list(text):
        match = _LISTENER.fullmatch(one)
        if not match:
            raise Terse(f"A listener is written NAME://HOST:PORT, and {one} is not.")
        yield match[1].upper(), (match[2] or match[3] or "", int(match[4]))


def split_list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
