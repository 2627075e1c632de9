"""Topics of sources, created as `topic.creation.*` says (KIP-158)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.admin import topics
from moldau.client import Client
from moldau.connect import clients
from moldau.connect.config_def import REQUIRED, ConfigDef, Key, Kind, listed
from moldau.connect.errors import invalid
from moldau.topicstore import exists
from moldau.topicstore.topic import create

PREFIX, DEFAULT = "topic.creation.", "default"
FROM_BROKER = -1


@dataclass(frozen=True, slots=True)
class Group:
    """Topics whose names match are made with these settings."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    partitions: int
    replicas: int
    settings: Mapping[str, str]

    def takes(self, topic: str) -> bool:
        matches = any(re.fullmatch(one, topic) for one in self.include)
        return matches and not any(re.fullmatch(one, topic) for one in self.exclude)


@dataclass(frozen=True, slots=True)
class Creation:
    """The groups of a connector in order; the last is the default."""

    groups: tuple[Group, ...]

    @staticmethod
    def of(config: Mapping[str, str]) -> Creation | None:
        """Return None where a connector says nothing of its topics: then brokers create them.

        ConfigError where it says too little: a default for replicas and partitions must be there.
        """
        if not any(name.startswith(PREFIX) for name in config):
            return None
        names = [name.strip() for name in config.get(f"{PREFIX}groups", "").split(",") if name.strip()]
        default = _group(config, DEFAULT, REQUIRED, REQUIRED)
        groups = [_group(config, name, default.replicas, default.partitions) for name in names if name != DEFAULT]
        return Creation((*groups, default))

    def new_topic(self, topic: str) -> topics.NewTopic:
        group = next(group for group in self.groups if group.takes(topic))
        return topics.NewTopic(topic, group.partitions, group.replicas, dict(group.settings))

    def make(self, worker: Mapping[str, str], topic: str) -> None:
        """Create a topic, unless it exists."""
        with Client({**clients.basic(worker), "allow.auto.create.topics": "false"}) as client:
            if not exists(client, topic):
                create(client, self.new_topic(topic))


def _settings(replicas: Any, partitions: Any) -> ConfigDef:
    return ConfigDef(
        [
            Key("replication.factor", Kind.SHORT, replicas, validator=_replicas),
            Key("partitions", Kind.INT, partitions, validator=_partitions),
            Key("include", Kind.LIST, [], validator=_patterns),
            Key("exclude", Kind.LIST, [], validator=_patterns),
        ]
    )


def _replicas(name: str, value: int | None) -> None:
    if value is not None and value != FROM_BROKER and value < 1:
        said = "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster"
        raise invalid(name, value, f"{said}, or {FROM_BROKER} to use the broker's default")


def _partitions(name: str, value: int | None) -> None:
    if value is not None and value != FROM_BROKER and value < 1:
        said = f"Number of partitions must be positive, or {FROM_BROKER} to use the broker's default"
        raise invalid(name, value, said)


def _patterns(name: str, value: list[str]) -> None:
    for one in value:
        try:
            re.compile(one)
        except re.error as error:
            raise invalid(name, listed(value), f"Syntax error in regular expression: {error}") from None


def _group(config: Mapping[str, str], name: str, replicas: Any, partitions: Any) -> Group:
    prefix = f"{PREFIX}{name}."
    known = _settings(replicas, partitions)
    found = clients.under(prefix, known.prefixed(prefix).parse(config))
    include, exclude = ([".*"], []) if name == DEFAULT else (found["include"], found["exclude"])
    given = {key: text for key, text in clients.under(prefix, config).items() if key not in known.keys}
    return Group(tuple(include), tuple(exclude), found["partitions"], found["replication.factor"], given)
