"""What befalls a world, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.wire import messages as m
from tests.simulation.producers import Producer
from tests.simulation.topics import Topic

if TYPE_CHECKING:
    from tests.simulation.world import World


def schedule(world: World) -> None:
    """Set up the clients, and spread the faults of the plan over its time."""
    random, plan, events = world.random, world.plan, world.events
    events.after(0.1, lambda: create_topics(world))
    for number in range(plan.producers):
        events.after(1, lambda number=number: Producer(world, f"p{number}") and None)
    for _ in range(plan.crashes):
        events.at(random.uniform(20, plan.length_ms), lambda: crash(world))
    for _ in range(plan.cuts):
        events.at(random.uniform(20, plan.length_ms), lambda: cut(world))


def create_topics(world: World) -> None:
    for name, (partitions, configs) in world.plan.topics.items():
        rows = [m.CreateTopicsRequest_CreatableTopicConfig(k, v) for k, v in configs.items()]
        asked = m.CreateTopicsRequest_CreatableTopic(name, partitions, 1, [], rows)
        (answer,) = world.auditor.call(m.CreateTopicsRequest([asked]), 7).topics
        assert answer.error_code == 0, answer.error_message
        topic = world.topics[name] = Topic(name, configs, answer.topic_id)
        topic.extend(partitions)


def crash(world: World) -> None:
    """Now, or within one of the next steps of the disk; or a clean stop."""
    random = world.random
    kind = random.random()
    if not world.up or kind < 0.5:
        world.machine.fuse = random.randrange(1, 12)
    elif kind < 0.8:
        world.die(random.random() < world.plan.power)
    else:
        world.stop()


def cut(world: World) -> None:
    if world.links:
        world.counts["connections cut"] += 1
        world.random.choice(world.links).cut()
