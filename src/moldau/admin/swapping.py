"""How the nodes of an Apache Kafka cluster can be replaced by Moldau's on the same data directories, one by one.

`look` asks the running cluster; `plan` decides by what was seen: the order, what stops meanwhile, and what must not be
done because data would be lost or the node would not start. Each remark is a sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from moldau.admin import clusters, configs, health
from moldau.admin.configs import Kind, Resource
from moldau.admin.health import Sight
from moldau.admin.topics import PartitionState
from moldau.client import Client, ClientError
from moldau.settings import SettingError, Settings, validate_topic

STATIC, DYNAMIC, DEFAULT = "STATIC_BROKER_CONFIG", "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG"
ASKED_MS, BEHIND = 5000, 100  # when a voter counts as away, and how many offsets it may be behind
NAMED = 5  # topics or settings that a sentence names
METADATA = "metadata.version"


class Verdict(StrEnum):
    """How bad it is: nothing may be swapped, something stops meanwhile, or it is good to know."""

    REFUSED = "refused"
    STOPS = "stops"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding about the cluster, a node or a topic. `node` is one that alone cannot be swapped."""

    verdict: Verdict
    where: str
    sentence: str
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A node to swap, its newest metadata.version, and what it has to give away meanwhile."""

    node: int
    role: str
    newest: int
    leaders: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Node:
    """What a node told of itself: whose it is, its newest metadata.version, and settings by where they were set."""

    kind: str
    newest: int
    static: Mapping[str, str]
    own: Mapping[str, str]
    hidden: tuple[str, ...] = ()  # sensitive settings, whose values nobody is told


@dataclass(frozen=True, slots=True)
class Seen:
    """A running cluster. `topics` has the settings that topics have of their own, `least` their min.insync.replicas.

    `silent` has the voters that are no brokers and did not answer, with the reason.
    """

    sight: Sight
    nodes: Mapping[int, Node]
    features: Mapping[str, int]
    everywhere: Mapping[str, str]
    topics: Mapping[str, Mapping[str, str]]
    least: Mapping[str, int]
    unclean: frozenset[str] = frozenset()
    silent: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in their order, and all remarks, the worst first."""

    steps: tuple[Step, ...]
    remarks: tuple[Remark, ...]

    @property
    def is_possible(self) -> bool:
        return not any(one.verdict is Verdict.REFUSED and one.node is None for one in self.remarks)


def look(client: Client) -> Seen:
    """Ask the cluster, and each of its brokers and controllers."""
    sight = health.look(client)
    nodes = {broker: _node(client, broker) for broker in sight.folders}
    controllers, silent = _controllers(client, sight)
    names = [topic.name for topic in sight.topics]
    resources = [Resource(Kind.TOPIC, name) for name in names]
    found = configs.describe_all(client, resources) if resources else {}
    entries = {one.name: listed for one, listed in found.items()}
    values = {name: {entry.name: entry.value or "" for entry in listed} for name, listed in entries.items()}
    levels = client.features()
    return Seen(
        sight,
        nodes | controllers,
        levels,
        _set_at(configs.described(client, Resource(Kind.BROKER, "")), DEFAULT),
        {name: {one.name: one.value or "" for one in listed if one.is_own} for name, listed in entries.items()},
        {name: int(one.get(health.MIN_INSYNC) or 1) for name, one in values.items()},
        frozenset(name for name, one in values.items() if one.get("unclean.leader.election.enable") == "true"),
        silent,
    )


def _controllers(client: Client, sight: Sight) -> tuple[dict[int, Node], dict[int, str]]:
    """Ask the voters that are no brokers, at the listeners that the quorum names (KIP-919)."""
    found: dict[int, Node] = {}
    silent: dict[int, str] = {}
    quorum = sight.quorum
    brokers = {one.id for one in sight.cluster.brokers}
    for voter in () if quorum is None else (one.id for one in quorum.replicas if one.is_voter):
        if quorum is None or voter in brokers:
            continue
        addresses = [text.partition("://")[2] for text in quorum.endpoints.get(voter, ())]
        if not addresses:
            silent[voter] = "the cluster does not say where it listens"
            continue
        try:
            with client.of_controllers(addresses) as controllers:
                found[voter] = _node(controllers, voter)
        except ClientError as error:
            silent[voter] = str(error)
    return found, silent


