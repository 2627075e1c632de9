"""Groups and transactional ids before anybody has asked for their coordinators: nobody is one yet.

Played before all scripts that ask. Requests that are wrong in themselves are told so all the same.
"""

from __future__ import annotations

from tests.conformance.differential.case import LONG_MS, Case, Script, topic_id
from tests.conformance.differential.scripts.records import batch

TOPIC = "st"
GROUP, ID = "st-g", "st-x"
JOIN = {"group_id": GROUP, "session_timeout_ms": LONG_MS, "protocol_type": "consumer", "protocols": [("range", b"")]}
SYNC = {"group_id": GROUP, "generation_id": 1, "member_id": "m", "protocol_type": "consumer", "protocol_name": "range"}
BEAT = {
    "group_id": GROUP,
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": LONG_MS,
    "subscribed_topic_names": [TOPIC],
    "topic_partitions": [],
}
SHARE_BEAT = {"group_id": GROUP, "member_id": "m", "member_epoch": 0, "subscribed_topic_names": [TOPIC]}
TOPOLOGY = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [TOPIC]}]}
NO_TASKS = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
STREAMS_BEAT = {
    "group_id": GROUP,
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": LONG_MS,
    "process_id": "p",
    "topology": TOPOLOGY,
    **NO_TASKS,
}
OFFSETS = [{"name": TOPIC, "topic_id": topic_id(TOPIC), "partitions": [(0, 5), (9, 5)]}]
WANTED = [{"name": TOPIC, "topic_id": topic_id(TOPIC), "partition_indexes": [0, 9]}]
TXN_OFFSETS = [(TOPIC, [(0, 5, -1, ""), (9, 5, -1, "")])]
ADDED = [(TOPIC, [0])]
PRODUCER = {"producer_id": 5, "producer_epoch": 0}
ADDING = {"transactional_id": ID, **PRODUCER, "topics": ADDED}


def wrong_join(name: str, **fields: object) -> Case:
    return Case(name, "JoinGroup", (0, 9), JOIN | fields)


def write(name: str, versions: tuple[int, ...], identifier: str = ID) -> Case:
    data = batch(name.encode(), base_sequence=0, transactional=True, **PRODUCER)
    topics = [{"name": TOPIC, "topic_id": topic_id(TOPIC), "partition_data": [(0, data)]}]
    return Case(name, "Produce", versions, (identifier, -1, LONG_MS, topics))


