"""Settings of one topic's logs, with Kafka's defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

FOREVER = 2**63 - 1
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic settings that the log obeys; a field is the setting's name in snake_case."""

    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = DAY_MS
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = FOREVER
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    producer_id_expiration_ms: int = DAY_MS
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * DAY_MS

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """From typed values under Kafka's names; names without a field are for others."""
        names = {field.name for field in fields(cls)}
        given = {name.replace(".", "_"): value for name, value in settings.items()}
        policy = given.get("cleanup_policy", ())
        if "cleanup_policy" in given:
            parts = policy.split(",") if isinstance(policy, str) else policy
            given["cleanup_policy"] = frozenset(str(part).strip() for part in parts if str(part).strip())
        return cls(**{name: value for name, value in given.items() if name in names and value is not None})

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy
