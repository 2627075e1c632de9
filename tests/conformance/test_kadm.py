"""franz-go's admin client, kadm: a small Go program walks through topics, settings, offsets and records."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs

pytestmark = pytest.mark.needs("go", "kadm")


@pytest.fixture(scope="module")
def steps(bootstrap: str, fresh_name: Callable[[str], str]) -> dict[str, Any]:
    """One walk; the tests below judge its steps."""
    program = needs.find("kadm").path or Path()
    command = [program / "kadm", bootstrap, fresh_name("kadm")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_topics_are_created_with_their_settings(steps: dict[str, Any]) -> None:
    assert steps["create"] == {"partitions": 3, "replicas": 1, "has_id": True, "retention": "60000"}
    assert steps["create by defaults"] == 1
    assert steps["validate create"] is True


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("create again", "TOPIC_ALREADY_EXISTS"),
        ("create bad name", "INVALID_TOPIC_EXCEPTION"),
        ("create too many replicas", "INVALID_REPLICATION_FACTOR"),
        ("create bad config", "INVALID_CONFIG"),
        ("fewer partitions", "INVALID_PARTITIONS"),
        ("alter bad config", "INVALID_CONFIG"),
        ("alter unknown config", "INVALID_CONFIG"),
        ("elect leaders", "ELECTION_NOT_NEEDED"),
        ("delete absent", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("after delete", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_kafka_refuses_is_refused_with_its_code(steps: dict[str, Any], step: str, error: str) -> None:
    assert error in steps[step]


def test_partitions_are_added_and_listed(steps: dict[str, Any]) -> None:
    assert steps["create partitions"] is True
    listed = steps["list"]
    assert (listed["partitions"], listed["leader_epoch"], listed["isr"]) == ([0, 1, 2, 3, 4], 0, 1)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in listed["absent"] and not listed["internal"]


def test_settings_are_altered_one_by_one_and_as_a_whole(steps: dict[str, Any]) -> None:
    assert steps["describe configs"] == {"cleanup.policy": "compact", "retention.ms": "60000"}
    assert steps["alter configs"] == "<nil>"
    assert steps["altered configs"] == {"cleanup.policy": "compact,delete", "max.message.bytes": "2000"}
    assert steps["alter whole state"] == "<nil>"
    assert steps["whole state"] == {"segment.bytes": "2097152"}
    assert (steps["brokers"], steps["broker configs"]) == (1, True)


def test_offsets_are_found_by_place_time_and_epoch(steps: dict[str, Any]) -> None:
    assert steps["produce"] == "ok"
    names = ["start offset", "end offset", "committed offset", "offset after 4500 ms", "max timestamp offset"]
    assert [steps[name] for name in names] == [0, 10, 10, 4, 9]
    assert [steps[name] for name in ("delete records", "start offset after", "end offset of epoch")] == [4, 4, 10]


def test_places_and_quotas_are_told(steps: dict[str, Any]) -> None:
    assert [steps[name] for name in ("log dirs", "reassignments", "quotas", "delete")] == [True, 0, 0, "<nil>"]


def test_the_broker_is_taken_for_kafka_4_3(steps: dict[str, Any]) -> None:
    assert steps["version guess"] == "v4.3"
