"""`moldau cluster quorum` and `moldau cluster voters`: the nodes that keep the metadata and elect the controller."""

from __future__ import annotations

from typing import Any

from moldau.admin import clusters
from moldau.cli.cluster.verbs import verb
from moldau.cli.kafka.java_text import base64_id
from moldau.cli.output import pick, time_of
from moldau.cli.session import Session

NO_DIRECTORY = bytes(16)
COLUMNS = ("id", "role", "log_end_offset", "lag", "last_caught_up", "directory", "endpoints")


@verb("quorum", "moldau cluster quorum", "moldau cluster quorum -o json")
def quorum(session: Session) -> None:
    """Show the voters and observers of the metadata, and how far each is behind the leader."""
    state = clusters.quorum(session.client)
    rows = [_replica(state, one) for one in state.replicas]
    if session.for_people:
        session.show(pick(state, "leader", "leader_epoch", "high_watermark"))
        print()
        session.show(rows, COLUMNS)
    else:
        session.show({**pick(state, "leader", "epoch=leader_epoch", "high_watermark"), "replicas": rows})


def _replica(state: clusters.Quorum, one: clusters.Replica) -> dict[str, Any]:
    return {
        "id": one.id,
        "role": "leader" if one.id == state.leader else "voter" if one.is_voter else "observer",
        "log_end_offset": one.log_end_offset,
        "lag": state.lag(one),
        "last_fetched": time_of(one.last_fetch_ms),
        "last_caught_up": time_of(one.last_caught_up_ms),
        "directory": None if one.directory_id == NO_DIRECTORY else base64_id(one.directory_id),
        "endpoints": list(state.endpoints.get(one.id, ())) or None,
    }
