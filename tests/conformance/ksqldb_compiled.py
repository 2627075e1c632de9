"""Clients of ksqlDB that are compiled first, beside the SQL server: for make conformance, since cargo takes minutes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.conformance.test_ksqldb import WAIT_S, fresh, server
from tests.services import Service

__all__ = ["server"]  # the fixture


def steps_of(need: str, program: str, server: Service, name: str) -> dict[str, Any]:
    """Run a program that walks through a client, and return what it says of its steps in its last line."""
    command = [(needs.find(need).path or Path()) / program, server.url, fresh(name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.needs("go", "ksqldb-go")
def test_ksqldb_go(server: Service) -> None:
    steps = steps_of("ksqldb-go", "ksqldb-go", server, "go")
    assert steps["created"] == ["SUCCESS", "SUCCESS"] and steps["inserted"] == [[1, 1]]
    assert steps["streamed in"] == '200 {"status":"ok","seq":0}\n{"status":"ok","seq":1}\n'
    assert steps["pulled"] == [[3, 1]] and steps["pushed"] == [9, "pushed"] and steps["closed"] == "200 "
    assert (steps["info"], steps["status"], steps["healthy"], steps["alive"]) == ("RUNNING", "SUCCESS", True, 1)
    assert steps["valid"] and steps["invalid"] and steps["refused"] == 40001


@pytest.mark.needs("cargo", "ksqldb-rust")
def test_crate_ksqldb(server: Service) -> None:
    steps = steps_of("ksqldb-rust", "bin/walk", server, "rust")
    assert steps["created"] == ["Success", "Success"] and steps["inserted"] == []
    assert steps["streamed in"] == [{"status": "ok", "seq": 0}, {"status": "ok", "seq": 1}]
    assert steps["pulled"] == [{"id": 3, "n": 1}]
    assert steps["pushed"] == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}, {"id": 3, "v": "c"}]
    assert (steps["fields"], steps["explained"], steps["dropped"], steps["refused"]) == (
        2,
        "queryDescription",
        1,
        40001,
    )
