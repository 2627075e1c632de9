"""The loop of a source's task: what is sent when, and what waits for a commit."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.connect.data import Record
from moldau.connect.errors import ConnectError
from moldau.connect.metrics import Figures
from moldau.connect.source_task import _loop

STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
PATIENCE_S = 10.0


class Task:
    """A task that ends after so many polls."""

    def __init__(self, polls: int, **config: str) -> None:
        self.left, self.figures, self.stopped = polls, Figures(), threading.Event()
        self.spec = SimpleNamespace(config=config, name="c-0", connector="c", task=0)
        worker = {"key.converter": STRING, "value.converter": STRING, "header.converter": SIMPLE}
        self.around = SimpleNamespace(worker=worker, uses=lambda *_: None)

    def may_go_on(self, _before_rest: Any) -> bool:
        self.left -= 1
        return self.left >= 0


class Source:
    def __init__(self, *polls: Sequence[Record]) -> None:
        self.polls, self.polled = list(polls), threading.Semaphore(0)

    def poll(self) -> Sequence[Record]:
        self.polled.release()
        return self.polls.pop(0) if self.polls else ()


class Waiting(Source):
    """One that is told of commits."""

    def __init__(self, *polls: Sequence[Record]) -> None:
        super().__init__(*polls)
        self.told = 0

    def committed(self) -> None:
        self.told += 1


class Writer:
    """Notes what it is asked; a commit takes until it is let through."""

    is_bound, is_due = False, True

    def __init__(self, failure: Exception | None = None) -> None:
        self.did: list[str] = []
        self.open, self.failure, self.may_commit, self.committing = False, failure, threading.Event(), threading.Event()

    @property
    def has_work(self) -> bool:
        return self.open

    def send(self, topic: str, partition: int | None, key: Any, value: bytes, *_: Any) -> None:
        self.open = True
        self.did.append(value.decode())

    def note(self, *_: Any) -> None: ...
    def serve(self) -> None: ...

    def commit(self) -> bool:
        if not self.open:
            return False
        self.committing.set()
        assert self.may_commit.wait(PATIENCE_S)
        if self.failure:
            raise self.failure
        self.open = False
        self.did.append("commit")
        return True

    def abort(self) -> None:
        self.did.append("abort")


def polls(*values: str) -> list[list[Record]]:
    return [[Record("t", value=value)] for value in values]


def started(task: Task, source: Source, writer: Writer) -> threading.Thread:
    thread = threading.Thread(target=_loop, args=(task, source, writer))
    thread.start()
    return thread


def test_a_source_is_polled_while_the_commit_before_is_under_way_and_nothing_is_sent_meanwhile() -> None:
    task, source, writer = Task(2), Source(*polls("a", "b")), Writer()
    thread = started(task, source, writer)
    assert writer.committing.wait(PATIENCE_S)
    assert all(source.polled.acquire(timeout=PATIENCE_S) for _ in range(2)) and writer.did == ["a"]
    writer.may_commit.set()
    thread.join(PATIENCE_S)
    assert writer.did == ["a", "commit", "b", "commit"] and task.figures.commits == 2


def test_a_source_that_is_told_of_commits_is_not_polled_before() -> None:
    task, source, writer = Task(2), Waiting(*polls("a", "b")), Writer()
    thread = started(task, source, writer)
    assert writer.committing.wait(PATIENCE_S)
    assert source.polled.acquire(timeout=PATIENCE_S) and not source.polled.acquire(timeout=0.1) and source.told == 0
    writer.may_commit.set()
    thread.join(PATIENCE_S)
    assert writer.did == ["a", "commit", "b", "commit"] and source.told == 2


def test_a_commit_that_fails_beside_a_poll_fails_the_task() -> None:
    task, source, writer = Task(3), Source(*polls("a", "b")), Writer(ConnectError("fenced"))
    writer.may_commit.set()
    with pytest.raises(ConnectError, match="fenced"):
        _loop(task, source, writer)  # type: ignore[arg-type]
    assert writer.did == ["a", "abort"]


def test_what_comes_before_a_record_that_fails_the_task_is_sent() -> None:
    transform = {"transforms": "x", "transforms.x.type": "org.apache.kafka.connect.transforms.InsertField$Value"}
    broken = {"transforms.x.static.field": "f", "transforms.x.static.value": "1"}
    good, bad = Record("t", value={"a": 1}), Record("t", value="no object")
    task, writer = Task(1, **transform, **broken), Writer()
    with pytest.raises(ConnectError):
        _loop(task, Source([good, bad]), writer)  # type: ignore[arg-type]
    assert writer.did == ["{a=1, f=1}", "abort"]
