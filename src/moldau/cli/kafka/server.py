"""kafka-server-start and kafka-server-stop: start and stop a broker of Moldau."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from moldau.cli.kafka.running import FAILED, OK, Script, complain

USAGE = "USAGE: kafka-server-start [-daemon] server.properties [--override property=value]*"
SERVER = re.compile(
    r"\s(-m moldau broker|\S*moldau broker|\S*kafka-server-start(\.sh)?|-m moldau kafka-server-start)\s"
)


def start(arguments: list[str]) -> int:
    rest = list(arguments)
    daemon = rest[:1] == ["-daemon"]
    rest = rest[1:] if daemon else rest
    if not rest or rest[0] in ("--help", "-h"):
        return complain(USAGE)
    config, overrides, rest = rest[0], [], rest[1:]
    while rest:
        if rest[0] != "--override" or len(rest) < 2:
            return complain(f"Found non argument parameters: {','.join(rest)}")
        overrides.append(rest[1])
        rest = rest[2:]
    return _detach(arguments[1:]) if daemon else _serve(config, overrides)


def _serve(config: str, overrides: list[str]) -> int:
    from moldau.broker.rim import process

    return process.run(process.Options(config=config, overrides=tuple(overrides)))


def _detach(arguments: list[str]) -> int:
    """Start the broker in the background, with its log in kafkaServer.out, as Kafka's script does."""
    folder = os.environ.get("LOG_DIR", "logs")
    os.makedirs(folder, exist_ok=True)
    command = [sys.executable, "-m", "moldau", "kafka-server-start", *arguments]
    with open(os.path.join(folder, "kafkaServer.out"), "ab") as out:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
    return OK


def stop(arguments: list[str]) -> int:
    pairs = (word.removeprefix("--").partition("=") for word in arguments)
    given = {name: value for name, _, value in pairs}
    if unknown := given.keys() - {"node-id", "process-role"}:
        return complain(f"Unknown option --{sorted(unknown)[0]}; there are --node-id and --process-role")
    running = servers(_processes(), given.get("node-id"))
    if not running:
        print("No kafka server to stop")
        return FAILED
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    return OK


def _processes() -> list[str]:
    """Return a line for each process of this user: its id and its command."""
    listed = subprocess.run(
        ["ps", "-u", str(os.getuid()), "-o", "pid=,args="], capture_output=True, text=True, check=True
    )
    return listed.stdout.splitlines()


def servers(lines: list[str], node_id: str | None = None) -> list[int]:
    """Return the ids of the processes that are brokers, or of the broker with this node.id."""
    found = []
    for line in lines:
        pid, _, command = line.strip().partition(" ")
        named = re.search(r"node\.id=(\d+)", command)
        if SERVER.search(f" {command} ") and (node_id is None or (named and named[1] == node_id)):
            found.append(int(pid))
    return [pid for pid in found if pid != os.getpid()]


START = Script(
    "kafka-server-start", "`kafka-server-start [-daemon] server.properties [--override name=value]...`", start
)
STOP = Script(
    "kafka-server-stop",
    "`kafka-server-stop [--process-role=...] [--node-id=...]`: stops the brokers of this user.",
    stop,
)
