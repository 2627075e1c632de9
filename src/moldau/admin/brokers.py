"""The brokers of a cluster: whose they are, their state, what they lead and keep, and the space that it takes.

`look` asks the cluster; `rows` puts together what it has seen. Everything comes from the public protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.admin import clusters, health, log_dirs, topics
from moldau.admin.health import FENCED, SILENT
from moldau.client import Client

UP = "up"


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker. `quorum` is its part there, if it votes; None stands for what is not known of a broker that does not
    answer. `behind_bytes` is how much its replicas that are not in sync lack of their leaders' logs, about.
    """

    id: int
    address: str
    rack: str | None
    kind: str | None
    state: str
    quorum: str | None
    is_controller: bool
    leaders: int
    replicas: int
    not_in_sync: int
    behind_bytes: int
    bytes: int | None
    free_bytes: int | None
    log_dirs: tuple[str, ...]

    @property
    def is_fenced(self) -> bool:
        return self.state == FENCED


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a cluster. Brokers without a kind or without folders did not answer."""

    cluster: clusters.ClusterState
    topics: Sequence[topics.TopicState]
    kinds: Mapping[int, str]
    folders: Mapping[int, list[log_dirs.LogDir]]
    quorum: clusters.Quorum | None


def look(client: Client) -> Sight:
    """Ask the cluster for all that `rows` needs to know."""
    state = clusters.described(client, fenced=True)
    kinds = clusters.kinds(client, [one.id for one in state.brokers if not one.is_fenced], health.ANSWER_S)
    folders = log_dirs.answered(client, kinds, health.ANSWER_S)
    return Sight(state, topics.listed(client), kinds, folders, clusters.known_quorum(client))


def rows(sight: Sight) -> list[BrokerRow]:
    """Return a row for each broker."""
    sizes = log_dirs.sizes(sight.folders)
    return [_row(sight, sizes, one) for one in sight.cluster.brokers]


def _row(sight: Sight, sizes: log_dirs.Sizes, one: clusters.BrokerState) -> BrokerRow:
    parts = [((topic.name, part.index), part) for topic in sight.topics for part in topic.partitions]
    known = sight.folders.get(one.id)
    usable = [folder.usable_bytes for folder in known or () if folder.usable_bytes >= 0]
    role = _role(one.id, sight.quorum)
    lagging = [(place, part) for place, part in parts if one.id in part.replicas and one.id not in part.isr]
    return BrokerRow(
        one.id,
        f"{one.host}:{one.port}",
        one.rack,
        sight.kinds.get(one.id),
        FENCED if one.is_fenced else UP if one.id in sight.kinds else SILENT,
        role,
        role == "leader" if sight.quorum else one.is_controller,
        sum(part.leader == one.id for _, part in parts),
        sum(one.id in part.replicas for _, part in parts),
        len(lagging),
        sum(_behind(sizes.get(place, {}), part.leader, one.id) for place, part in lagging),
        None if known is None else sum(replica.size for folder in known for replica in folder.replicas),
        min(usable) if usable else None,
        tuple(folder.path for folder in known or ()),
    )


def _behind(sizes: Mapping[int, int], leader: int, broker: int) -> int:
    return max(0, sizes.get(leader, 0) - sizes.get(broker, 0))


def _role(broker: int, quorum: clusters.Quorum | None) -> str | None:
    """Return the part that a node plays in the quorum; brokers that do not vote have none."""
    if quorum is None or all(one.id != broker or not one.is_voter for one in quorum.replicas):
        return None
    return "leader" if quorum.leader == broker else "voter"
