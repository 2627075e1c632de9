"""The clients that a plan invites beside producers and consumers: groups that read the input, copiers, a spectator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.wire import messages as m
from tests.simulation.admin import SET, TOPIC_RESOURCE
from tests.simulation.audit import INTERNAL
from tests.simulation.copies.output import Side
from tests.simulation.copies.spectator import Spectator
from tests.simulation.groups.roster import Roster
from tests.simulation.office import GROUP, TRANSACTION
from tests.simulation.plan import COPY, INPUT, OUTPUT, OUTPUT_PARTITIONS, SHARE
from tests.simulation.shares.pool import Pool

if TYPE_CHECKING:
    from tests.simulation.world import World

GROUP_RESOURCE = 32
COMPACTED = (
    ("internal.segment.bytes", SET, "1500"),
    ("min.cleanable.dirty.ratio", SET, "0.0"),
    ("segment.ms", SET, "500"),
)


def invite(world: World) -> None:
    """The clients that read in groups, and those that copy."""
    plan, topics = world.plan, [world.topics[INPUT]]
    if plan.copies is not None:
        make_output(world)
    if plan.small_internal:
        shrink_internal_topics(world)
    for number, kind in enumerate(plan.groups):
        world.rosters.append(Roster(world, f"g{number}", kind, topics))
        world.crowd.readers(world.rosters[-1], plan.members, plan.static)
    if plan.copies is not None:
        world.rosters.append(Roster(world, COPY, plan.copies, topics))
        world.crowd.copiers(world.rosters[-1], plan.members)
        Spectator(world, "spectator")
    if plan.shares:
        begin_at_the_beginning(world, SHARE)
        world.pools.append(Pool(world, SHARE, topics, plan.deliveries))
        world.crowd.sharers(world.pools[-1], plan.members)
    for seat in world.crowd.seats:
        seat.spawn()


def begin_at_the_beginning(world: World, group: str) -> None:
    """By default a share group begins at the end of what there is."""
    row = m.IncrementalAlterConfigsRequest_AlterableConfig("share.auto.offset.reset", SET, "earliest")
    resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(GROUP_RESOURCE, group, [row])
    (answer,) = world.auditor.call(m.IncrementalAlterConfigsRequest([resource], False), 1).responses
    assert answer.error_code == 0, answer.error_message


def make_output(world: World) -> None:
    rows = [m.CreateTopicsRequest_CreatableTopicConfig("internal.segment.bytes", "1000")]
    asked = m.CreateTopicsRequest_CreatableTopic(OUTPUT, OUTPUT_PARTITIONS, 1, [], rows)
    (answer,) = world.auditor.call(m.CreateTopicsRequest([asked]), 7).topics
    assert answer.error_code == 0, answer.error_message
    world.sides += [Side(world, OUTPUT, index) for index in range(OUTPUT_PARTITIONS)]


def shrink_internal_topics(world: World) -> None:
    """So that they are compacted, which must change nothing."""
    for key_type in (GROUP, TRANSACTION):
        (found,) = world.auditor.call(m.FindCoordinatorRequest("", key_type, ["any"]), 4).coordinators
        assert found.error_code == 0, found.error_message
    for name in INTERNAL:
        rows = [m.IncrementalAlterConfigsRequest_AlterableConfig(*row) for row in COMPACTED]
        resource = m.IncrementalAlterConfigsRequest_AlterConfigsResource(TOPIC_RESOURCE, name, rows)
        (answer,) = world.auditor.call(m.IncrementalAlterConfigsRequest([resource], False), 1).responses
        assert answer.error_code == 0, answer.error_message
