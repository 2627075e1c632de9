"""Processes that are forked: with what is loaded here, and with nothing else of this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# No fork in the process of the tests, which has threads.
PARENT = """
import atexit, os, signal, sys, tempfile
from pathlib import Path
from moldau.cli.processes import Process, load

log = Path(sys.argv[1])
kept = open(log.with_suffix(".kept"), "w")
held, hold = os.pipe()
print("before", end=" ")  # still in the buffer when it forks

def look():
    atexit.register(print, "left", flush=True)
    files = [name for name in os.listdir("/dev/fd") if int(name) > 2 and os.path.exists(f"/dev/fd/{name}")]
    print(json.dumps([os.getsid(0) == os.getpid(), files, Path("/proc/self/cmdline").read_text().split("\\0")[:2]]))
    print(sys.stdin.readline().strip(), signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
    print("told", file=sys.stderr)
    raise SystemExit(3)

def fail():
    raise ValueError("a fault")

load(["json"])
import json
signal.signal(signal.SIGTERM, lambda *_: None)
one = Process([], log, "moldau look-2", look)
one.stdin.write(b"heard\\n")
assert one.wait(60) == 3 and one.poll() == 3
text = one.stdout.read().decode().splitlines()
assert json.loads(text[0]) == [True, [], ["moldau", "look-2"]], text
assert text[1:] == ["heard True", "left"], text
assert log.read_text() == "told\\n"

assert Process([], log, "x", fail).wait(60) == 1
assert "ValueError: a fault" in log.read_text()

asleep = Process([], log, "x", signal.pause)
assert asleep.wait(0.01) is None
asleep.terminate()
assert asleep.wait(60) == -signal.SIGTERM
asleep.terminate()  # it is gone

afresh = Process([sys.executable, "-c", "print(input(), 'json' in __import__('sys').modules)"], log)
afresh.stdin.write(b"afresh\\n")
assert afresh.stdout.read() == b"afresh False\\n" and afresh.wait(60) == 0
print("done")
"""


def test_a_forked_process_has_the_code_and_nothing_else_of_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "before done\n"), done.stderr


def test_parts_load_what_is_large_when_they_need_it() -> None:
    """What is loaded before the first use of a part makes every start longer, and every process larger."""
    names = "cli.up cli.registry cli.rest cli.connect cli.sql cli.worker cli.console registry.process rest.process"
    names += " connect.starting sql.server.process console.process flows.kinds"
    large = "google.protobuf jsonschema cryptography fastavro numpy pyarrow pandas duckdb pyspark numba nicegui"
    code = f"import sys, {', '.join('moldau.' + name for name in names.split())}"
    code += f"\nprint(*(name for name in '{large} websockets'.split() if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
