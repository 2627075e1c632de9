"""Ports for tests: never those of outgoing connections, and never the same for two processes."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from moldau.testing import ports
from moldau.testing.ports import OFFSETS, SINGLE, free_offset, free_port, free_ports

CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
TAKE = "from moldau.testing.ports import free_port; print(*(free_port() for _ in range(200)))"


def test_no_connection_is_given_such_a_port() -> None:
    if not CONNECTIONS.exists():
        pytest.skip("only Linux says which ports it gives to connections")
    assert SINGLE[-1] < int(CONNECTIONS.read_text().split()[0])


def test_processes_that_take_ports_at_the_same_time_get_others() -> None:
    some = [subprocess.Popen([sys.executable, "-c", TAKE], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    taken = [port for one in some for port in one.communicate(timeout=60)[0].split()]
    assert len(taken) == len(set(taken)) == 600


def test_a_port_that_is_used_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used, free = sorted(free_ports(2))
    monkeypatch.setattr(ports, "SINGLE", range(used, free + 1, free - used))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where the last one is kept
    with socket.create_server(("127.0.0.1", used)):
        assert [free_port(), free_port(), *free_ports(0)] == [free, free]
        with pytest.raises(OSError, match="only 1 are free, and not 2"):
            free_ports(2)


def test_an_offset_leaves_all_ports_free_and_below_the_single_ones() -> None:
    known = [8081, 9092]
    one, two = free_offset(known), free_offset(known)
    assert one != two and {one, two} <= {*OFFSETS}
    assert max(OFFSETS) + 9_999 < SINGLE[0]
