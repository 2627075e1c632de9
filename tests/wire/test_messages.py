"""The classes that the table makes: dataclasses with Kafka's defaults, there when they are asked for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.wire import messages as m
from moldau.wire import schema, stubs


def test_a_message_is_a_slotted_dataclass_with_kafkas_defaults() -> None:
    request = m.FetchRequest()
    assert dataclasses.is_dataclass(request)
    assert not hasattr(request, "__dict__")
    assert [f.name for f in dataclasses.fields(request)][:3] == ["cluster_id", "replica_id", "replica_state"]
    assert {f.name: f.default for f in dataclasses.fields(request)}["max_bytes"] == 0x7FFFFFFF
    assert (request.replica_id, request.max_bytes, request.topics, request.rack_id) == (-1, 0x7FFFFFFF, (), "")


def test_structs_stand_beside_their_message_under_its_name() -> None:
    topic = m.CreateTopicsRequest_CreatableTopic("orders", 6, 1)
    assert (topic.name, topic.num_partitions, topic.assignments) == ("orders", 6, ())


def test_a_struct_that_is_always_sent_is_made_anew() -> None:
    one, other = m.FetchSnapshotRequest_PartitionSnapshot(), m.FetchSnapshotRequest_PartitionSnapshot()
    assert one.snapshot_id == other.snapshot_id == m.FetchSnapshotRequest_SnapshotId()
    assert one.snapshot_id is not other.snapshot_id


def test_arrays_are_the_same_as_lists_and_as_tuples() -> None:
    topics = [m.FetchRequest_FetchTopic("a")]
    assert m.FetchRequest(topics=topics) == m.FetchRequest(topics=tuple(topics))
    assert m.FetchRequest(topics=[]) == m.FetchRequest()
    assert m.FetchRequest() != m.FetchResponse()
    assert m.MetadataRequest(topics=None) != m.MetadataRequest()


def test_messages_can_be_shown_copied_replaced_and_pickled() -> None:
    header = m.ResponseHeader(7)
    assert repr(header) == "ResponseHeader(correlation_id=7)"
    assert copy.deepcopy(header) == header
    assert dataclasses.replace(header, correlation_id=8).correlation_id == 8
    assert pickle.loads(pickle.dumps(header)) == header


def test_classes_are_found_by_key() -> None:
    assert m.request_class(18) is m.ApiVersionsRequest
    assert m.response_class(18) is m.ApiVersionsResponse
    assert m.record_class("__cluster_metadata", "metadata", 2) is m.TopicRecord
    assert m.record_class("__consumer_offsets", "coordinator-key", 1) is m.OffsetCommitKey
    assert m.ApiVersionsRequest.SCHEMA.key == 18
    for missing in (-1, 4, 9999):
        with pytest.raises(KeyError):
            m.request_class(missing)


def test_a_name_that_the_table_lacks_is_no_attribute() -> None:
    for name in ("LeaderAndIsrRequest", "FetchRequest_Nonsense", "nonsense", "_nonsense"):
        with pytest.raises(AttributeError, match=name):
            getattr(m, name)


def test_a_row_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    head = schema.Message("data", "Odd", "data", -1, (0, 0), None, False)
    for rows, complaint in (("  a  int32  sometimes\n", "sometimes"), ("  a  []Unheard\n", "Unheard")):
        monkeypatch.setattr(schema, "heads", lambda rows=rows: {"Odd": (head, rows)})
        schema.message.cache_clear()
        with pytest.raises(ValueError, match=complaint):
            schema.message("Odd")
    schema.message.cache_clear()


def test_the_stub_file_is_what_the_table_says() -> None:
    path = Path(stubs.__file__).with_name("messages.pyi")
    assert path.read_text() == stubs.stub(), "write it anew: python -m moldau.wire.stubs"


def test_importing_the_messages_builds_none_of_them() -> None:
    script = (
        "from moldau.wire import messages, schema, codec, frames;"
        "assert not [n for n in vars(messages) if n.endswith(('Request', 'Response'))];"
        "assert schema.heads.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
