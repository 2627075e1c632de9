"""Where a task of the sink stands, what it hands to the driver, and whom both talk to.

Planning and committing are done in Python processes of their own: what they import is kept small.
"""

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
    """Which task of which batch of which query this is. `query` is None in a job without a name: nobody runs it again
    as the same, so it needs no markers.
    """

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
    """What a task hands to the driver. `tasks` is how many there must be, where that matters."""

    place: Place
    content: Content
    transaction: Transaction | None = None
    tasks: int | None = None


def ledger_of(options: SinkOptions, application: str) -> Ledger:
    """The ledger of an application. Its client creates no topics: one that the broker made would not be compacted."""
    client = client_for({**options.client, "allow.auto.create.topics": "false"})
    return ledger_for(client, options.markers, application)


def connect(options: SinkOptions) -> Client:
    """The client of this process; that nobody can be reached is said soon, the first time."""
    client = client_for(options.client)
    if not client.cluster.brokers:
        client.refresh(timeout_s=FIRST_CONTACT_S)
    return client
