"""Crumbs say which flow a process was busy with when it ended, and which process hangs, on its own machine alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moldau.plan.lane import crumbs

ENDS = """
import os, sys
from moldau.plan.lane.crumbs import crumb
with crumb(sys.argv[1], 7, 2):
    os._exit(3)
"""


@pytest.fixture(autouse=True)
def no_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crumbs, "_open", {})


def test_a_process_that_ends_in_a_flow_leaves_word_of_it_once(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", ENDS, str(tmp_path)], check=False).returncode == 3
    assert crumbs.left(tmp_path) == [(7, 2)]
    assert crumbs.left(tmp_path) == []


def test_a_process_that_goes_on_is_not_to_blame(tmp_path: Path) -> None:
    with crumbs.crumb(str(tmp_path), 7, 2):
        assert crumbs.left(tmp_path) == []
        assert crumbs.stuck(tmp_path, time.time()) == []
        assert crumbs.stuck(tmp_path, time.time() + crumbs.LONGEST_S + 1) == [os.getpid()]
    assert crumbs.stuck(tmp_path, time.time() + crumbs.LONGEST_S + 1) == []


def test_a_process_of_another_machine_is_not_taken_for_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as there:
        there.setattr(socket, "gethostname", lambda: "another")
        subprocess.run([sys.executable, "-c", ENDS, str(tmp_path)], check=False)
        with crumbs.crumb(str(tmp_path), 8, 1):
            pass
        file = os.open(tmp_path / crumbs.FOLDER / f"{os.getpid()}@another", os.O_WRONLY)
        os.write(file, b"8 1\n")
        os.close(file)
    assert crumbs.left(tmp_path) == [(7, 2)], "of this machine"
    assert crumbs.stuck(tmp_path, time.time() + crumbs.LONGEST_S + 1) == [], "a process here may have the same number"
    assert (tmp_path / crumbs.FOLDER / f"{os.getpid()}@another").exists()


def test_nothing_is_left_where_the_folder_is_not(tmp_path: Path) -> None:
    with crumbs.crumb(str(tmp_path / "elsewhere"), 7, 2):
        assert not (tmp_path / "elsewhere").exists()
