"""Creating topics on this node: the broker's defaults and the checks of settings around machines/metadata/topics.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moldau import settings as table
from moldau.broker.outbox import Lost
from moldau.machines.metadata import topics
from moldau.machines.metadata.cluster import Cluster
from moldau.machines.metadata.topics import NewTopic
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

CREATE_MS = 10_000


async def create_topic(node: Node, new: NewTopic) -> None:
    """Create a topic, unless somebody else is about to, and wait until it is there; raises Refused."""
    for error, message in (await create_all(node, [new])).values():
        raise Refused(error, message)


async def create_all(node: Node, new: Sequence[NewTopic]) -> dict[str, tuple[Error, str]]:
    """Create topics, unless somebody else is about to, and wait until they are there; returns what was refused, and
    why.
    """
    if node.membership is not None:
        return await ask_for_topics(node, new)
    proposal, refused = node.metadata.propose(), dict[str, tuple[Error, str]]()
    for one in new:
        try:
            if one.name not in proposal.image.topics:
                proposal.add(plan_topic(node, proposal.image, one))
        except Refused as why:
            refused[one.name] = why.error, why.message
    if error := await proposal.commit():
        return {one.name: (error, error.message) for one in new}
    return refused


async def ask_for_topics(node: Node, topics: Iterable[NewTopic]) -> dict[str, tuple[Error, str]]:
    """Ask the controller for topics and wait until this node has heard of them; returns what was refused, and why."""
    assert node.membership is not None
    row, pair = m.CreateTopicsRequest_CreatableTopic, m.CreateTopicsRequest_CreatableTopicConfig
    rows = [
        row(new.name, new.partitions, new.replication, configs=[pair(*item) for item in new.configs.items()])
        for new in topics
    ]
    response = await node.membership.call(m.CreateTopicsRequest(rows, CREATE_MS), CREATE_MS)
    if isinstance(response, Lost):
        return {one.name: (Error.REQUEST_TIMED_OUT, response.reason) for one in rows}
    refused = {one.name: (Error(one.error_code), one.error_message or "") for one in response.topics if one.error_code}
    refused = {name: why for name, why in refused.items() if why[0] is not Error.TOPIC_ALREADY_EXISTS}
    created = {one.name for one in rows} - refused.keys()
    await node.until(lambda: created <= node.cluster.topics.keys(), CREATE_MS)
    return refused


def plan_topic(node: Node, image: Cluster, new: NewTopic) -> list[Any]:
    """Make the records of a new topic with the broker's defaults filled in; raises Refused."""
    check_configs(node, new.configs)
    if not new.assignment:
        partitions = node.settings["num.partitions"] if new.partitions == -1 else new.partitions
        replication = node.settings["default.replication.factor"] if new.replication == -1 else new.replication
        new = replace(new, partitions=partitions, replication=replication)
    return topics.create_topic(image, new, fresh_id(node), node.random.randrange(1 << 16))


def check_configs(node: Node, configs: Mapping[str, str]) -> None:
    """Check the settings of a topic; raises Refused with the sentence of the settings table."""
    try:
        table.validate_topic(configs, node.settings)
    except table.SettingError as wrong:
        raise Refused(Error.INVALID_CONFIG, str(wrong)) from None


async def create_unasked(node: Node, names: Iterable[str]) -> dict[str, Error]:
    """Create topics that a client merely mentioned; returns why some cannot be created.

    An internal one becomes what its coordinators need.
    """
    internal = {coordinators.topic: coordinators for coordinators in node.coordinators}
    topics = [internal[name].new_topic() if name in internal else NewTopic(name) for name in names]
    return {name: error for name, (error, _) in (await create_all(node, topics)).items()}


def fresh_id(node: Node) -> bytes:
    """Return a random id (UUID version 4); the first byte pattern of base64 '-' is avoided, as Kafka does."""
    while True:
        raw = bytearray(node.random.randbytes(16))
        raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62 and bytes(raw) not in node.metadata.planned.topics_by_id:
            return bytes(raw)
