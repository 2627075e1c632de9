"""Node's client, kafkajs: a program walks through its admin client, producers, consumers, groups and transactions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs

pytestmark = pytest.mark.needs("node", "npm", "kafkajs")

WALK_S = 120


@pytest.fixture(scope="module")
def steps(bootstrap: str, fresh_name: Callable[[str], str]) -> dict[str, Any]:
    """Walk once; the tests below judge the steps."""
    program = (needs.find("kafkajs").path or Path()) / "walk.js"
    command = ["node", program, bootstrap, fresh_name("kafkajs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WALK_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_topics_are_created_grown_configured_and_deleted(steps: dict[str, Any]) -> None:
    assert (steps["create"], steps["create again"], steps["listed"]) == (True, False, True)
    assert steps["create a bad name"] == "error: KafkaJSAggregateError"
    assert steps["metadata"] == [[0, 1, 1]] * 5
    assert steps["metadata of nothing"] == "error: UNKNOWN_TOPIC_OR_PARTITION"
    assert (steps["setting"], steps["alter"]) == (["60000"], 0)
    assert steps["alter wrongly"] == "error: INVALID_CONFIG"
    assert steps["cluster"] == {"brokers": 1, "controller": True, "named": True}


def test_keys_headers_times_and_nulls_come_back(steps: dict[str, Any]) -> None:
    assert all(not row["errorCode"] for row in (*steps["produced"], *steps["compressed"]))
    ann, bob, placed = sorted(steps["consumed"], key=lambda row: row["key"] or "z")
    assert (ann["value"], ann["headers"], ann["timestamp"]) == ("tea", {"trace": "abc", "none": ""}, "1700000000000")
    assert (bob["key"], bob["value"]) == ("bob", None)
    assert (placed["value"], placed["partition"]) == ("to one place", 2)


def test_compressed_batches_are_read(steps: dict[str, Any]) -> None:
    assert steps["consumed compressed"] == 200


def test_offsets_are_committed_found_set_and_deleted(steps: dict[str, Any]) -> None:
    assert steps["committed"] == steps["ends"] and sum(end for _, end in steps["ends"]) == 203
    assert sorted(steps["by time"]) == [[0, 0], [1, 0], [2, 1]]
    assert steps["set and reset"] == ["1", "-2"] and "delete records" not in steps
    assert (steps["described"], steps["groups"], steps["delete group"]) == ([0, "Empty", 0], True, 0)
    assert steps["low"] is True


def test_two_members_share_a_topic_and_one_takes_over(steps: dict[str, Any]) -> None:
    assert steps["shared"] == [0, 1, 2, 3] and steps["read by two"] == [2, 2]
    assert steps["two members"] == ["Stable", "consumer", ["kafkajs", "kafkajs"]]
    assert steps["delete a group with members"] == "error: KafkaJSDeleteGroupsError"
    assert steps["read alone"] == 4


def test_transactions_commit_abort_and_fence(steps: dict[str, Any]) -> None:
    assert not {"abort", "commit", "once more"} & steps.keys()  # what gives nothing leaves no trace, unless it fails
    assert steps["offset after abort"] == -1
    assert steps["read committed"] == ["committed", "last"]
    assert steps["read uncommitted"] == ["aborted", "committed", "last"]
    assert steps["fenced"] == "error: INVALID_PRODUCER_EPOCH"