CLASSIC = [
    Case("joins", "JoinGroup", range(10), JOIN),
    wrong_join("joins no group", group_id=""),
    wrong_join("joins for a moment", session_timeout_ms=1),
    wrong_join("joins for ever", session_timeout_ms=2_000_000_000),
    Case("syncs", "SyncGroup", range(6), SYNC),
    Case("syncs without a protocol", "SyncGroup", 5, SYNC | {"protocol_name": None}),
    Case("a heartbeat", "Heartbeat", range(5), (GROUP, 1, "m")),
    Case("a heartbeat to no group", "Heartbeat", 4, ("", 1, "m")),
    Case("leaves", "LeaveGroup", range(3), (GROUP, "m")),
    Case("many leave", "LeaveGroup", range(3, 6), {"group_id": GROUP, "members": [("m",)]}),
    Case("no group is described", "DescribeGroups", range(7), {"groups": [GROUP, ""]}),
    Case("no group is deleted", "DeleteGroups", range(3), {"groups_names": [GROUP, ""]}),
    Case("no group is listed", "ListGroups", range(6)),
]
OFFSET = [
    Case("commits", "OffsetCommit", range(2, 11), {"group_id": GROUP, "topics": OFFSETS}),
    Case("commits nothing", "OffsetCommit", (2, 10), {"group_id": GROUP}),
    Case("fetches", "OffsetFetch", range(1, 8), {"group_id": GROUP, "topics": [(TOPIC, [0, 9])]}),
    Case("fetches all", "OffsetFetch", range(2, 8), {"group_id": GROUP, "topics": None}),
    Case("fetches of groups", "OffsetFetch", (8, 9, 10), {"groups": [(GROUP, None, -1, WANTED), ("", None, -1, None)]}),
    Case(
        "fetches what is stable",
        "OffsetFetch",
        (8, 10),
        {"groups": [(GROUP, None, -1, WANTED)], "require_stable": True},
    ),
    Case("forgets", "OffsetDelete", 0, (GROUP, [(TOPIC, [(0,)])])),
    Case("forgets of no group", "OffsetDelete", 0, ("", [(TOPIC, [(0,)])])),
]
CONSUMER = [
    Case("joins a consumer group", "ConsumerGroupHeartbeat", (0, 1), BEAT),
    Case("no member id", "ConsumerGroupHeartbeat", 1, BEAT | {"member_id": ""}),
    Case("a blank member id", "ConsumerGroupHeartbeat", 1, BEAT | {"member_id": " "}),
    Case("a blank group", "ConsumerGroupHeartbeat", 1, BEAT | {"group_id": "  "}),
    Case("an unknown assignor", "ConsumerGroupHeartbeat", 1, BEAT | {"server_assignor": "mine"}),
    Case("leaves a consumer group", "ConsumerGroupHeartbeat", 1, BEAT | {"member_epoch": -1}),
    Case("no consumer group", "ConsumerGroupDescribe", (0, 1), {"group_ids": [GROUP, ""]}),
]
SHARE = [
    Case("joins a share group", "ShareGroupHeartbeat", 1, SHARE_BEAT),
    Case("shares as nobody", "ShareGroupHeartbeat", 1, SHARE_BEAT | {"member_id": ""}),
    Case("shares as a blank", "ShareGroupHeartbeat", 1, SHARE_BEAT | {"member_id": " \t"}),
    Case("shares nothing", "ShareGroupHeartbeat", 1, SHARE_BEAT | {"subscribed_topic_names": None}),
    Case("shares at an epoch below all", "ShareGroupHeartbeat", 1, SHARE_BEAT | {"member_epoch": -2}),
    Case("leaves a share group", "ShareGroupHeartbeat", 1, SHARE_BEAT | {"member_epoch": -1}),
]
STREAMS = [
    Case("joins a streams group", "StreamsGroupHeartbeat", 0, STREAMS_BEAT),
    Case("streams as nobody", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"member_id": ""}),
    Case("streams as a blank", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"member_id": "\n"}),
    Case("a static member", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"instance_id": "i"}),
    Case("no topology", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"topology": None}),
    Case("unknown tasks", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | dict.fromkeys(NO_TASKS)),
    Case("unknown standby tasks", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"standby_tasks": None}),
    Case("streams at an epoch below all", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"member_epoch": -3}),
    Case("a topology behind the join", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"member_epoch": 1}),
    Case("goes on", "StreamsGroupHeartbeat", 0, STREAMS_BEAT | {"member_epoch": 1, "topology": None}),
]
TRANSACTIONS = [
    Case("an id", "InitProducerId", range(6), {"transactional_id": ID, "transaction_timeout_ms": 1000}),
    Case("an empty id", "InitProducerId", 5, {"transactional_id": "", "transaction_timeout_ms": 1000}),
    Case("a time-out of 0", "InitProducerId", 5, {"transactional_id": ID, "transaction_timeout_ms": 0}),
    Case("adds", "AddPartitionsToTxn", range(4), {f"v3_and_below_{name}": value for name, value in ADDING.items()}),
    Case("verifies", "AddPartitionsToTxn", (4, 5), {"transactions": [(ID, 5, 0, True, ADDED)]}),
    Case("adds as a broker", "AddPartitionsToTxn", (4, 5), {"transactions": [(ID, 5, 0, False, ADDED)]}),
    Case("adds a group", "AddOffsetsToTxn", range(5), (ID, 5, 0, GROUP)),
    Case("commits offsets", "TxnOffsetCommit", range(6), (ID, GROUP, 5, 0, -1, "", None, TXN_OFFSETS)),
    Case("commits offsets of no group", "TxnOffsetCommit", 5, (ID, "", 5, 0, -1, "", None, TXN_OFFSETS)),
    Case("ends", "EndTxn", range(6), (ID, 5, 0, True)),
    write("writes", (9, 11, 12)),
    Case("no transaction is described", "DescribeTransactions", 0, ([ID, ""],)),
    Case("no transaction is listed", "ListTransactions", range(3)),
]
INTERNAL = ("__consumer_offsets", "__transaction_state")
MENTIONED = [
    Case("mentioned", "Metadata", 9, ([{"name": name} for name in INTERNAL], False)),
    Case("mentioned, and so made", "Metadata", 9, ([{"name": name} for name in INTERNAL], True)),
    Case("as they must be", "DescribeConfigs", 4, {"resources": [(2, name, None) for name in INTERNAL]}),
]
GROUPS = [*CLASSIC, *OFFSET, *CONSUMER, *SHARE, *STREAMS]
SCRIPT = Script("strangers", [*GROUPS, *TRANSACTIONS, *MENTIONED], {TOPIC: (1, {})})
