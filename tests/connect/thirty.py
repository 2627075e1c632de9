"""Three workers and thirty connectors, of which each worker is killed in turn: `python -m tests.connect.thirty`.

Each connector is an exactly-once source of a file, with a topic of its own. When a worker is killed a line is added to
each file, and the clock stops when all of them are in their topics: then every connector runs again. Meanwhile and in
the end no task may run on two workers, and no topic may have a line twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from moldau.testing import broker, eventually
from tests.connect.running import BROKER, SOURCE, settings
from tests.connect.workers import Followed, Workers, once, workers

COUNT, WORKERS = 30, 3
LIMIT_S, PATIENCE_S = 12.0, 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=COUNT)
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds until all must run again")
    given = parser.parse_args()
    names = [f"lines-{n:02d}" for n in range(given.connectors)]
    with tempfile.TemporaryDirectory() as folder, broker(BROKER) as kafka:
        configured = settings(kafka.bootstrap_servers)
        del configured["heartbeat.interval.ms"]  # as a worker has it by itself
        files = {name: Path(folder) / name for name in names}
        add(files, "start")
        for name in names:
            kafka.create_topic(name)
        with workers(WORKERS, kafka.bootstrap_servers, configured) as group:
            for name, file in files.items():
                group.create(name, {"connector.class": SOURCE, "file": file, "topic": name})
            followed = Followed(kafka.bootstrap_servers, names)
            try:
                return run(group, files, followed, given.limit)
            finally:
                followed.close()


def run(group: Workers, files: dict[str, Path], followed: Followed, limit_s: float) -> int:
    expected = ["start"]
    wait_for(followed, expected, "the start")
    took: list[float] = []
    for number in range(WORKERS):
        settled = once(lambda: group.states() == {"RUNNING": len(files)} and len(group.carried()) == len(files))
        eventually(settled, PATIENCE_S, "all tasks running")
        held = sum(number in who for who in group.carried().values())
        group.kill(number)
        begun = time.monotonic()
        expected.append(f"kill {number}")
        add(files, expected[-1])
        wait_for(followed, expected, f"the lines after kill {number}", group)
        took.append(time.monotonic() - begun)
        print(f"worker {number} with {held} tasks was killed: all run again after {took[-1]:.1f} s", flush=True)
        group.start(number)
    eventually(once(lambda: group.states() == {"RUNNING": len(files)}), PATIENCE_S, "all tasks running")
    check_once(group)
    wrong = {name: lines for name, lines in followed.read().items() if lines != expected}
    print(f"{len(files)} connectors, {WORKERS} kills, longest {max(took):.1f} s, {len(wrong)} topics wrong")
    return 1 if wrong or max(took) > limit_s else 0


def add(files: dict[str, Path], line: str) -> None:
    for file in files.values():
        with file.open("a") as out:
            out.write(f"{line}\n")


def wait_for(followed: Followed, expected: list[str], what: str, group: Workers | None = None) -> None:
    def all_there() -> bool:
        if group is not None:
            check_once(group)
        return all(len(lines) >= len(expected) for lines in followed.read().values())

    eventually(all_there, PATIENCE_S, what)


def check_once(group: Workers) -> None:
    """Fail if two workers run a task. The workers are asked one after the other, so ask twice before believing it."""
    twice: dict[str, list[int]] = {}
    for _ in range(2):
        twice = {name: who for name, who in group.carried().items() if len(who) > 1}
        if not twice:
            return
        time.sleep(1.0)
    raise AssertionError(f"tasks run twice: {twice}")


if __name__ == "__main__":
    sys.exit(main())
