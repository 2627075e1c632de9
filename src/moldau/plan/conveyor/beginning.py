"""Where an application begins: decided before its first batch, and saved beside the checkpoint.

Spark asks a source again where it began when it replays the first batch, so this must not be decided twice. An
application that has never run begins as its settings say. One whose checkpoint is lost, but whose sink knows what was
written, continues there: its stores are restored from their changelogs, by rows of the first batch.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from moldau.operators.context import TopologyError
from moldau.plan.stateless_pass import passing_groups
from moldau.spark.connections import Client
from moldau.spark.sink.marker_topic import Ledger, exists
from moldau.spark.sink.markers import TOPIC as MARKERS
from moldau.spark.sink.markers import Decision
from moldau.spark.source.planning import RESTORE, Position
from moldau.spark.source.topics import settled_ends

from ..home import BEGIN, FROZEN
from ..levels import Schedule, stores_of
from ..restoring import log_of
from ..shards import Conveyed
from .datasource import source_of
from .folder import Folder
from .source import PackedSource

if TYPE_CHECKING:
    from .start import Application


def has_lost_its_checkpoint(
    folder: Folder, application: Application, conveyed: Conveyed, client: Client, there: Collection[str]
) -> bool:
    """Return whether the application has run and its checkpoint is gone. `there` are the topics that existed before.
    TopologyError if its stores cannot be restored: it would continue with stores that have lost their state.
    """
    if folder.has_batches() or last_decision(client, application) is None:
        return False
    check_restorable(application, conveyed, there)
    return True


def drop_if_stale(folder: Folder, decision: Decision | None) -> None:
    """Remove the checkpoint if a query with another one has gone on meanwhile, on a disk that is not shared: what it
    has done since then is not in this one. The sink would refuse it, or, after a hand-over, take old positions for new.
    """
    if decision is not None and (decision.released or decision.query != folder.query_id()):
        folder.drop_checkpoint()


def is_stale(folder: Folder, application: Application, client: Client) -> bool:
    """Remove a checkpoint with which an application that moves must not go on; return whether it comes from a lane and
    has written nothing since: then it begins where it stood there.
    """
    decision = last_decision(client, application)
    drop_if_stale(folder, decision)
    if decision is not None or application.begin is None or not application.exactly_once:
        return False
    folder.drop_checkpoint()  # of the time before it was in a lane
    folder.remove(FROZEN)
    return True


def check_restorable(application: Application, conveyed: Conveyed, there: Collection[str]) -> None:
    """Raise TopologyError if what the checkpoint held cannot be restored."""
    schedule = conveyed.schedule
    groups = stateful(conveyed)
    bare = [s.name for group in groups for s in stores_of(schedule.plan, group) if not s.logged and not s.changelog]
    gone = [topic for topic in (counts(schedule) if groups else ()) if topic not in there]
    if bare or gone:
        why = f"the store {bare[0]} has no changelog" if bare else f"the topic {gone[0]} is gone"
        raise TopologyError(
            f"the checkpoint of {application.id} is not in {application.home}, and what it held cannot be restored: "
            f"{why}. Put the checkpoint back, or begin anew by `moldau streams reset {application.id}`"
        )


def beginning(
    folder: Folder,
    conveyed: Conveyed,
    client: Client,
    lost: bool,
    options: dict[str, str],
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any] | None:
    """Return the first position; None for a checkpoint that is older than this file. `lost`: the checkpoint is gone;
    `given`: where the application stood elsewhere.
    """
    if folder.has_batches():
        return folder.read(BEGIN)
    if given is None and lost:
        given = handed_on(client, options["application.id"])
    found = source_of(options, PackedSource).initialOffset() if given is None else dict(given)
    if lost and stateful(conveyed):
        found[RESTORE] = restored_up_to(conveyed.schedule, client, Position.of_json(found))
    folder.write(BEGIN, found)
    return found


def handed_on(client: Client, application: str) -> dict[str, Any]:
    """Take an application over whose checkpoint is not here, and return where it stood. A source cannot tell: it would
    take a checkpoint that is still there, in the folder of another worker, for its own, and begin anew.
    """
    ledger = Ledger(client, MARKERS, application)
    found: dict[str, Any] = json.loads(ledger.hand_on())
    return found


def last_decision(client: Client, application: Application) -> Decision | None:
    if not application.exactly_once or not exists(client, MARKERS):
        return None
    ledger = Ledger(client, MARKERS, application.id)
    ledger.catch_up()
    return ledger.decision


def stateful(conveyed: Conveyed) -> list[int]:
    """Return the sub-topologies with state."""
    passed = passing_groups(conveyed)
    return [group for group in conveyed.schedule.groups if group not in passed]


def restored_up_to(schedule: Schedule, client: Client, position: Position) -> dict[str, Any]:
    """Return the ends of changelogs as the last batch has committed them; in input topics, the last position."""
    places = [(topic, number) for topic, count in counts(schedule).items() for number in range(count)]
    latest = settled_ends(client, [one for one in places if one not in position.offsets])
    return Position({one: position.offsets.get(one, latest.get(one, 0)) for one in places}).to_json()


def counts(schedule: Schedule) -> dict[str, int]:
    """Return the partition counts of changelogs."""
    found = {log_of(schedule.plan): 1}
    for topic, group in schedule.changelogs():
        found[topic] = max((schedule.counts[one] for one in schedule.reads[group]), default=0)
    return found
