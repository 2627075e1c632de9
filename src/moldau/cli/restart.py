"""`moldau restart --rolling`: the brokers of a platform are restarted one after another, and clients go on.

The platform starts a broker again whose process has ended. So a restart is SIGTERM, which lets the broker hand over all
that it leads, then patience: until its successor is ready, and until every replica is in sync again. Only then is the
next broker safe to stop.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from moldau.admin import clusters, elections, health, topics
from moldau.admin.connection import Connection
from moldau.admin.mistakes import Mistake, misused
from moldau.admin.topics import TopicState
from moldau.cli import running_platforms
from moldau.cli.commands import NO_REGISTRY, command
from moldau.cli.options import epilog, flag, option
from moldau.cli.running_platforms import Run, RunningPart
from moldau.cli.session import Session
from moldau.client import Client, ClientError
from moldau.platform import number_of

EPILOG = epilog("moldau restart --rolling", "moldau restart --rolling --data-dir ./moldau-data")
PATIENCE_S = 120.0
LOOK_EVERY_S = 0.2
SHOWN = 3


def restart(
    session: Session,
    rolling: bool = flag("--rolling", "Restart one broker at a time."),
    data_dir: str | None = option("--data-dir", "Restart the platform that uses this directory.", metavar="DIR"),
    patience: float = option("--patience", "Seconds to wait for each broker to be back and in sync.", PATIENCE_S),
) -> None:
    """Restart the brokers of a running `moldau up --brokers N` one after another.

    Each broker hands over what it leads, stops, starts, and catches up before the next one stops, the active controller
    last. If the cluster is unhealthy, or a broker does not come back, the command stops there and says why; the other
    brokers go on.
    """
    if not rolling:
        raise misused("Give --rolling. To stop and start everything, use `moldau down` and `moldau up`.")
    run = running_platforms.find(data_dir)
    if run is None:
        raise Mistake("No platform is running here. `moldau status` shows those that are.")
    brokers = brokers_of(run)
    if len(brokers) < 2:
        raise Mistake(
            "The platform has fewer than two brokers, so nobody could take over: use `moldau up --brokers 3`."
        )
    where = Connection(",".join(part.address for part in brokers), settings=session.connection.settings)
    try:
        _restart_all(session, where.client, run.data_dir, brokers, patience)
    finally:
        where.close()


cli = command(restart, (*NO_REGISTRY, "bootstrap_servers"))


def brokers_of(run: Run) -> list[RunningPart]:
    return [part for part in run.parts if part.name.startswith("broker")]


def _restart_all(
    session: Session, client: Client, data_dir: str, brokers: Sequence[RunningPart], patience_s: float
) -> None:
    if wrong := troubles(client):
        raise Mistake(f"It is not safe to stop a broker: {wrong}. `moldau cluster health` shows more.")
    listed = topics.listed(client)
    for sentence in stops(listed, health.min_insync(client, [topic.name for topic in listed])):
        session.tell(sentence)
    began = time.monotonic()
    names = [part.name for part in controller_last(brokers, clusters.quorum(client).leader)]
    for count, name in enumerate(names, 1):
        session.tell(f"{name}: stops ({count} of {len(names)})")
        since, part = time.monotonic(), _now(data_dir, name)
        with suppress(ProcessLookupError):  # it has just ended by itself, and is started again too
            os.kill(part.pid, signal.SIGTERM)
        _await(lambda part=part: _not_back(data_dir, part), part, patience_s)
        session.tell(f"{name}: is back, catches up")
        _await(lambda: troubles(client), part, patience_s)
        session.tell(f"{name}: is in sync, after {time.monotonic() - since:.1f} s")
    elections.elect(client, elections.ElectionType.PREFERRED, None)
    taken = round(time.monotonic() - began, 1)
    session.done(f"Restarted {', '.join(names)} in {taken} s.", restarted=names, seconds=taken)


def controller_last(brokers: Sequence[RunningPart], controller: int) -> list[RunningPart]:
    """Order brokers so that the active controller comes last: it is handed over once."""
    return sorted(brokers, key=lambda part: (number_of(part.name) == controller, number_of(part.name)))


def troubles(client: Client) -> str:
    """Say in a few words what is wrong with the cluster, if anything is."""
    try:
        found = [one for one in health.judge(health.look(client)) if one.is_unwell]
    except ClientError as error:
        if not error.retriable:
            raise
        return str(error).rstrip(".")
    words = [f"{one.where}: {one.reason} ({one.details})" for one in found[:SHOWN]]
    return "; ".join([*words, f"{len(found) - SHOWN} more"] if len(found) > SHOWN else words)


def _now(data_dir: str, name: str) -> RunningPart:
    """Return a part of the platform as it is now."""
    run = running_platforms.find(data_dir)
    if run is None:
        raise Mistake("The platform has ended meanwhile. `moldau up` starts it again.")
    return next(one for one in run.parts if one.name == name)


def _not_back(data_dir: str, part: RunningPart) -> str:
    """Say why the successor of a broker's process is not there yet."""
    now = _now(data_dir, part.name)
    if now.pid == part.pid:
        return f"its process {part.pid} has not been replaced"
    return "" if now.is_ready else f"its new process {now.pid} is not ready"


def _await(trouble: Callable[[], str], part: RunningPart, patience_s: float) -> None:
    """Wait until there is no trouble; Mistake if it stays."""
    until = time.monotonic() + patience_s
    while wrong := trouble():
        if time.monotonic() > until:
            raise Mistake(
                f"After {patience_s:.0f} s {part.name} is not back: {wrong}. No other broker was stopped after it. "
                f"`moldau logs {part.name}` shows its log."
            )
        time.sleep(LOOK_EVERY_S)


def stops(listed: Iterable[TopicState], least: Mapping[str, int]) -> list[str]:
    """Say which topics cannot go on while one of their replicas is away; `least` has min.insync.replicas."""
    single, strict = [], []
    for topic in listed:
        fewest = min((len(part.replicas) for part in topic.partitions), default=0)
        if fewest == 1:
            single.append(topic.name)
        elif fewest and fewest <= least.get(topic.name, 1):
            strict.append(topic.name)
    told = (
        (single, "have a single replica: their clients wait while its broker restarts"),
        (strict, "need all replicas for acks=all: such writes wait while a broker restarts"),
    )
    return [f"Note: topics {_names(names)} {words}." for names, words in told if names]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
