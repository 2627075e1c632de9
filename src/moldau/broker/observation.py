"""How a broker that has no vote follows the metadata log of the quorum: see cluster/observing.py, which decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from moldau import logs
from moldau.broker.metadata import snapshot_id
from moldau.broker.outbox import Lost, Peer
from moldau.cluster.catching_up import Diverged
from moldau.cluster.observing import Inconsistent, Limits, Observer
from moldau.cluster.voters import Voters, load_history, voter_records
from moldau.log.checkpoints import Damaged
from moldau.machines.metadata.features import KRAFT_VERSION
from moldau.wire.errors import Error
from moldau.wire.records import Record
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

log = logs.get(__name__)


class Observation:
    """The quorum as a broker sees it. What is committed there is made true here as it comes."""

    is_active = False  # the active controller is always somebody else
    is_voter = False
    has_left = True
    is_hopeless = False  # who votes, and who of them is gone, is not known

    def resign(self) -> None:
        """There is nothing to hand over."""

    def look_around(self) -> None:
        """Who votes is not known here."""

    def __init__(self, node: Node) -> None:
        settings, metadata = node.settings, node.metadata
        self.node = node
        voters = static_voters(settings["controller.quorum.voters"])
        servers = [address(text) for text in settings["controller.quorum.bootstrap.servers"]] or list(voters.values())
        header = metadata.snapshot_header()
        self.observer = Observer(
            node.id,
            metadata.cluster_id,
            metadata.directory_id,
            metadata.log,
            servers,
            voters,
            Limits(
                settings["controller.quorum.retry.backoff.ms"],
                settings["controller.quorum.fetch.max.bytes"],
                settings["controller.quorum.fetch.snapshot.max.bytes"],
            ),
            load_history(metadata.log, Voters(), metadata.newest_snapshot, header),
            metadata.newest_snapshot,
        )

    @property
    def features(self) -> dict[str, int]:
        """Return the level of the quorum's own feature, which is not in the metadata."""
        voters = self.observer.history.current
        return {KRAFT_VERSION: voters.version} if voters.is_dynamic else {}

    @property
    def leader(self) -> tuple[str, int] | None:
        """Return where the active controller is, if that is known."""
        return self.observer.leader

    @property
    def leader_id(self) -> int:
        return self.observer.leader_id

    @property
    def epoch(self) -> int:
        return self.observer.epoch

    @property
    def servers(self) -> list[tuple[str, int]]:
        return self.observer.servers

    def start(self) -> None:
        """Nothing is to be done before the first tick."""

    def voter_records(self, end_offset: int, wall_ms: int) -> list[Record]:
        """Return the control records that a snapshot has about the voters: without them Kafka, started here, would not
        find the controllers.
        """
        return voter_records(self.observer.history.at(end_offset), wall_ms)

    def has_snapshot(self, name: str) -> None:
        """A snapshot was written, or came from the leader. If the log ends with it, it says of which epoch that is."""
        self.observer.newest = snapshot_id(name)
        self.observer.history.trim(snapshot_id(name)[0])

    def synced(self) -> None:
        """What the disk has does not matter to others, since this broker has no vote."""

    def settle(self) -> None:
        """Nothing is ever appended here."""

    def append(self, items: Sequence[Record], wall_ms: int) -> None:
        raise Refused(Error.NOT_CONTROLLER, "This broker is no controller.")

    def next_ms(self) -> float:
        return self.observer.next_ms()

    def tick(self, now_ms: float) -> None:
        """Ask for what follows, if it is time."""
        asked = None
        with or_end(self.node, "broker"):
            asked = self.observer.request(now_ms)
        if asked is not None:
            timeout = self.node.settings["controller.quorum.request.timeout.ms"] + self.observer.limits.max_wait_ms
            self.node.ask(Peer(*asked[0], "metadata", is_controller=True), asked[1], self.heard, float(timeout))

    def heard(self, response: Any) -> None:
        """Take over an answer of a controller, and make true what is committed by now."""
        node = self.node
        now = node.clock.monotonic_ms()
        if isinstance(response, Lost):
            log.debug("a controller does not answer", reason=response.reason)
            self.observer.fail(now)
            return
        with or_end(node, "broker"):
            try:
                snapshot = self.observer.heard(response, now, node.clock.wall_ms())
            except Inconsistent as problem:
                node.cannot_take_part(str(problem))
                return
            if snapshot is not None:
                node.metadata.install(snapshot.end_offset, snapshot.epoch, bytes(snapshot.data))
            node.metadata.catch_up()
        node.metadata_moved(now)


@contextmanager
def or_end(node: Node, kind: str) -> Iterator[None]:
    """End the node if its copy of the metadata is lost or wrong, or if its vote cannot be written: whatever it said
    from now on could be false.
    """
    try:
        yield
    except (Diverged, Damaged, OSError, Refused) as problem:
        node.on_fatal(f"This {kind} cannot go on: {problem}")


def static_voters(texts: list[str]) -> dict[int, tuple[str, int]]:
    """Return where each voter is, of texts like `1@host:9093`."""
    pairs = (text.partition("@") for text in texts)
    return {int(node): address(where) for node, _, where in pairs}


def address(text: str) -> tuple[str, int]:
    """Return host and port of a text like `host:9093`."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
