"""Which task of the sink this is, what it reports to the driver, and the clients of both. Imports are kept few."""

from __future__ import annotations

from dataclasses import dataclass

from moldau.client import Client, Transaction
from moldau.spark.connections import client_for
from moldau.spark.sink.marker_topic import Ledger, ledger_for
from moldau.spark.sink.markers import Content, transactional_id
from moldau.spark.sink.options import SinkOptions

FIRST_CONTACT_S = 15.0


@dataclass(frozen=True, slots=True)
class Place:
    """A task of a batch of a query. `query` is None in a job without a name, which needs no markers."""

    application: str
    query: str | None
    batch: int
    task: int
    run: str = ""  # which start of the query

    @property
    def transactional_id(self) -> str:
        return transactional_id(self.application, self.task)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a task reports to the driver. `tasks` is how many there must be, where that matters."""

    place: Place
    content: Content
    transaction: Transaction | None = None
    tasks: int | None = None


def ledger_of(options: SinkOptions, application: str) -> Ledger:
    """Return the ledger of an application. Its client creates no topics: the broker's defaults do not compact."""
    client = client_for({**options.client, "allow.auto.create.topics": "false"})
    return ledger_for(client, options.markers, application)


def connect(options: SinkOptions) -> Client:
    """Return the client of this process; the first call fails soon if no broker can be reached."""
    client = client_for(options.client)
    if not client.cluster.brokers:
        client.refresh(timeout_s=FIRST_CONTACT_S)
    return client
