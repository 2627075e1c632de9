"""Answers as plain data, without what two brokers may well differ in; and the differences that are left.

A difference is a path into the answer (`topics.t.partitions.0.error_code`) and the two values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.wire import records
from moldau.wire.errors import Error, WireError
from tests.conformance.differential.case import NOW, Case
from tests.conformance.differential.target import Target

ABSENT = "absent"
NULL = "null"
DAY_MS = 24 * 60 * 60_000
SHOWN = 200  # characters of a value in a message

# What is compared of some fields, the same in all APIs but for the rows below.
RECORDS = "records"
IDS = {"topic_id", "replica_directory_id"}  # which topic it is of; of others, whether there is one
# Whether there is one.
TEXTS = {
    "error_message",
    "acknowledge_error_message",
    "documentation",
    "batch_index_error_message",
    "cluster_id",
    "host",
}
SIGNS = {  # times, sizes and numbers of the brokers' own: whether negative, zero or more
    "last_caught_up_timestamp",
    "last_fetch_timestamp",
    "log_append_time_ms",
    "partition_size",
    "port",
    "session_id",
    "total_bytes",
    "usable_bytes",
}
# The metadata log has other records in each broker, and so other offsets.
SIGNS_OF = {
    "DescribeQuorum": {"high_watermark", "leader_epoch", "log_end_offset"},
    "DescribeTransactions": {"transaction_start_time_ms"},
}
# Whether there is one; 0 is one, too.
NUMBERS_OF = {"InitProducerId": {"producer_id"}, "ApiVersions": {"finalized_features_epoch"}}
# Where Kafka goes by a hash, or the order means nothing to a client: API, array, and what names an element.
UNORDERED: dict[str, dict[str, tuple[str, ...]]] = {
    "AddPartitionsToTxn": {
        "results_by_transaction": ("transactional_id",),
        "results_by_topic_v3_and_below": ("name",),
        "topic_results": ("name",),
        "results_by_partition": ("partition_index",),
    },
    "AlterClientQuotas": {"entity": ("entity_type",)},
    "AlterConfigs": {"responses": ("resource_type", "resource_name")},
    "AlterShareGroupOffsets": {"responses": ("topic_name",), "partitions": ("partition_index",)},
    "AlterReplicaLogDirs": {"results": ("topic_name",), "partitions": ("partition_index",)},
    "ApiVersions": {"api_keys": ("api_key",), "supported_features": ("name",), "finalized_features": ("name",)},
    "ConsumerGroupDescribe": {
        "groups": ("group_id",),
        "members": ("member_id",),
        "topic_partitions": ("topic_name",),
    },
    "ConsumerGroupHeartbeat": {"topic_partitions": ("topic_id",)},
    "CreatePartitions": {"results": ("name",)},
    "CreateTopics": {"topics": ("name",), "configs": ("name",)},
    "DeleteGroups": {"results": ("group_id",)},
    "DeleteRecords": {"topics": ("name",), "partitions": ("partition_index",)},
    **{
        f"{verb}ShareGroupState": {"results": ("topic_id",), "partitions": ("partition",)}
        for verb in ("Initialize", "Read", "Write", "Delete")
    },
    "DeleteShareGroupOffsets": {"responses": ("topic_name",)},
    "DeleteTopics": {"responses": ("name", "topic_id")},
    "DescribeClientQuotas": {"entries": ("entity",), "entity": ("entity_type",), "values": ("key",)},
    "DescribeConfigs": {"results": ("resource_type", "resource_name"), "configs": ("name",)},
    "DescribeGroups": {"groups": ("group_id",), "members": ("member_id",)},
    "DescribeLogDirs": {"topics": ("name",), "partitions": ("partition_index",)},
    "DescribeProducers": {"active_producers": ("producer_id",)},
    "DescribeShareGroupOffsets": {"topics": ("topic_name",), "partitions": ("partition_index",)},
    "DescribeTransactions": {"topics": ("topic",), "partitions": ()},
    "ElectLeaders": {"replica_election_results": ("topic",), "partition_result": ("partition_id",)},
    "Fetch": {"responses": ("topic", "topic_id"), "partitions": ("partition_index",)},
    "IncrementalAlterConfigs": {"responses": ("resource_type", "resource_name")},
    "FindCoordinator": {"coordinators": ("key",)},
    "ListConfigResources": {"config_resources": ("resource_type", "resource_name")},
    "JoinGroup": {"members": ("member_id",)},
    "ListGroups": {"groups": ("group_id",)},
    "ListOffsets": {"topics": ("name",), "partitions": ("partition_index",)},
    "ListTransactions": {"transaction_states": ("transactional_id",)},
    "Metadata": {"topics": ("name", "topic_id"), "partitions": ("partition_index",)},
    "OffsetCommit": {"topics": ("name", "topic_id"), "partitions": ("partition_index",)},
    "OffsetDelete": {"topics": ("name",), "partitions": ("partition_index",)},
    "OffsetFetch": {"groups": ("group_id",), "topics": ("name", "topic_id"), "partitions": ("partition_index",)},
    "OffsetForLeaderEpoch": {"topics": ("topic",), "partitions": ("partition",)},
    "Produce": {"responses": ("name", "topic_id"), "partition_responses": ("index",)},
    "ShareAcknowledge": {"responses": ("topic_id",), "partitions": ("partition_index",)},
    "ShareFetch": {"responses": ("topic_id",), "partitions": ("partition_index",)},
    "ShareGroupDescribe": {
        "groups": ("group_id",),
        "members": ("member_id",),
        "topic_partitions": ("topic_name",),
        "subscribed_topic_names": (),
    },
    "ShareGroupHeartbeat": {"topic_partitions": ("topic_id",)},
    "TxnOffsetCommit": {"topics": ("name",), "partitions": ("partition_index",)},
    "WriteTxnMarkers": {"topics": ("name",), "partitions": ("partition_index",)},
    "StreamsGroupDescribe": {
        "groups": ("group_id",),
        "members": ("member_id",),
        "topic_configs": ("key",),
        "client_tags": ("key",),
        "active_tasks": ("subtopology_id",),
        "standby_tasks": ("subtopology_id",),
    },
    "StreamsGroupHeartbeat": {
        "active_tasks": ("subtopology_id",),
        "standby_tasks": ("subtopology_id",),
        "active_partitions": ("topic",),
        "standby_partitions": ("topic",),
    },
}


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    kafka: Any
    moldau: Any

    def __str__(self) -> str:
        kafka, moldau = (str(value)[:SHOWN] for value in (self.kafka, self.moldau))
        return f"{self.path or 'answer'}: Kafka {kafka}, Moldau {moldau}"


def differences(kafka: Any, moldau: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(kafka, dict) and isinstance(moldau, dict):
        for key in kafka | moldau:
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(kafka.get(key, ABSENT), moldau.get(key, ABSENT), inner)
    elif kafka != moldau:
        yield Difference(path, kafka, moldau)


def since_now(value: Any) -> Any:
    """A time that a script gave to its records, as far as it is from the script's own: another run has another one."""
    near = isinstance(value, int) and abs(value - NOW) < DAY_MS
    return f"now {value - NOW:+} ms" if near else value


