"""Creating topics on this node: the broker's defaults and the checks of settings around machines/metadata/topics.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moldau import settings as table
from moldau.machines.metadata.cluster import Topic
from moldau.machines.metadata.topics import NewTopic, check_name, create_topic
from moldau.machines.result import Result
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


def plan_topic(node: Any, new: NewTopic) -> Result[Topic]:
    """Records of a new topic with the broker's defaults filled in; raises Refused."""
    check_configs(node, new.configs)
    if not new.assignment:
        partitions = node.settings["num.partitions"] if new.partitions == -1 else new.partitions
        replication = node.settings["default.replication.factor"] if new.replication == -1 else new.replication
        new = replace(new, partitions=partitions, replication=replication)
    topic_id = fresh_id(node)
    return create_topic(node.cluster, new, topic_id, node.random.randrange(1 << 16))


def check_configs(node: Any, configs: Mapping[str, str]) -> None:
    """The settings of a topic, refused with the sentence of the settings table."""
    try:
        table.validate_topic(configs, node.settings)
    except table.SettingError as wrong:
        raise Refused(Error.INVALID_CONFIG, str(wrong)) from None


def create_unasked(node: Any, name: str) -> None:
    """A topic that a client merely mentioned; an internal one becomes what its coordinators need."""
    check_name(name)
    internal = {coordinators.topic: coordinators for coordinators in node.coordinators}.get(name)
    node.commit(plan_topic(node, internal.new_topic() if internal else NewTopic(name)))


def fresh_id(node: Any) -> bytes:
    """A random id (UUID version 4); the first byte pattern of base64 '-' is avoided, as Kafka does."""
    while True:
        raw = bytearray(node.random.randbytes(16))
        raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62 and bytes(raw) not in node.cluster.topics_by_id:
            return bytes(raw)
