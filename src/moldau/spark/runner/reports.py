"""What an application does, for others to see: a report in the metadata of what its consumer group has committed.

An application on Spark has no members in its group, so its group looks empty while it runs. Its driver therefore
writes a report with the offsets that it commits, and again every `HEARTBEAT_MS` while nothing else happens. A report is
in the cluster, on any Kafka, as long as the offsets are; whoever fetches the offsets has it without another request.
What it means now is decided by the reader: an application that was killed has reported no end, but its last report
grows old. The clocks of application and reader must agree within seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from moldau.spark.runner.status import ENDED, State

FORMAT = 1
MARK = '{"moldau":'  # how a report begins: other metadata is of others
HEARTBEAT_MS = 10_000
LOST_MS = 3 * HEARTBEAT_MS
BUSY_MS = 10_000  # after a batch an application counts as running for so long
# Kafka takes 4,096 bytes of metadata, and JSON writes some characters as six.
LONGEST_ERROR, LONGEST_REASON, MOST_FALLBACKS = 350, 64, 4
WAITING = "waiting"
SILENT = "no sign of life since then: it was killed, or cannot reach the cluster"


@dataclass(frozen=True, slots=True)
class Fallback:
    """Batches of a sub-topology that were processed record by record since the application started."""

    sub_topology: int
    batches: int
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """What an application said of itself at `at_ms`. Times are of its own clock."""

    state: State
    since_ms: int
    at_ms: int
    batch_at_ms: int | None = None  # when its last batch was done
    error: str | None = None
    fallbacks: tuple[Fallback, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """What an application does, as a reader sees it: a state, since when, and a sentence about it."""

    state: str
    since_ms: int | None = None
    detail: str | None = None
    fallbacks: tuple[Fallback, ...] = ()


def to_text(report: Report) -> str:
    most = sorted(report.fallbacks, key=lambda one: -one.batches)[:MOST_FALLBACKS]
    row = asdict(report) | {
        "error": None if report.error is None else report.error[:LONGEST_ERROR],
        "fallbacks": [[one.sub_topology, one.batches, one.reason[:LONGEST_REASON]] for one in most],
    }
    return json.dumps({"moldau": FORMAT, **row}, separators=(",", ":"), ensure_ascii=False)


def of_text(text: str) -> Report | None:
    """A report out of the metadata of a commit; None where there is none that this version understands."""
    if not text.startswith(MARK):
        return None
    try:
        return _of_row(json.loads(text))
    except (ValueError, KeyError, TypeError):
        return None


def _of_row(row: dict[str, Any]) -> Report:
    if row["moldau"] != FORMAT:
        raise ValueError(row["moldau"])
    batch_at, error = row["batch_at_ms"], row["error"]
    return Report(
        State(row["state"]),
        int(row["since_ms"]),
        int(row["at_ms"]),
        None if batch_at is None else int(batch_at),
        None if error is None else str(error)[:LONGEST_ERROR],
        tuple(Fallback(int(group), int(count), str(why)[:LONGEST_REASON]) for group, count, why in row["fallbacks"]),
    )


def latest(metadata: Iterable[str]) -> Report | None:
    """The newest report among the metadata of a group's commits."""
    found = [report for text in metadata if (report := of_text(text)) is not None]
    return max(found, key=lambda report: report.at_ms, default=None)


def activity(report: Report, lag: int | None, now_ms: int) -> Activity:
    """Decide what an application does now, by its last report and by how much it has not read yet."""
    state, since, detail = str(report.state), report.since_ms, report.error
    last_ms = since if report.batch_at_ms is None else report.batch_at_ms
    if report.state is State.FINISHED:
        state = State.STOPPED
    elif report.state not in ENDED and now_ms - report.at_ms > LOST_MS:
        state, since, detail = State.STOPPED, report.at_ms, SILENT
    elif report.state is State.RUNNING and not lag and now_ms - last_ms > BUSY_MS:
        state, since = WAITING, last_ms
    return Activity(state, since, detail, report.fallbacks)
