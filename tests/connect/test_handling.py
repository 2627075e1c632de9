"""Errors of single records: what is tried again, left out, reported, and what fails the task."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect.errors import ConnectError, DataError, RetriableError
from moldau.connect.handling import (
    TRANSFORM,
    VALUE,
    Failure,
    Handler,
    Policy,
    Tolerated,
    dead_letter_headers,
    trace_of,
)


class Message:
    """What a consumer gives of a record."""

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


def broken() -> Any:
    raise DataError("no field")


def failing(times: int) -> Any:
    """An operation that fails a few times, and then not."""
    left = [times]

    def run() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise RetriableError("not yet")
        return "done"

    return run


def test_an_error_fails_the_task_unless_it_is_tolerated() -> None:
    with pytest.raises(ConnectError, match="Tolerance exceeded in error handler") as caught:
        Handler("x-0", Policy(), lambda _: False).run(VALUE, "C", broken)
    assert isinstance(caught.value.__cause__, DataError)
    with pytest.raises(Tolerated):
        Handler("x-0", Policy(tolerates=True), lambda _: False).run(VALUE, "C", broken)


def test_what_may_pass_is_tried_again_with_longer_pauses() -> None:
    pauses: list[float] = []
    handler = Handler("x-0", Policy(retry_timeout_ms=-1), lambda s: bool(pauses.append(s)))
    assert handler.run(TRANSFORM, "C", failing(3)) == "done"
    assert pauses == [0.3, 0.6, 1.2]


def test_tries_end_with_the_time_for_them_or_with_the_task() -> None:
    for policy, wait in ((Policy(retry_timeout_ms=200), False), (Policy(retry_timeout_ms=-1), True)):
        with pytest.raises(ConnectError, match="Tolerance"):
            Handler("x-0", policy, lambda _, wait=wait: wait).run(TRANSFORM, "C", failing(9))


def test_no_pause_is_longer_than_the_longest() -> None:
    pauses: list[float] = []
    policy = Policy(retry_timeout_ms=-1, retry_delay_max_ms=500)
    Handler("x-0", policy, lambda s: bool(pauses.append(s))).run(TRANSFORM, "C", failing(6))
    assert pauses[0] == 0.3 and max(pauses) <= 0.5


def test_only_records_of_a_sink_become_dead_letters() -> None:
    letters: list[Failure] = []
    handler = Handler("x-0", Policy(tolerates=True, dead_letters="d"), lambda _: False, letters.append)
    for raw in (None, Message()):
        with pytest.raises(Tolerated):
            handler.run(VALUE, "C", broken, raw)
    assert [letter.raw is not None for letter in letters] == [True]
    headers = dict(dead_letter_headers(letters[0], "x", 0))
    assert headers["__connect.errors.partition"] == b"2" and headers["__connect.errors.offset"] == b"7"
    assert headers["__connect.errors.exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"
    assert headers["__connect.errors.exception.message"] == b"no field"


def test_the_log_says_which_record_failed_if_that_is_wanted(caplog: pytest.LogCaptureFixture) -> None:
    for policy in (Policy(True, logs=True), Policy(True, logs=True, logs_messages=True), Policy(True)):
        with pytest.raises(Tolerated):
            Handler("x-0", policy, lambda _: False).run(VALUE, "C", broken, Message())
    plain, detailed = (record.getMessage() for record in caplog.records)
    assert plain == "Error encountered in task x-0. Executing stage 'VALUE_CONVERTER' with class 'C'."
    assert "offset=7" in detailed


def test_settings_of_a_connector_make_its_policy() -> None:
    config = {"errors.tolerance": "ALL", "errors.retry.timeout": "5", "errors.log.enable": "TRUE"}
    config["errors.deadletterqueue.topic.name"] = "d"
    assert Policy.of(config) == Policy(True, 5, 60_000, True, dead_letters="d")


def test_a_trace_has_the_causes_as_java_writes_them() -> None:
    with pytest.raises(ConnectError) as caught:
        Handler("x-0", Policy(), lambda _: False).run(VALUE, "C", broken)
    first, *rest = trace_of(caught.value).splitlines()
    assert first == "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler"
    assert "Caused by: org.apache.kafka.connect.errors.DataException: no field" in rest
    assert any(line.startswith("\tat broken(test_handling.py:") for line in rest)