class Normal:
    """Makes the answers of one broker to a case comparable."""

    def __init__(self, case: Case, target: Target) -> None:
        self.target = target
        self.named = UNORDERED.get(case.api, {})
        self.signs = SIGNS | SIGNS_OF.get(case.api, set()) | set(case.signs)
        self.numbers = NUMBERS_OF.get(case.api, set())
        self.topics = {topic_id: name for name, topic_id in target.ids.items()}
        # Producers whose ids the broker gave, by the names under which a script keeps them.
        self.producers = {kept[0]: name for name, kept in target.kept.items() if isinstance(kept, tuple)}
        # Members of groups, likewise.
        self.members = {kept: name for name, kept in target.kept.items() if isinstance(kept, str)}

    def __call__(self, answer: Any) -> Any:
        """What happened instead of an answer is a text and stays so."""
        return answer if isinstance(answer, str) else self._struct(answer)

    def _struct(self, struct: Any) -> dict[str, Any]:
        return {name: self._value(name, getattr(struct, name)) for name in struct.__slots__}

    def _value(self, name: str, value: Any) -> Any:
        match value:
            case None:
                return NULL
            case list() | tuple():
                return self._array(name, value)
            case bytes() | memoryview():
                return self._bytes(name, bytes(value))
            case str():
                return self._text(name, value)
            case bool() | int() | float():
                return self._number(name, value)
        return self._struct(value)

    def _array(self, name: str, values: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
        """An array is compared element by element: by place, or by name where the order means nothing."""
        found: dict[str, Any] = {}
        for place, value in enumerate(values):
            key = self._key(value, self.named[name]) if name in self.named else str(place)
            while key in found:
                key += "'"
            found[key] = self._value(name, value)
        return found

    def _key(self, value: Any, fields: tuple[str, ...]) -> str:
        """What names an element, of the fields that it has; one without fields names itself."""
        if not fields:
            return str(value)
        parts = (self._value(field, getattr(value, field)) for field in fields if hasattr(value, field))
        return " ".join(str(part) for part in parts if part not in ("", "no id"))

    def _bytes(self, name: str, value: bytes) -> Any:
        if name in IDS:
            return self._id(value)
        return self._records(memoryview(value)) if name == RECORDS else value.hex()

    def _id(self, value: bytes) -> str:
        return self.topics.get(value, "some id" if any(value) else "no id")

    def _text(self, name: str, value: str) -> str:
        if name in TEXTS:
            return "some text" if value else ""
        if value in self.members:
            return self.members[value]
        for place, stands_for in self.target.places.items():
            value = value.replace(place, stands_for)
        return value

    def _number(self, name: str, value: float) -> Any:
        if name.endswith("error_code"):
            return Error(value).name if value in list(Error) else value
        if name in self.signs:
            return (value > 0) - (value < 0)
        if name in self.numbers:
            return "some number" if value >= 0 else value
        return self.producers.get(int(value), value) if name == "producer_id" else since_now(value)

    def _records(self, rest: memoryview) -> dict[str, Any]:
        """Batches field by field: a broker may have compressed them anew, and cuts the last one at its limit."""
        found: dict[str, Any] = {}
        while len(rest):
            try:
                batch = records.Batch(rest)
                batch.verify()
            except WireError:
                break
            found[f"batch {batch.base_offset}"] = self._batch(batch)
            rest = rest[batch.size :]
        return found | {"rest": bool(len(rest))}

    def _batch(self, batch: records.Batch) -> dict[str, Any]:
        own_time = batch.timestamp_type or batch.is_control
        own = {"crc", "view", "size"} | ({"base_timestamp", "max_timestamp"} if own_time else set())
        fields = {name: since_now(getattr(batch, name)) for name in batch.__slots__ if name not in own}
        fields["producer_id"] = self.producers.get(batch.producer_id, batch.producer_id)
        try:
            shown = [record[0:1] + record[2 if own_time else 1 :] for record in records.records(batch)]
            inside = re.sub(r"\b\d{13}\b", lambda time: str(since_now(int(time[0]))), repr(shown))
        except WireError:
            inside = "records that do not decode"
        return fields | {"records": inside}
