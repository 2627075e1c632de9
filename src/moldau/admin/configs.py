"""Settings of topics, brokers, groups and metrics subscriptions: described and changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from moldau.client import ANY, Client, Node, check
from moldau.client import messages as m
from moldau.client.targets import Target
from moldau.settings.entries import SOURCES, TYPES


class Kind(IntEnum):
    """What has settings, as the protocol numbers it."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What becomes of a setting; the last two change lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """Something with settings. A broker's name is its number; the empty one stands for what all brokers have."""

    kind: Kind
    name: str

    def target(self) -> Target:
        """Return whom to ask: only a broker itself knows how it was started."""
        one = self.kind in (Kind.BROKER, Kind.BROKER_LOGGER) and self.name.isdecimal()
        return Node(int(self.name)) if one else ANY


@dataclass(frozen=True, slots=True)
class Synonym:
    """A place from which a value comes, or would come."""

    name: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A setting with its value; a sensitive one has none."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool
    type: str
    synonyms: tuple[Synonym, ...]
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source == "DEFAULT_CONFIG"

    @property
    def is_own(self) -> bool:
        """Tell whether it is set on the resource itself, rather than inherited."""
        return self.source.startswith("DYNAMIC_") and self.source != "DYNAMIC_DEFAULT_BROKER_CONFIG"


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a setting."""

    name: str
    value: str | None
    operation: Operation = Operation.SET


def described(
    client: Client, resource: Resource, names: Iterable[str] | None = None, *, documentation: bool = False
) -> list[Entry]:
    """Describe all settings by name, or these."""
    return describe_all(client, [resource], names, documentation=documentation)[resource]


def describe_all(
    client: Client,
    resources: Sequence[Resource],
    names: Iterable[str] | None = None,
    *,
    documentation: bool = False,
) -> dict[Resource, list[Entry]]:
    """Describe several resources by one request, which goes where the first of them is known."""
    keys = None if names is None else list(names)
    rows = [m.DescribeConfigsRequest_DescribeConfigsResource(one.kind, one.name, keys) for one in resources]
    answer = check(client.send(m.DescribeConfigsRequest(rows, True, documentation), resources[0].target()))
    return {
        Resource(Kind(row.resource_type), row.resource_name): sorted(map(_entry, row.configs), key=lambda one: one.name)
        for row in answer.results
    }


def alter(client: Client, resource: Resource, changes: Iterable[Change], *, validate_only: bool = False) -> None:
    """Change settings, all or none; ClientError with the broker's words if it refuses."""
    rows = [
        m.IncrementalAlterConfigsRequest_AlterableConfig(change.name, change.operation, change.value)
        for change in changes
    ]
    one = m.IncrementalAlterConfigsRequest_AlterConfigsResource(resource.kind, resource.name, rows)
    is_decided = client.config.asks_controllers and resource.kind is not Kind.BROKER_LOGGER  # by the active one
    to = ANY if is_decided else resource.target()
    check(client.send(m.IncrementalAlterConfigsRequest([one], validate_only), to))


def changes(given: Mapping[str, str], removed: Iterable[str] = ()) -> list[Change]:
    """Return the changes that set some settings and remove others."""
    kept = [Change(name, value) for name, value in given.items()]
    return kept + [Change(name, None, Operation.DELETE) for name in removed]


def listed(client: Client, kinds: Iterable[Kind]) -> list[Resource]:
    """List the resources of these kinds that have settings of their own (KIP-1142)."""
    answer = check(client.send(m.ListConfigResourcesRequest([int(kind) for kind in kinds])))
    return [Resource(Kind(row.resource_type), row.resource_name) for row in answer.config_resources]


def _entry(row: Any) -> Entry:
    synonyms = tuple(Synonym(one.name, one.value, _source(one.source)) for one in row.synonyms)
    kind = TYPES[row.config_type] if 0 <= row.config_type < len(TYPES) else "unknown"
    source = _source(row.config_source)
    return Entry(row.name, row.value, source, row.read_only, row.is_sensitive, kind, synonyms, row.documentation)


def _source(number: int) -> str:
    return SOURCES.get(number, "UNKNOWN")