def _node(client: Client, broker: int) -> Node:
    answer = clusters.versions(client, broker)
    supported = {row.name: row.max_version for row in answer.supported_features}
    kind = clusters.MOLDAU if clusters.OF_MOLDAU in supported else clusters.KAFKA
    entries = configs.described(client, Resource(Kind.BROKER, str(broker)))
    hidden = tuple(one.name for one in entries if one.sensitive and not one.is_default)
    return Node(kind, supported.get(METADATA, -1), _set_at(entries, STATIC), _set_at(entries, DYNAMIC), hidden)


def _set_at(entries: Iterable[configs.Entry], source: str) -> dict[str, str]:
    """Return the values that were given at one place, also where another place overrides them."""
    found: dict[str, str] = {}
    for one in entries:
        for synonym in one.synonyms:
            if synonym.source == source and synonym.value is not None:
                found.setdefault(synonym.name, synonym.value)
        if one.source == source and one.value is not None:
            found[one.name] = one.value
    return found


def plan(seen: Seen, supported: Mapping[str, tuple[int, int]]) -> Plan:
    """Decide in which order nodes can be swapped. `supported` are Moldau's feature levels."""
    remarks = [
        *_features(seen, supported),
        *_unwell(seen.sight),
        *_voters(seen),
        *_settings_of_nodes(seen),
        *_settings_of_topics(seen),
        *_replicas(seen),
    ]
    refused = {one.node for one in remarks if one.node is not None and one.verdict is Verdict.REFUSED}
    steps = tuple(one for one in _steps(seen) if one.node not in refused)
    return Plan(steps, tuple(sorted(remarks, key=lambda one: list(Verdict).index(one.verdict))))


def _steps(seen: Seen) -> list[Step]:
    """Order the nodes that are Kafka's: those that do not vote first, the leader of the quorum last."""
    quorum = seen.sight.quorum
    parts = [part for topic in seen.sight.topics for part in topic.partitions]
    steps = []
    for broker, node in seen.nodes.items():
        if node.kind == clusters.KAFKA:
            role = "broker" if quorum is None else quorum_role(quorum, broker)
            leaders = sum(part.leader == broker for part in parts)
            steps.append(Step(broker, role, node.newest, leaders, sum(broker in part.replicas for part in parts)))
    return sorted(steps, key=lambda one: (ROLES.index(one.role), one.leaders, one.replicas, one.node))


ROLES = ("broker", "voter", "quorum leader")


def quorum_role(quorum: clusters.Quorum, node: int) -> str:
    """Return what a node is: a broker alone, a voter too, or the leader of the quorum."""
    if all(one.id != node or not one.is_voter for one in quorum.replicas):
        return ROLES[0]
    return ROLES[2] if node == quorum.leader else ROLES[1]


def _features(seen: Seen, supported: Mapping[str, tuple[int, int]]) -> Iterator[Remark]:
    for name, level in sorted(seen.features.items()):
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            can = f"has {low} to {high}" if name in supported else "does not know it"
            sentence = f"{name} is at level {level}, and Moldau {can}: it would not be let into the cluster."
            yield Remark(Verdict.REFUSED, "features", sentence)
    newest = {node: one.newest for node, one in seen.nodes.items() if one.kind == clusters.KAFKA}
    if len(set(newest.values())) > 1:
        yield Remark(
            Verdict.NOTE, "features", "The Kafka nodes are of different releases: finish the upgrade before a swap."
        )


def _unwell(sight: Sight) -> Iterator[Remark]:
    """Refuse while something is wrong: one more node that is away may then be the last one that has a record."""
    for trouble in health.judge(sight):
        if trouble.reason == health.MOVING:
            sentence = f"It is being moved ({trouble.details}): wait until that is done."
        else:
            sentence = f"It is unwell ({trouble.reason}: {trouble.details}): mend that before a node is stopped."
        yield Remark(Verdict.REFUSED, trouble.where, sentence)


