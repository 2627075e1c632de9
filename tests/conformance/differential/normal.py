"""Answers as plain data, without what two brokers may well differ in; and the differences that are left.

A difference is a path into the answer (`topics.t.partitions.0.error_code`) and the two values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moldau.wire import records
from moldau.wire.errors import Error, WireError
from tests.conformance.differential.target import Target

ABSENT = "absent"

# Fields by what is compared of them.
IDS = {"topic_id", "replica_directory_id", "session_id", "producer_id_given"}  # which topic; else whether there is one
TEXTS = {"error_message", "documentation", "batch_index_error_message", "cluster_id"}  # whether there is one
PLACES = {"host"}
SIGNS = {  # times, sizes and positions in logs of the brokers' own: negative, zero or more
    "port",
    "log_append_time_ms",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "total_bytes",
    "usable_bytes",
    "partition_size",
    "coordinator_epoch_given",
}
# Where Kafka goes by a hash, or by what a broker happens to know first: API -> array -> what names an element.
UNORDERED: dict[str, dict[str, str]] = {
    "AlterConfigs": {"responses": "resource_name"},
    "AlterPartitionReassignments": {},
    "ApiVersions": {"api_keys": "api_key", "supported_features": "name", "finalized_features": "name"},
    "ConsumerGroupDescribe": {"groups": "group_id", "members": "member_id", "topic_partitions": "topic_name"},
    "ConsumerGroupHeartbeat": {"topic_partitions": "topic_id"},
    "CreatePartitions": {"results": "name"},
    "CreateTopics": {"topics": "name", "configs": "name"},
    "DeleteRecords": {"topics": "name"},
    "DeleteTopics": {"responses": "name"},
    "DescribeClientQuotas": {"entries": "entity", "entity": "entity_type", "values": "key"},
    "DescribeConfigs": {"configs": "name"},
    "DescribeLogDirs": {"topics": "name", "partitions": "partition_index"},
    "DescribeProducers": {"active_producers": "producer_id"},
    "ElectLeaders": {"replica_election_results": "topic", "partition_result": "partition_id"},
    "IncrementalAlterConfigs": {"responses": "resource_name"},
    "ListConfigResources": {"config_resources": "resource_name"},
    "ListGroups": {"groups": "group_id"},
    "Metadata": {"topics": "name", "partitions": "partition_index"},
}
# Positions in the metadata log, which has other records in each broker.
SIGNS_OF = {"DescribeQuorum": {"high_watermark", "log_end_offset", "leader_epoch"}}


@dataclass(frozen=True, slots=True)
class Difference:
    path: str
    kafka: Any
    moldau: Any

    def __str__(self) -> str:
        return f"{self.path or 'answer'}: Kafka {self.kafka!r}, Moldau {self.moldau!r}"


def differences(kafka: Any, moldau: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(kafka, dict) and isinstance(moldau, dict):
        for key in kafka | moldau:
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(kafka.get(key, ABSENT), moldau.get(key, ABSENT), inner)
    elif kafka != moldau:
        yield Difference(path, kafka, moldau)


class Normal:
    """Makes answers of one API by one broker comparable."""

    def __init__(self, api: str, target: Target) -> None:
        self.target = target
        self.named = UNORDERED.get(api, {})
        self.signs = SIGNS | SIGNS_OF.get(api, set())

    def __call__(self, answer: Any) -> Any:
        return self._value("answer", answer) if isinstance(answer, str) else self._struct(answer)

    def _struct(self, struct: Any) -> dict[str, Any]:
        return {name: self._value(name, getattr(struct, name)) for name in struct.__slots__}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return self._array(name, value)
        if hasattr(value, "SCHEMA"):
            return self._struct(value)
        if isinstance(value, bytes | memoryview):
            return self._id(value) if name in IDS else self._records(value)
        if value is None or isinstance(value, bool):
            return value
        return self._text(name, value) if isinstance(value, str) else self._number(name, value)

    def _array(self, name: str, values: list[Any] | tuple[Any, ...]) -> dict[str, Any]:
        """An array is compared element by element: by place, or by name where the order means nothing."""
        found: dict[str, Any] = {}
        for place, value in enumerate(values):
            key = str(self._value("", getattr(value, self.named[name]))) if name in self.named else str(place)
            while key in found:
                key += "'"
            found[key] = self._value(name, value)
        return found

    def _id(self, value: bytes | memoryview) -> str:
        names = {topic_id: name for name, topic_id in self.target.ids.items()}
        return names.get(bytes(value), "some id" if any(value) else "no id")

    def _text(self, name: str, value: str) -> str:
        if name in TEXTS or name in PLACES:
            return "some text" if value else ""
        for place, stands_for in self.target.places.items():
            value = value.replace(place, stands_for)
        return value

    def _number(self, name: str, value: float) -> Any:
        if name.endswith("error_code"):
            return Error(value).name if value in list(Error) else value
        if name in self.signs or name in IDS:
            return (value > 0) - (value < 0)
        return value

    def _records(self, value: bytes | memoryview) -> dict[str, Any]:
        """Batches field by field: a broker may have compressed them anew, and cuts the last one at its limit."""
        found: dict[str, Any] = {}
        rest = memoryview(value)
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
        own = {"crc", "view", "size"} | ({"base_timestamp", "max_timestamp"} if batch.timestamp_type else set())
        fields = {name: getattr(batch, name) for name in batch.__slots__ if name not in own}
        try:
            inside: Any = [record[0:1] + record[1 + batch.timestamp_type :] for record in records.records(batch)]
        except WireError:
            inside = "records that do not decode"
        return fields | {"records": repr(inside)}
