"""These tests take minutes: they run when they are asked for, by `python -m tests.conformance.cluster`."""

from __future__ import annotations

import os

WANTED = "MIXED_CLUSTERS"

collect_ignore_glob = [] if os.environ.get(WANTED) else ["test_*.py"]
