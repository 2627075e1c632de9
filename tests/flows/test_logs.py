"""The log of a flow is bounded, and whoever follows it misses nothing when the file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.flows.logs import BEFORE, FlowLogs, follow, path_of, tail, text_of
from moldau.flows.states import FlowState

FAILED = FlowState("a", 1, 2, "failed", "desk", "lane", 0, 0, "ValueError: x", "Traceback\n  line 1\nValueError: x")


def test_a_state_is_a_line_and_a_trace_follows_it(tmp_path: Path) -> None:
    FlowLogs(tmp_path / "logs").write("a", text_of(FAILED, "0123456789abcdef"))
    first, *more = tail(path_of(tmp_path / "logs", "a"), 10)
    assert first.endswith(" failed on desk, version 0123456789ab, revision 2: ValueError: x")
    assert more == ["  Traceback", "    line 1", "  ValueError: x"]
    assert tail(path_of(tmp_path / "logs", "a"), 1) == ["  ValueError: x"] and not tail(tmp_path / "none", 5)


def test_logs_do_not_grow_beyond_two_files(tmp_path: Path) -> None:
    logs = FlowLogs(tmp_path, most_bytes=500)
    for number in range(100):
        logs.write("a", f"line {number}")
    logs.write("a", "x" * 2000)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.keys() == {"a.log", f"a.log{BEFORE}"} and all(size <= 500 for size in sizes.values())
    logs.forget("a")
    logs.forget("a")
    assert not list(tmp_path.iterdir())


def test_who_follows_sees_each_line_once_through_changes_of_files(tmp_path: Path) -> None:
    logs, left = FlowLogs(tmp_path, most_bytes=200), iter(range(40))
    logs.write("a", "before")

    def is_stopped(_: float) -> bool:
        number = next(left, None)
        for part in range(3) if number is not None else ():
            logs.write("a", f"{number}.{part}")
        return number is None

    found = [line.split(" ")[1] for line in follow(path_of(tmp_path, "a"), is_stopped)]
    assert found == [f"{number}.{part}" for number in range(40) for part in range(3)]


def test_a_log_that_cannot_be_written_holds_nothing_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "logs").write_text("a file where a folder should be")
    FlowLogs(tmp_path / "logs").write("a", "line")
    assert "the log of a cannot be written" in caplog.text
