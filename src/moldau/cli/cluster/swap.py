"""`moldau cluster swap --plan`: the order in which Kafka's nodes can become Moldau's."""

from __future__ import annotations

from typing import Any

import typer

from moldau.admin import swapping
from moldau.admin.mistakes import NO, misused
from moldau.broker.features import SUPPORTED
from moldau.cli.cluster.verbs import verb
from moldau.cli.kafka.releases import METADATA, level_text
from moldau.cli.options import flag
from moldau.cli.output import pick
from moldau.cli.session import Session

DO = (
    "kafka-server-stop, and wait until the process has ended",
    "moldau broker --config server.properties, with the file and the directories that Kafka had",
)
CHECK = (
    "moldau cluster brokers: the node is up, and Moldau's (a controller alone: moldau cluster quorum, its lag is 0)",
    "moldau cluster health: wait until nothing is wrong, so every replica is in sync again",
    "moldau cluster verify --since -1h: all replicas are the same",
    "kafka-leader-election --election-type preferred --all-topic-partitions: it leads again what it led",
)
BACK = "The way back is the same: stop Moldau, start Kafka on the same directories."


@verb("swap", "moldau cluster swap --plan", "moldau cluster swap --plan -o json")
def swap(
    session: Session, plan: bool = flag("--plan", "Look at the cluster and show the order; change nothing.")
) -> None:
    """Plan how nodes of Apache Kafka become Moldau's on the same directories; if that cannot be, exit with code 3.

    It looks at releases and features, settings of nodes and topics, voters, replicas and what is unwell, and says what
    stops while a node is away. Nodes are swapped by hand, one at a time, each after the checks of the one before.
    """
    if not plan:
        raise misused("Nodes are stopped and started on their own machines: --plan shows the order.")
    supported = {one.name: (one.low, one.high) for one in SUPPORTED}
    made = swapping.plan(swapping.look(session.client), supported)
    _show(session, made)
    if not made.is_possible or any(one.verdict is swapping.Verdict.REFUSED for one in made.remarks):
        raise typer.Exit(NO)


def _show(session: Session, made: swapping.Plan) -> None:
    remarks: list[dict[str, Any]] = [
        {"verdict": str(one.verdict), "where": one.where, "what": one.sentence} for one in made.remarks
    ]
    steps = [
        {
            "step": number,
            **pick(one, "node", "role"),
            "release": level_text(METADATA, one.newest),
            **pick(one, "leaders", "replicas"),
        }
        for number, one in enumerate(made.steps, 1)
    ]
    if not session.for_people:
        facts = {"possible": made.is_possible, "remarks": remarks, "steps": steps if made.is_possible else []}
        session.show({**facts, "do": list(DO), "check": list(CHECK)})
        return
    if remarks:
        session.show(remarks)
        print()
    if not made.is_possible:
        print("Nothing may be swapped now: see what is refused.")
    elif not steps:
        print("There is no node of Kafka's that can be swapped.")
    else:
        session.show(steps)
        print(
            "\nIn each step:", *(f"  {number}. {line}" for number, line in enumerate((*DO, *CHECK), 1)), BACK, sep="\n"
        )
