"""Connect's topics: records byte for byte as Apache Connect writes them, and the states that they make."""

from __future__ import annotations

import json

import pytest

from moldau.client import Record
from moldau.connect import config_topic as c
from moldau.connect import offset_topic, status_topic
from moldau.connect.config_topic import ConfigState

SEEN = [  # as a worker of Apache Connect 4.3.1 wrote them
    (c.ConnectorConfig("fs", {"topic": "t"}), b"connector-fs", b'{"properties":{"topic":"t"}}'),
    (c.ConnectorConfig("fs", None), b"connector-fs", None),
    (c.TaskConfig("a-b", 3, {"file": "/tmp/x"}), b"task-a-b-3", b'{"properties":{"file":"/tmp/x"}}'),
    (c.Commit("fs", 1), b"commit-fs", b'{"tasks":1}'),
    (c.Target("fs", "STOPPED"), b"target-state-fs", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
    (c.Target("fs", "STARTED"), b"target-state-fs", b'{"state":"STARTED","state.v2":"STARTED"}'),
    (c.Target("fs", None), b"target-state-fs", None),
    (c.Restart("fs", True, False), b"restart-connector-fs", b'{"include-tasks":true,"only-failed":false}'),
    (c.Fencing("fs", 2), b"tasks-fencing-fs", b'{"task-count":2}'),
]


@pytest.mark.parametrize(("row", "key", "value"), SEEN, ids=lambda one: type(one).__name__)
def test_records_of_the_config_topic_are_connects(row: c.Row, key: bytes, value: bytes | None) -> None:
    assert c.encode(row) == (key, value)
    assert c.decode(Record(c.NOWHERE, 0, key, value)) == row


def state_of(*rows: c.Row) -> ConfigState:
    state = ConfigState()
    for row in rows:
        state.replay(row)
    return state


def test_task_configurations_count_after_their_commit() -> None:
    state = state_of(c.ConnectorConfig("x", {}), c.TaskConfig("x", 0, {"n": "0"}), c.TaskConfig("x", 1, {"n": "1"}))
    assert state.tasks == {}
    state.replay(c.Commit("x", 2, at=7))
    assert state.tasks["x"] == c.Tasks(({"n": "0"}, {"n": "1"}), 7)


def test_a_smaller_set_of_tasks_keeps_what_was_not_written_again() -> None:
    state = state_of(c.ConnectorConfig("x", {}), c.TaskConfig("x", 0, {"n": "0"}), c.TaskConfig("x", 1, {"n": "1"}))
    for row in (c.Commit("x", 2), c.Commit("x", 1, at=9)):
        state.replay(row)
    assert state.tasks["x"] == c.Tasks(({"n": "0"},), 9)


def test_a_commit_whose_tasks_were_compacted_away_is_incomplete() -> None:
    state = state_of(c.ConnectorConfig("x", {}), c.TaskConfig("x", 1, {}), c.Commit("x", 2))
    assert state.incomplete == {"x"} and state.tasks == {}
    for row in (c.TaskConfig("x", 0, {}), c.TaskConfig("x", 1, {}), c.Commit("x", 2)):
        state.replay(row)
    assert not state.incomplete and len(state.tasks["x"].configs) == 2


def test_what_is_left_of_a_deleted_connector_does_not_come_back() -> None:
    rows = c.ConnectorConfig("x", {}), c.TaskConfig("x", 0, {}), c.Commit("x", 1), c.ConnectorConfig("x", None)
    assert state_of(*rows).tasks == {}
    assert state_of(c.TaskConfig("x", 0, {}), c.Commit("x", 1)).tasks == {}


def test_new_tasks_are_unfenced_until_their_predecessors_are() -> None:
    state = state_of(c.ConnectorConfig("x", {}), c.TaskConfig("x", 0, {}), c.Commit("x", 1))
    assert state.unfenced == {"x"}
    state.replay(c.Fencing("x", 1))
    assert state.unfenced == set() and state.fenced == {"x": 1}


def test_records_of_others_are_left_alone() -> None:
    key = Record(3, 0, b"session-key", b'{"key":"x","algorithm":"HmacSHA256","creation-timestamp":1}')
    assert c.decode(key) == c.Other("session-key")
    for nonsense in ((b"commit-x", b"{}"), (b"task-x", b'{"properties":{}}'), (b"connector-x", b"[]")):
        with pytest.raises((ValueError, KeyError, TypeError)):
            c.decode(Record(0, 0, *nonsense))


def test_statuses_are_connects() -> None:
    status = status_topic.Status("RUNNING", "host:8083", 4, "4.3.1")
    key, value = status_topic.encode(("a-b", 0), status)
    assert key == b"status-task-a-b-0"
    told = b'{"state":"RUNNING","trace":null,"worker_id":"host:8083","generation":4,"version":"4.3.1"}'
    assert value == told
    state = status_topic.StatusState()
    state.replay(key, value)
    state.replay(*status_topic.encode(("a-b", None), status))
    assert state.statuses == {("a-b", 0): status, ("a-b", None): status}
    assert state.tasks_of("a-b") == {0: status}
    state.replay(key, None)
    assert state.statuses == {("a-b", None): status}


def test_topics_of_a_connector_are_connects() -> None:
    key, value = status_topic.encode_topic("fs", "ft", 0, 12)
    assert (key, json.loads(value or b"")) == (
        b"status-topic-ft:connector-fs",
        {"topic": {"name": "ft", "connector": "fs", "task": 0, "discoverTimestamp": 12}},
    )
    state = status_topic.StatusState()
    state.replay(key, value)
    assert state.topics == {"fs": {"ft"}}
    state.replay(*status_topic.encode_topic("fs", "ft", 0, None))
    assert state.topics == {"fs": set()}


def test_a_key_of_an_offset_is_written_again_as_it_stands() -> None:
    state = offset_topic.OffsetState()
    assert state.encode("fs", {"filename": "/ä"}, {"position": 6})[0] == '["fs",{"filename":"/ä"}]'.encode()
    theirs = b'["fs",{"b":1, "a":2}]'
    state.replay(theirs, b'{"position":6}')
    assert state.offset("fs", {"a": 2, "b": 1}) == {"position": 6}
    assert state.encode("fs", {"a": 2, "b": 1}, {"position": 7}) == (theirs, b'{"position":7}')
    state.replay(theirs, None)
    assert state.of("fs") == []
