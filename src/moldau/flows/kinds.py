"""Kinds of flows: how a definition becomes a query, and what to clear away when a flow is removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from moldau.client import Client
from moldau.flows import records
from moldau.flows.definition import Definition
from moldau.topicstore import exists

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from moldau.plan.conveyor.start import Application
    from moldau.spark.runner import Supervised


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker runs flows: its cluster, and where it keeps what they need."""

    settings: Mapping[str, str]  # of clients
    state_dir: str  # of Spark: local or shared
    folder: Path  # on this machine, for code
    registry: Mapping[str, Any] = field(default_factory=dict[str, Any])  # how to log in to a registry

    @property
    def logs(self) -> Path:
        """The folder with the logs of flows."""
        return self.folder.parent / "logs"

    def client(self) -> Client:
        return Client(dict(self.settings))


class Query(NamedTuple):
    """What a lane runs: a writer that is not started, and who is told how it goes."""

    definition: Callable[[SparkSession], DataStreamWriter]
    observe: Callable[[Supervised], None]


class FlowReader(Protocol):
    """Where the definitions of a kind come from, if they are no records of flows."""

    @property
    def flows(self) -> Mapping[str, Definition]:
        """All that are wanted now, by name."""
        ...

    def forget(self, flow: Definition) -> None:
        """Let a removed flow go, which has been cleared away."""
        ...


class Kind(Protocol):
    """The interface of a kind. Each call may take seconds, and raises FlowError with a sentence."""

    def prepare(self, flow: Definition, place: Place) -> Query:
        """Return the query of a flow. Code of users runs in a process of its own here."""
        ...

    def load(self, flow: Definition, place: Place) -> Application:
        """Return what a shared lane is to carry, from a process of its own too."""
        ...

    def clear(self, flow: Definition, place: Place) -> None:
        """Remove what a flow has kept: folders, topics and offsets of its own, but not its output."""
        ...


class ReadKind(Kind, Protocol):
    """A kind that brings a reader of its own."""

    def is_used(self, client: Client) -> bool:
        """Whether the reader may find flows in this cluster."""
        ...

    def reading(self, place: Place) -> AbstractContextManager[FlowReader]:
        """Return the reader, for the length of a `with`."""
        ...


# Modules with an object `KIND`; they are imported when the first flow of the kind is run.
KINDS = {"streams": "moldau.flows.streams_kind", "query": "moldau.sql.persistent.kind"}
READ_KINDS = ("query",)


def read_kinds() -> list[ReadKind]:
    return [import_module(KINDS[name]).KIND for name in READ_KINDS]


def is_used(client: Client) -> bool:
    """Whether there is something for workers in this cluster: a flow was deployed once, or a kind has its own."""
    return exists(client, records.TOPIC) or any(kind.is_used(client) for kind in read_kinds())


def kind_of(flow: Definition) -> Kind | None:
    """Return the kind of a flow; None if this release has none of that name."""
    module: Any = import_module(KINDS[flow.kind]) if flow.kind in KINDS else None
    return None if module is None else module.KIND
