"""The core of the campaign without Spark: tasks and drivers die by SIGKILL, and every row is there once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_tasks_drivers_and_the_broker_die_and_every_row_is_there_once() -> None:
    """In a process of its own, because it forks: that is no good where threads run."""
    command = [sys.executable, "-m", "tests.spark.chaos_tasks", "--kills", "5", "--rounds", "1", "--seed", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
