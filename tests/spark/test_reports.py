"""What an application reports of itself, and what a reader makes of that: without Spark."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from moldau.admin import groups
from moldau.client import Client
from moldau.spark.connections import client_for
from moldau.spark.options import OptionError
from moldau.spark.runner import QueryFailed, Supervised, Supervisor
from moldau.spark.runner.reporter import Reporter
from moldau.spark.runner.reports import (
    BUSY_MS,
    HEARTBEAT_MS,
    LOST_MS,
    MOST_FALLBACKS,
    SILENT,
    WAITING,
    Fallback,
    Report,
    activity,
    latest,
    of_text,
    to_text,
)
from moldau.spark.runner.status import QueryStatus, State
from tests.spark.conftest import Cluster

NOW = 1_790_000_000_000
BUSY = Report(State.RUNNING, NOW - 60_000, NOW, NOW - 1000, None, (Fallback(1, 3, "an aggregate is None"),))


def test_a_report_is_read_as_it_was_written() -> None:
    assert of_text(to_text(BUSY)) == BUSY
    failed = replace(BUSY, state=State.FAILED, error="the topic ä is gone", batch_at_ms=None)
    assert of_text(to_text(failed)) == failed


@pytest.mark.parametrize(
    "text",
    ["", "anything", '{"moldau":', '{"moldau":2}', '{"moldau":1}', '{"moldau":1,"state":"odd"}', '{"moldau":[]}'],
)
def test_metadata_that_is_no_report_is_none(text: str) -> None:
    assert of_text(text) is None


def test_the_longest_report_fits_into_what_kafka_takes() -> None:
    for character in ("\U0001f4a5", "\0"):
        many = tuple(Fallback(number, 10**12, character * 1000) for number in range(100))
        text = to_text(replace(BUSY, error=character * 10_000, fallbacks=many))
        assert len(text.encode()) <= 4096
        found = of_text(text)
        assert found is not None and found.error is not None and len(found.fallbacks) == MOST_FALLBACKS


def test_the_newest_report_of_a_group_counts() -> None:
    older = replace(BUSY, at_ms=NOW - 1, state=State.FAILED)
    assert latest(["", to_text(older), "x", to_text(BUSY)]) == BUSY
    assert latest(["", "x"]) is None


@pytest.mark.parametrize(
    ("report", "lag", "after_ms", "state", "since_ms"),
    [
        (BUSY, 0, 0, "running", BUSY.since_ms),
        (BUSY, 5, BUSY_MS, "running", BUSY.since_ms),
        (BUSY, 0, BUSY_MS, WAITING, BUSY.batch_at_ms),
        (BUSY, None, BUSY_MS, WAITING, BUSY.batch_at_ms),
        (replace(BUSY, batch_at_ms=None), 0, 0, WAITING, BUSY.since_ms),
        (BUSY, 5, LOST_MS + 1, "stopped", BUSY.at_ms),
        (BUSY, 0, LOST_MS + 1, "stopped", BUSY.at_ms),
        (replace(BUSY, state=State.STARTING), 5, 1, "starting", BUSY.since_ms),
        (replace(BUSY, state=State.RESTARTING), 5, 1, "restarting", BUSY.since_ms),
        (replace(BUSY, state=State.STOPPED), 5, 10 * LOST_MS, "stopped", BUSY.since_ms),
        (replace(BUSY, state=State.FINISHED), 5, 10 * LOST_MS, "stopped", BUSY.since_ms),
        (replace(BUSY, state=State.FAILED), 5, 10 * LOST_MS, "failed", BUSY.since_ms),
    ],
)
def test_what_an_application_does_is_decided_by_its_report_its_lag_and_the_time(
    report: Report, lag: int | None, after_ms: int, state: str, since_ms: int
) -> None:
    found = activity(report, lag, NOW + after_ms)
    assert (found.state, found.since_ms) == (state, since_ms)
    assert found.fallbacks == BUSY.fallbacks


def test_one_that_was_killed_has_stopped_with_its_last_sign_of_life() -> None:
    found = activity(BUSY, 0, NOW + LOST_MS + 1)
    assert (found.state, found.since_ms, found.detail) == ("stopped", NOW, SILENT)


def test_one_that_failed_says_why() -> None:
    failed = replace(BUSY, state=State.FAILED, error="ValueError: no weights")
    assert activity(failed, 0, NOW + 10 * LOST_MS).detail == "ValueError: no weights"


class Driven:
    """A reporter of an application on a topic, with a clock that the test moves."""

    def __init__(self, cluster: Cluster, servers: str | None = None) -> None:
        self.cluster, self.name = cluster, f"app-{uuid.uuid4().hex[:8]}"
        self.topic, self.now = cluster.topic(partitions=2), NOW
        self.counted: tuple[Fallback, ...] = ()
        self.settings = {"bootstrap.servers": servers or cluster.servers}
        self.reporter = Reporter(self.name, lambda: client_for(self.settings), lambda: self.counted, lambda: self.now)
        self.query = Supervised(self.name, lambda session: NotImplemented, QueryStatus(self.name))

    def observe(self, state: State, batch: int | None = None, ends: tuple[int, int] = (0, 0)) -> None:
        status = self.query.status
        status.state, status.batch = state, batch
        end: dict[str, Any] = {self.topic: {"0": ends[0], "1": ends[1]}}
        self.query.progress = None if batch is None else {"sources": [{"endOffset": json.dumps(end)}]}
        self.reporter.observe(self.query)

    def seen(self) -> tuple[dict[tuple[str, int], int], Report | None]:
        found = groups.committed(self.cluster.client, self.name)
        offsets = {place: one.offset for place, one in found.items()}
        return offsets, latest(one.metadata for one in found.values())


def test_offsets_and_report_are_committed_together_as_batches_come(cluster: Cluster) -> None:
    driven = Driven(cluster)
    driven.reporter.begins_at({driven.topic: {"0": 3, "1": 4}})
    driven.observe(State.RUNNING)
    assert driven.seen() == ({(driven.topic, 0): 3, (driven.topic, 1): 4}, Report(State.RUNNING, NOW, NOW))
    driven.observe(State.RUNNING, 0, (3, 4))  # idle, with the number of the batch to come
    driven.now += 50
    driven.counted = (Fallback(0, 2, "an aggregate is None"),)
    driven.observe(State.RUNNING, 0, (7, 4))
    expected = Report(State.RUNNING, NOW, driven.now, driven.now, None, driven.counted)
    assert driven.seen() == ({(driven.topic, 0): 7, (driven.topic, 1): 4}, expected)
    assert driven.query.status.fallbacks == 2


def test_an_idle_application_writes_a_heartbeat_and_no_more(cluster: Cluster) -> None:
    driven, times = Driven(cluster), set[int]()
    driven.observe(State.RUNNING, 0, (1, 1))
    for _ in range(5 * HEARTBEAT_MS // 1000):
        driven.now += 1000
        driven.observe(State.RUNNING, 0, (1, 1))
        report = driven.seen()[1]
        assert report is not None
        times.add(report.at_ms)
    assert sorted(times) == [NOW + beat * HEARTBEAT_MS for beat in range(6)]


def test_one_that_fails_before_its_first_batch_reports_with_what_it_committed_before(cluster: Cluster) -> None:
    driven = Driven(cluster)
    groups.commit(cluster.client, driven.name, {(driven.topic, 1): 9})
    driven.query.status.error = "the topology has changed"
    driven.observe(State.FAILED)
    offsets, report = driven.seen()
    assert offsets == {(driven.topic, 1): 9}
    assert report is not None and report.error == "the topology has changed"


def test_one_that_never_got_anywhere_commits_nothing(cluster: Cluster) -> None:
    driven = Driven(cluster)
    driven.observe(State.FAILED)
    assert driven.seen() == ({}, None)


def test_a_cluster_that_is_away_is_logged_and_left_alone_for_a_while(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    driven, calls = Driven(cluster, "127.0.0.1:1"), list[Client]()
    send = Client.send

    def counted(client: Client, *given: Any, **named: Any) -> Any:
        calls.append(client)
        return send(client, *given, **named)

    monkeypatch.setattr(Client, "send", counted)
    driven.observe(State.RUNNING, 0, (1, 1))
    driven.now += 1000
    driven.observe(State.RUNNING, 1, (2, 2))
    assert calls.count(client_for(driven.settings)) == 1  # others of this process may send meanwhile
    assert caplog.text.count("cannot report what it does") == 1


def test_a_client_that_cannot_be_made_does_not_hide_why_the_application_fails(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> Client:
        raise OptionError("there is no such option")

    query = Supervised("app", lambda session: NotImplemented, QueryStatus("app", State.FAILED))
    Reporter("app", refuse, tuple, lambda: NOW).observe(query)
    assert "app cannot report what it does: there is no such option" in caplog.text


class Fake:
    """A query, and the writer that starts it, as far as a supervisor looks at them."""

    def __init__(self) -> None:
        self.isActive, self.lastProgress = True, None
        self.error: Exception | None = None
        self.status = {"isTriggerActive": False}

    def queryName(self, name: str) -> Fake:
        return self

    def start(self) -> Fake:
        return self

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False


def supervised(query: Fake, seen: list[State]) -> Supervisor:
    one = Supervised("app", lambda session: query, QueryStatus("app"), observe=lambda of: seen.append(of.status.state))  # type: ignore[arg-type, return-value]
    return Supervisor(object(), [one])  # type: ignore[arg-type]


def test_an_observer_sees_the_failure_that_ends_a_query() -> None:
    query, seen = Fake(), list[State]()
    supervisor = supervised(query, seen)
    supervisor.step(0.0)
    query.isActive, query.error = False, ValueError("no weights")
    supervisor.step(1.0)
    with pytest.raises(QueryFailed, match="no weights"):
        supervisor.raise_failure()
    supervisor.kill()
    assert seen == [State.RUNNING, State.FAILED, State.FAILED]


def test_an_observer_sees_the_end_of_a_query_that_is_stopped_or_killed() -> None:
    query, seen = Fake(), list[State]()
    supervisor = supervised(query, seen)
    supervisor.step(0.0)
    supervisor.stop(1.0)
    supervisor.step(1.0)
    assert seen == [State.RUNNING, State.STOPPED]
    killed = supervised(Fake(), seen)
    killed.step(0.0)
    killed.kill()
    assert seen[2:] == [State.RUNNING, State.STOPPED]
