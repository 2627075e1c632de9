"""Topics of sources, created as `topic.creation.*` says (KIP-158)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from moldau.admin import topics
from moldau.client import Client
from moldau.connect import clients
from moldau.connect.errors import ConfigError
from moldau.topicstore import exists
from moldau.topicstore.topic import create

PREFIX, DEFAULT = "topic.creation.", "default"


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
        """Return None where a connector says nothing of its topics: then brokers create them."""
        if f"{PREFIX}default.partitions" not in config and f"{PREFIX}default.replication.factor" not in config:
            return None
        names = [name.strip() for name in config.get(f"{PREFIX}groups", "").split(",") if name.strip()]
        return Creation(tuple(_group(config, name) for name in [*names, DEFAULT]))

    def new_topic(self, topic: str) -> topics.NewTopic:
        group = next(group for group in self.groups if group.takes(topic))
        return topics.NewTopic(topic, group.partitions, group.replicas, dict(group.settings))

    def make(self, worker: Mapping[str, str], topic: str) -> None:
        """Create a topic, unless it exists."""
        with Client({**clients.basic(worker), "allow.auto.create.topics": "false"}) as client:
            if not exists(client, topic):
                create(client, self.new_topic(topic))


def _group(config: Mapping[str, str], name: str) -> Group:
    given = clients.under(f"{PREFIX}{name}.", config)
    include = [".*"] if name == DEFAULT else _patterns(given.pop("include", ""))
    exclude = _patterns(given.pop("exclude", ""))
    default = clients.under(f"{PREFIX}{DEFAULT}.", config)
    partitions = _number(given.pop("partitions", default.get("partitions", "1")), f"{PREFIX}{name}.partitions")
    replicas = given.pop("replication.factor", default.get("replication.factor", "-1"))
    return Group(tuple(include), tuple(exclude), partitions, _number(replicas, f"{name}.replication.factor"), given)


def _patterns(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _number(text: str, name: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"Invalid value {text} for configuration {name}: Not a number of type INT") from None
