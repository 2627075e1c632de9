"""The daemon of Spark's Python workers loads what they need, and leaves no thread behind that a fork would lose."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LOOK = """
import os, sys
from moldau.spark.daemon import NEEDED, preload
preload()
assert all(name in sys.modules for name in NEEDED)
names = [open(f"/proc/self/task/{one}/comm").read().strip() for one in os.listdir("/proc/self/task")]
print(sum(not name.startswith("jemalloc") for name in names))  # jemalloc knows of forks
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted as Linux shows them")
def test_workers_are_forked_from_a_process_without_threads() -> None:
    told = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, timeout=120)
    assert (told.stdout, told.returncode) == ("1\n", 0), told.stderr
