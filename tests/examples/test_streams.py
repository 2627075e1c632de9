"""The examples of streams, with the test driver."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from moldau.plan.conveyor.topics import missing
from moldau.streams import TopologyTestDriver

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "streams"


def started(name: str) -> TopologyTestDriver:
    """The driver of an example, with every change emitted."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return TopologyTestDriver(module.builder, {"statestore.cache.max.bytes": 0})


def send(driver: TopologyTestDriver, topic: str, *records: tuple[Any, Any, int]) -> None:
    into = driver.create_input_topic(topic)
    for key, value, timestamp in records:
        into.pipe_input(key, value, timestamp=timestamp)


def received(driver: TopologyTestDriver, topic: str) -> list[tuple[Any, Any]]:
    return driver.create_output_topic(topic).read_key_values_to_list()


def test_every_example_is_tested_here() -> None:
    text = Path(__file__).read_text()
    assert [path.stem for path in sorted(FOLDER.glob("*.py")) if f'started("{path.stem}")' not in text] == []


def test_words_are_counted() -> None:
    with started("word_count") as driver:
        send(driver, "sentences", (None, "Hello streams", 0), (None, "hello, Moldau!", 1))
        assert received(driver, "word-counts") == [("hello", 1), ("streams", 1), ("hello", 2), ("moldau", 1)]


def test_a_user_who_moves_leaves_one_region_for_another() -> None:
    with started("users_per_region") as driver:
        send(driver, "user-prefs", ("alice", {"age": 25}, 0), ("bob", {"age": 46}, 0))
        send(driver, "user-locations", ("alice", "Asia", 1), ("bob", "Europe", 2), ("alice", "Europe", 3))
        assert received(driver, "users-per-region") == [("Asia", 1), ("Asia", 0), ("Europe", 1)]


def test_the_fourth_attempt_within_five_seconds_is_possible_fraud() -> None:
    with started("possible_fraud") as driver:
        send(driver, "authorization_attempts", *(("4711", {"amount": 1}, 1000 * second) for second in range(8)))
        ((card, attempts), (_, again)) = received(driver, "possible_fraud")
        assert (card.key, card.start, card.end) == ("4711", 0, 5000)
        assert (attempts, again) == (4, 5)


def test_only_clicks_of_platinum_users_pass() -> None:
    with started("vip_users") as driver:
        send(driver, "users", ("u1", {"level": "Platinum"}, 0), ("u2", {"level": "Gold"}, 0))
        clicks = [("u1", {"page": "/a"}, 1), ("u2", {"page": "/b"}, 2), ("u3", {"page": "/c"}, 3)]
        send(driver, "clickstream", *clicks)
        assert received(driver, "vip_users") == [("u1", {"page": "/a", "level": "Platinum"})]


def test_errors_are_told_once_a_minute_is_over() -> None:
    with started("error_counts") as driver:
        events = [("h", {"type": "ERROR", "error_code": "E1"}, at) for at in (1_000, 2_000, 65_000)]
        send(driver, "monitoring_stream", *events, ("h", {"type": "INFO", "error_code": "E1"}, 3_000))
        assert received(driver, "error_counts") == []
        send(driver, "monitoring_stream", ("h", {"type": "ERROR", "error_code": "E2"}, 70_000))
        ((code, count),) = received(driver, "error_counts")
        assert (code.key, code.start, code.end, count) == ("E1", 0, 60_000, 2)


def test_views_of_a_region_fall_into_sessions() -> None:
    with started("page_views") as driver:
        send(driver, "users", ("u1", {"region": "Asia"}, 0))
        views = [("u1", {"page": "/"}, minute * 60_000) for minute in (0, 4, 20)]
        send(driver, "pageviews", *views, ("nobody", {"page": "/"}, 1_200_000))
        found = [(key.key, key.start, key.end, count) for key, count in received(driver, "views-by-region")]
        assert found == [
            ("Asia", 0, 0, 1),
            ("Asia", 0, 0, None),
            ("Asia", 0, 240_000, 2),
            ("Asia", 1_200_000, 1_200_000, 1),
            ("unknown", 1_200_000, 1_200_000, 1),
        ]


def test_every_example_is_in_the_readme_with_its_command() -> None:
    readme = (FOLDER.parent / "README.md").read_text()
    commands = re.findall(r"^\| `(.+?)` \|", readme, re.MULTILINE)
    files = [
        f"examples/{path.relative_to(FOLDER.parent)}"
        for path in sorted(FOLDER.parent.glob("*/*.*"))
        if path.suffix in (".py", ".sql") and path.name != "tests.sql"
    ]
    assert len(commands) == len(files) + 1
    assert [file for file in [*files, "examples/streams/orders"] if not any(file in one for one in commands)] == []


def test_the_readme_names_the_topics_of_each_example() -> None:
    readme = (FOLDER.parent / "README.md").read_text()
    for path in sorted(FOLDER.glob("*.py")):
        with started(path.stem) as driver:
            told = next(line for line in readme.splitlines() if f"/{path.name} " in line)
            wanted = missing(driver.plan, ())
        assert [topic for topic in wanted if f"`{topic}`" not in told] == []
