"""What people may do with a deployed flow: one table for the command line, REST and the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.client import Client
from moldau.flows import catalog
from moldau.flows.catalog import Catalog
from moldau.flows.definition import Definition, FlowError, Wanted, find, ours
from moldau.topicstore import StoreError


@dataclass(frozen=True, slots=True)
class Verb:
    """A row: what is written to the definition, the state that it leads to, and what it does in a sentence."""

    run: Callable[[Catalog, str], Definition]
    leads_to: str
    doc: str
    loses: bool = False  # whether something is lost by it


def wants(wanted: Wanted, *, anew: bool = False) -> Callable[[Catalog, str], Definition]:
    return lambda catalog, name: catalog.want(name, wanted, anew=anew)


VERBS = {
    "pause": Verb(wants(Wanted.PAUSED), "paused", "Stops it after its batch; it keeps its worker."),
    "resume": Verb(wants(Wanted.RUNNING, anew=True), "running", "Lets it go on, also after a failure."),
    "stop": Verb(wants(Wanted.STOPPED), "stopped", "No worker has it any more; what it knows is kept."),
    "restart": Verb(wants(Wanted.RUNNING, anew=True), "running", "Makes and starts it anew, as it is."),
    "rollback": Verb(lambda catalog, name: catalog.roll_back(name), "running", "Goes back to the version before."),
    "undeploy": Verb(
        wants(Wanted.REMOVED),
        "removed",
        "Removes it with its state, internal topics and offsets, but not its output.",
        loses=True,
    ),
}


def act(settings: Mapping[str, Any], client: Client, name: str, verb: str) -> Definition:
    """Carry out a verb; FlowError if there is no such flow. Nothing is created in a cluster without flows."""
    ours(find(catalog.read(client), name))
    try:
        with catalog.opened(settings) as opened:
            return VERBS[verb].run(opened, name)
    except StoreError as error:
        raise FlowError(str(error)) from None
