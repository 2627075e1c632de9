"""Log lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from moldau import logs


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    logger = logging.getLogger("moldau")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def written(form: str, level: str = "info") -> str:
    stream = io.StringIO()
    logs.set_up(form, level, stream)
    log = logs.get("moldau.broker.example")
    log.debug("small")
    log.info("opened", peer="127.0.0.1:5", text='two words "quoted"', line="a\nb")
    try:
        raise ValueError("broken")
    except ValueError as error:
        log.error("fault", error)
    return stream.getvalue()


def test_text_lines_have_a_time_a_level_and_fields() -> None:
    first, second, *trace = written("text").splitlines()
    assert first.endswith(r'Z INFO example opened peer=127.0.0.1:5 text="two words \"quoted\"" line="a\nb"')
    assert second.endswith("ERROR example fault")
    assert trace[-1] == "ValueError: broken"


def test_json_lines_are_objects() -> None:
    first, second = map(json.loads, written("json").splitlines())
    assert first | {"time": ""} == {
        "time": "",
        "level": "info",
        "logger": "moldau.broker.example",
        "message": "opened",
        "peer": "127.0.0.1:5",
        "text": 'two words "quoted"',
        "line": "a\nb",
    }
    assert "ValueError: broken" in second["exception"]


def test_the_level_decides_what_is_written() -> None:
    assert "small" in written("text", "debug")
    assert "opened" not in written("text", "error")


def test_a_peer_gets_a_few_lines_and_is_heard_again_later() -> None:
    now = 0.0
    quota = logs.Quota(lambda: now)
    answers = [quota.admit("a") for _ in range(25)]
    assert answers == [0] * logs.LINES + [None] * 15
    assert quota.admit("b") == 0
    now = logs.QUIET_S
    assert quota.admit("a") == 15
    assert quota.admit("a") == 0


def test_the_memory_of_peers_is_bounded() -> None:
    quota = logs.Quota(lambda: 0.0)
    for number in range(3 * logs.PEERS):
        quota.admit(str(number))
    assert len(quota._peers) == logs.PEERS