def _voters(seen: Seen) -> Iterator[Remark]:
    quorum = seen.sight.quorum
    if quorum is None:
        yield Remark(
            Verdict.REFUSED, "quorum", "The cluster has no KRaft quorum: move it from ZooKeeper to KRaft first."
        )
        return
    for node, reason in sorted(seen.silent.items()):
        sentence = f"It votes, and whose it is was not found out: {reason}"
        yield Remark(Verdict.REFUSED, f"node {node}", sentence, node)
    yield from _absent(quorum)
    voters = [one.id for one in quorum.replicas if one.is_voter]
    if len(voters) < 3 and any(seen.nodes[node].kind == clusters.KAFKA for node in voters if node in seen.nodes):
        count = "one voter" if len(voters) == 1 else "two voters"
        sentence = f"The quorum has {count}: while one is away nothing can be changed or elected."
        yield Remark(Verdict.STOPS, "quorum", sentence)


def _absent(quorum: clusters.Quorum) -> Iterator[Remark]:
    """Refuse while a voter is away or far behind: with one more away there may be no majority."""
    now_ms = next((one.last_caught_up_ms for one in quorum.replicas if one.id == quorum.leader), -1)
    for one in quorum.replicas:
        if now_ms < 0 or not one.is_voter or one.id == quorum.leader:
            continue
        if now_ms - one.last_fetch_ms > ASKED_MS:
            sentence = (
                "It votes, and the leader of the quorum does not hear from it: start it before another is stopped."
            )
            yield Remark(Verdict.REFUSED, f"voter {one.id}", sentence)
        elif quorum.lag(one) > BEHIND:
            sentence = f"It votes, and is {quorum.lag(one)} offsets behind: wait until it has caught up."
            yield Remark(Verdict.REFUSED, f"voter {one.id}", sentence)


def _settings_of_nodes(seen: Seen) -> Iterator[Remark]:
    ignored: dict[str, list[int]] = {}
    for broker, node in sorted(seen.nodes.items()):
        if node.kind != clusters.KAFKA:
            continue
        try:
            settings = Settings.load(node.static)
            for layer in (seen.everywhere, node.own):
                Settings.load({**node.static, **layer})
        except SettingError as error:
            yield Remark(
                Verdict.REFUSED, f"node {broker}", f"Moldau would not start with its settings: {error}", broker
            )
            continue
        for warning in Settings.load({**settings.static, **seen.everywhere, **node.own}).warnings:
            ignored.setdefault(warning, []).append(broker)
        if node.hidden:
            sentence = f"The values of {_some(node.hidden)} are secret and were not looked at."
            yield Remark(Verdict.NOTE, f"node {broker}", sentence)
    for warning, nodes in ignored.items():
        yield Remark(Verdict.NOTE, f"node {_some(map(str, nodes))}", warning)


def _settings_of_topics(seen: Seen) -> Iterator[Remark]:
    for topic, overrides in sorted(seen.topics.items()):
        try:
            validate_topic(dict(overrides))
        except SettingError as error:
            yield Remark(Verdict.REFUSED, f"topic {topic}", f"Moldau cannot serve it: {error}")
    if seen.unclean:
        sentence = "A replica that lags may be elected there (unclean.leader.election.enable), and records be lost."
        yield Remark(Verdict.STOPS, f"topics {_some(sorted(seen.unclean))}", sentence)


def _replicas(seen: Seen) -> Iterator[Remark]:
    """Say what stops while a node is away: topics that need it for reading, or for acks=all."""
    kafkas = {broker for broker, node in seen.nodes.items() if node.kind == clusters.KAFKA}

    def chosen(test: str) -> list[str]:
        return sorted(
            topic.name
            for topic in seen.sight.topics
            if any(
                _needs(part, seen.least.get(topic.name, 1)) == test and kafkas & set(part.replicas)
                for part in topic.partitions
            )
        )

    for test, sentence in NEEDS.items():
        if names := chosen(test):
            verdict = Verdict.NOTE if test == "spare" else Verdict.STOPS
            yield Remark(verdict, f"topics {_some(names)}", sentence)


NEEDS = {
    "only": "They have one replica: nobody can read or write them while its node is away. Nothing is lost.",
    "all": "As many replicas must be in sync as there are (min.insync.replicas): acks=all fails while a node is away.",
    "spare": "acks=all is content with one replica: while a node is away, new records may be on a single disk.",
}


def _needs(part: PartitionState, least: int) -> str:
    count = len(part.replicas)
    if count == 1:
        return "only"
    if least >= count:
        return "all"
    return "spare" if least == 1 else ""


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more
