"""In which version a metadata record is written, and what a metadata.version cannot say."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.machines.metadata import records
from moldau.wire import messages as m
from moldau.wire.errors import Unwritable

ID = bytes([1] * 16)
CHANGE: dict[str, Any] = {"broker_id": 1, "broker_epoch": 5}


@pytest.mark.parametrize(
    ("record", "level", "version"),
    [
        (m.RegisterBrokerRecord(), 7, 1),
        (m.RegisterBrokerRecord(), 8, 2),
        (m.RegisterBrokerRecord(), 16, 2),
        (m.RegisterBrokerRecord(log_dirs=[ID]), 17, 3),
        (m.RegisterBrokerRecord(log_dirs=[ID]), 29, 3),
        (m.RegisterBrokerRecord(log_dirs=[ID], cordoned_log_dirs=[]), 30, 4),
        (m.PartitionRecord(), 16, 0),
        (m.PartitionRecord(directories=[ID]), 22, 1),
        (m.PartitionRecord(eligible_leader_replicas=[1]), 23, 2),
        (m.PartitionChangeRecord(), 7, 0),
        (m.PartitionChangeRecord(directories=[ID]), 17, 1),
        (m.PartitionChangeRecord(last_known_elr=[1]), 30, 2),
        (m.BrokerRegistrationChangeRecord(**CHANGE, fenced=1), 30, 0),
        (m.BrokerRegistrationChangeRecord(**CHANGE, in_controlled_shutdown=1), 30, 1),
        (m.BrokerRegistrationChangeRecord(**CHANGE, log_dirs=[ID]), 30, 2),
        (m.BrokerRegistrationChangeRecord(**CHANGE, cordoned_log_dirs=[]), 30, 3),
        (m.TopicRecord(), 7, 0),
        (m.RegisterControllerRecord(), 15, 0),
        (m.ClearElrRecord(), 23, 0),
    ],
    ids=lambda value: value.SCHEMA.name if hasattr(value, "SCHEMA") else str(value),
)
def test_a_level_decides_the_version(record: Any, level: int, version: int) -> None:
    value = records.encode(record, level)
    assert value[2] == version
    assert records.encode(records.decode(value), level) == value


@pytest.mark.parametrize(
    ("record", "level"),
    [
        (m.RegisterBrokerRecord(log_dirs=[ID]), 16),
        (m.RegisterBrokerRecord(cordoned_log_dirs=[]), 29),
        (m.PartitionRecord(directories=[ID]), 16),
        (m.PartitionRecord(eligible_leader_replicas=[1]), 22),
        (m.PartitionChangeRecord(directories=[ID]), 16),
        (m.PartitionChangeRecord(eligible_leader_replicas=[]), 22),
        (m.BrokerRegistrationChangeRecord(**CHANGE, log_dirs=[ID]), 16),
        (m.BrokerRegistrationChangeRecord(**CHANGE, cordoned_log_dirs=[ID]), 29),
        (m.RegisterControllerRecord(), 14),
        (m.UserScramCredentialRecord(), 10),
        (m.BeginTransactionRecord(), 12),
        (m.DelegationTokenRecord(), 13),
        (m.ClearElrRecord(), 22),
    ],
    ids=lambda value: value.SCHEMA.name if hasattr(value, "SCHEMA") else str(value),
)
def test_what_a_level_cannot_say_is_refused(record: Any, level: int) -> None:
    with pytest.raises(Unwritable):
        records.encode(record, level)


def test_the_newest_level_writes_every_record_in_its_newest_version() -> None:
    for cls in (m.RegisterBrokerRecord, m.PartitionRecord, m.PartitionChangeRecord, m.TopicRecord, m.NoOpRecord):
        assert records.encode(cls())[2] == cls.SCHEMA.versions[1]
