"""Connectors written with the SDK: settings from a class, schemas from values, and what a real worker makes of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest

from moldau.connect import Between, Offsets, Record, RetriableError, Row, Secret, Task, plugins, sink, source
from moldau.connect.config_def import Kind
from moldau.connect.connector import SinkContext, SourceContext
from moldau.connect.data import Record as Polled
from moldau.connect.data import Type
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.shapes import Shape, plain
from moldau.testing import Broker, eventually
from moldau.testing.connectors import Connect
from moldau.testing.connectors import connect as worker
from tests.services import unique
from tests.test_docs import DOCS


class Weather:
    cities: Annotated[list[str], "Where to measure."]
    every: Annotated[float, "Seconds between two looks.", Between(0, 60)] = 0.0
    unit: Literal["C", "F"] = "C"
    api_token: Secret | None = None
    most: int = 3

    def __post_init__(self) -> None:
        if "nowhere" in self.cities:
            raise ValueError("There is no weather nowhere.")


@source
def weather(config: Weather, offsets: Offsets, task: Task) -> Iterator[Any]:
    for at in range(offsets.get("at", 0), config.most):
        for city in config.cities:
            yield Record(key=city, value={"city": city, "at": at}, offset={"at": at + 1})
        task.wait(config.every)


@pytest.fixture(scope="module")
def shared(kafka_shared: Broker) -> Iterator[Connect]:
    with worker(kafka_shared.bootstrap_servers) as started:
        yield started


def polled(connector: Any, config: dict[str, str], offset: Any = None) -> list[Polled]:
    """What a source gives until it has nothing more."""
    context = SourceContext({"topic": "t", **config}, lambda _: offset, lambda _: False)
    task = connector.open(context)
    found: list[Polled] = []
    while records := task.poll():
        found += records
    task.close()
    return found


def test_a_class_becomes_settings() -> None:
    keys = weather.config.keys
    assert {name: key.kind for name, key in keys.items()} == {
        "cities": Kind.LIST,
        "every": Kind.DOUBLE,
        "unit": Kind.STRING,
        "api.token": Kind.PASSWORD,
        "most": Kind.LONG,
        "topic": Kind.STRING,
    }
    assert keys["cities"].required and keys["cities"].doc == "Where to measure."
    assert keys["api.token"].default is None and keys["unit"].default == "C"
    found = weather.config.validate({"topic": "t", "every": "61", "unit": "K"})
    assert {name for name, one in found.items() if one.errors} == {"cities", "every", "unit"}
    assert found["unit"].recommended == ["C", "F"]
    with pytest.raises(ConfigError, match="no weather nowhere"):
        weather.task_configs({"topic": "t", "cities": "nowhere"}, 1)


def test_a_source_goes_on_from_its_offset() -> None:
    records = polled(weather, {"cities": "Prague"})
    assert [one.value.get("at") for one in records] == [0, 1, 2]
    assert [one.source_offset for one in records] == [{"at": 1}, {"at": 2}, {"at": 3}]
    assert [one.value.get("at") for one in polled(weather, {"cities": "Prague"}, {"at": 2})] == [2]


class Parts:
    parts: list[str]


@source(split="parts", exactly_once=False)
def divided(config: Parts, task: Task) -> Iterator[Any]:
    for part in config.parts:
        yield Record(f"{part}{task.number}", offset={"n": 1}, source={"part": part} if part != "bad" else None)


def test_the_work_is_divided_by_a_list() -> None:
    made = divided.task_configs({"topic": "t", "parts": "a,b,c"}, 2)
    assert [one["parts"] for one in made] == ["a,c", "b"]
    assert len(divided.task_configs({"topic": "t", "parts": "a"}, 5)) == 1
    [record] = polled(divided, made[1])
    assert (record.value, record.source_partition) == ("b1", {"part": "b"})
    with pytest.raises(ConnectError, match="source="):
        polled(divided, {"parts": "bad"})
    assert not divided.exactly_once


@source
async def counted() -> AsyncIterator[Any]:
    import asyncio

    for number in range(3):
        await asyncio.sleep(0)
        yield {"n": number}
    yield None
    raise OSError("the line is cut")


def test_an_asynchronous_source_gives_what_it_had_before_it_fails() -> None:
    task = counted.open(SourceContext({"topic": "t"}, lambda _: None, lambda _: False))
    found: list[Any] = []
    with pytest.raises(OSError, match="the line is cut"):
        for _ in range(100):
            found += task.poll()
    assert [one.value.get("n") for one in found] == [0, 1, 2]
    assert found[0].source_partition is None


def test_what_is_no_connector_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="must be a generator"):

        @source
        def returns(config: Weather) -> list[Any]:
            return []

    with pytest.raises(TypeError, match="a parameter surprise"):

        @sink
        def wants(surprise: int) -> None: ...

    with pytest.raises(TypeError, match="a setting has one of"):

        class Odd:
            when: Annotated[dict[str, str], "No setting is a dict."]

        @sink(settings=Odd)
        def odd(rows: list[Row]) -> None: ...

    with pytest.raises(TypeError, match="must name a setting"):

        @source(settings=Weather, split="most")
        def splits(config: Weather) -> Iterator[Any]:
            yield 1


def test_a_value_that_only_resembles_its_schema_is_converted() -> None:
    shape = Shape()
    _, row = shape.take({"id": UUID(int=1), "part": 1.5})
    assert row.values == ("00000000-0000-0000-0000-000000000001", 1.5)
    _, row = shape.take({"id": "text", "part": 2})
    assert row.values == ("text", 2.0) and type(row.values[1]) is float


def test_schemas_grow_with_the_values() -> None:
    shape = Shape()
    first, _ = shape.take({"a": 1, "when": datetime(2026, 1, 2, tzinfo=UTC), "none": None, "empty": []})
    assert first is not None and [one.name for one in first.fields] == ["a", "when"]
    second, value = shape.take({"a": 1.5, "b": {"c": [1, 2]}, "price": Decimal("1.5")})
    assert second is not None and [one.name for one in second.fields] == ["a", "when", "b", "price"]
    assert second.fields[0].schema.type is Type.FLOAT64 and all(one.schema.optional for one in second.fields)
    assert plain(second, value) == {"a": 1.5, "when": None, "b": {"c": [1, 2]}, "price": Decimal("1.5")}
    third, value = shape.take({"a": 2, "price": Decimal("0.25")})
    assert third is not None and value.get("price") == Decimal("0.25")
    again, value = shape.take({"price": Decimal(3)})
    assert again is third and str(value.get("price")) == "3.00"
    with pytest.raises(DataError, match="a was of type FLOAT64 and now is of type STRING"):
        shape.take({"a": "x"})


@dataclass
class Reading:
    city: str
    day: date
    at: time | None = None
    tags: dict[str, int] | None = None


@pytest.mark.parametrize("value", [Reading("P", date(2026, 1, 2)), {"city": "P", "day": date(2026, 1, 2)}])
def test_schemas_are_those_of_a_dataclass(value: Any) -> None:
    schema, made = Shape(Reading).take(value)
    assert schema is not None and schema.name == "Reading"
    assert [one.schema.optional for one in schema.fields] == [False, False, True, True]
    assert plain(schema, made) == {"city": "P", "day": date(2026, 1, 2), "at": None, "tags": None}
    for wrong in ({"city": "P"}, {"city": 1, "day": date(2026, 1, 2)}, {**plain(schema, made), "more": 1}, 5):
        with pytest.raises(DataError):
            Shape(Reading).take(wrong)


class Nothing:
    fail: bool = False


TARGET: list[Any] = []


@contextmanager
def opened(config: Nothing) -> Iterator[list[Any]]:
    TARGET.append("open")
    yield TARGET
    TARGET.append("closed")


@sink(using=opened, stored=lambda target, places: dict.fromkeys(places, 7))
def kept(target: list[Any], rows: list[Row], config: Nothing) -> None:
    if config.fail:
        raise RetriableError("later")
    for row in rows:
        if row.value == "bad":
            row.refuse("It is bad.")
        else:
            target.append((row.key, row.value, row.partition, row.offset))


def test_a_sink_has_a_target_offsets_and_dead_letters() -> None:
    TARGET.clear()
    refused: list[Any] = []
    context = SinkContext({}, lambda record, error: refused.append((record.value, str(error))), lambda _: False)
    task = kept.open(context)
    assert task.open([("t", 0)]) == {("t", 0): 7}
    task.put([Polled("t", 0, None, "k", None, value, offset=n) for n, value in enumerate(["x", "bad"])])
    assert task.flush({("t", 0): 2}) == {("t", 0): 2}
    task.close()
    assert TARGET == ["open", ("k", "x", 0, 0), "closed"]
    assert refused == [("bad", "It is bad.")]


def test_a_source_and_a_sink_run_in_a_worker(shared: Connect) -> None:
    TARGET.clear()
    topic = unique("weather")
    name = shared.run(weather, topic=topic, cities=["Prague", "Melnik"])
    records = shared.records(topic, 6)
    assert [(one.key, one.value["at"]) for one in records[:2]] == [("Prague", 0), ("Melnik", 0)]
    eventually(lambda: shared.offsets(name) == [{"partition": {"source": "weather"}, "offset": {"at": 3}}])

    @sink
    def collected(rows: list[Row]) -> None:
        TARGET.extend(row.value["city"] for row in rows)

    other = shared.run(collected, topics=topic)
    eventually(lambda: len(TARGET) == 6)
    for one in (name, other):
        shared.delete(one)


def test_a_source_that_raises_fails_its_task_with_its_trace(shared: Connect) -> None:
    name, topic = unique("cut"), unique("cut")
    with pytest.raises(AssertionError, match="the line is cut"):
        shared.run(counted, name=name, topic=topic)
        shared.records(topic, 4)
    assert shared.failure(name).startswith("builtins.OSError: the line is cut")
    shared.delete(name)
    assert [one.value for one in shared.records(topic, 3)] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_installed_connectors_are_found_and_broken_ones_explain_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "weather": EntryPoint("weather", f"{__name__}:weather", plugins.GROUP),
        "gone": EntryPoint("gone", "no_such_module:gone", plugins.GROUP),
        "plain": EntryPoint("plain", f"{__name__}:polled", plugins.GROUP),
    }
    monkeypatch.setattr(plugins, "installed", lambda: entries)
    found = plugins.find("weather")
    assert found is not None and found.load() is weather and plugins.find(f"{__name__}.weather") == found
    assert found.class_name in {one.class_name for one in plugins.connectors()}
    assert plugins.find("gone") is None and "no_such_module" in plugins.not_found("gone")
    assert "mark the function with @source" in plugins.not_found("plain")


def test_the_page_runs_from_new_to_a_passing_test(tmp_path: Path) -> None:
    """What docs/connect/write-your-own.md shows is what the command makes, and its test passes."""
    page = (DOCS / "connect" / "write-your-own.md").read_text()
    command = [sys.executable, "-m", "moldau", "connector", "new"]
    for words in (["weather"], ["mailer", "--sink"]):
        subprocess.run([*command, *words, "--in", str(tmp_path)], check=True, capture_output=True)
    files = {file.name: file.read_text() for file in (tmp_path / "weather").iterdir()}
    assert set(files) == {"pyproject.toml", "weather.py", "test_weather.py"}
    for file in ("weather.py", "test_weather.py"):
        assert files[file] in page, f"the page does not show {file} as it is made"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "weather", "mailer"]
    ran = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_a_name_that_no_module_can_have_is_refused(tmp_path: Path) -> None:
    from moldau.admin.mistakes import Mistake
    from moldau.cli.connector_new import make

    make("my-own", tmp_path, is_sink=False)
    for name in ("my-own", "class", "1st", "a b", "../up"):
        with pytest.raises(Mistake):
            make(name, tmp_path, is_sink=False)
