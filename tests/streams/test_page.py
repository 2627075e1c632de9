"""docs/streams.md says what is true: its examples run, and each row of its table too."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import moldau.streams
from moldau.streams import Json, KafkaStreams, StreamsBuilder, TimeWindows, Topology, TopologyTestDriver, stores
from moldau.views import KeyValueView, SessionView, VersionedView, WindowView

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "streams.md").read_text()
ROWS = re.findall(r"^\| [A-Z]\w+\.[^|]+ \| ([^|]+) \| there \| `(.+)` \|$", PAGE, re.MULTILINE)
RUNNING = {
    "app": KafkaStreams,
    "view": KeyValueView,
    "windows": WindowView,
    "sessions": SessionView,
    "versions": VersionedView,
}
EXAMPLES = [row for row in ROWS if row[1].split(".")[0] not in RUNNING]
ASKED = [row[1] for row in ROWS if row[1].split(".")[0] in RUNNING]
API = Path(__file__).with_name("api.txt")
TEXTS = {"default.key.serde": "string", "default.value.serde": "string"}


class Quiet:
    def process(self, record: Any) -> None:
        return


class Transformer:
    def transform(self, key: Any, value: Any) -> Any:
        return value


def scope() -> dict[str, Any]:
    """The names that the rows use, over a builder of their own."""
    b = StreamsBuilder("app", TEXTS)
    s, t = b.stream("s"), b.table("t")
    w = b.stream("w").group_by_key().windowed_by(TimeWindows.of("1 minute"))
    copied = StreamsBuilder("copied", TEXTS)
    copied.stream("x").to("out")
    driver = TopologyTestDriver(copied)
    driver.create_input_topic("x").pipe_input("k", "v")
    names: dict[str, Any] = {**vars(moldau.streams), **vars(stores), "Json": Json, "b": b, "s": s, "t": t, "w": w}
    names |= {"s2": b.stream("s2"), "t2": b.table("t2"), "gt": b.global_table("gt"), "windowed": w.count()}
    names |= {"g": s.group_by_key(), "kt": t.group_by(lambda key, value: (value, key))}
    names |= {"f": lambda key, value: value, "v": str.upper, "j": lambda left, right: left, "r": lambda one, two: one}
    names |= {"a": lambda key, value, seen: seen, "Quiet": Quiet, "Transformer": Transformer}
    names |= kept()
    names |= {"topo": Topology("app").add_source("source", "x"), "d": driver}
    return names


def kept() -> dict[str, Any]:
    """Stores of each kind, as processors have them."""
    made = {
        "kv": stores.persistent_key_value_store("kv"),
        "tkv": stores.persistent_timestamped_key_value_store("tkv"),
        "vkv": stores.persistent_versioned_key_value_store("vkv", "1 hour"),
        "ws": stores.persistent_window_store("ws", "1 hour", "5 minutes"),
        "ss": stores.persistent_session_store("ss", "1 hour"),
    }
    topology = Topology("kept", TEXTS).add_source("source", "x").add_processor("p", Quiet, "source", made.values())
    return {name: TopologyTestDriver(topology).store(name) for name in made}


@pytest.mark.parametrize(("python", "example"), EXAMPLES)
def test_the_example_of_each_method_runs(python: str, example: str) -> None:
    names = scope()
    eval(example, names)
    assert any(name.strip().rsplit(".", 1)[-1] in example for name in python.split(","))
    names["b"].build()
    names["topo"].freeze()


@pytest.mark.parametrize("example", ASKED)
def test_what_is_asked_of_a_running_application_is_there(example: str) -> None:
    """tests/views and tests/spark ask it."""
    for node in ast.walk(ast.parse(example)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = RUNNING.get(node.value.id, KafkaStreams)
            assert hasattr(owner, node.attr), example


def test_every_method_of_kafka_streams_has_a_row() -> None:
    rows = re.findall(r"^\| ([A-Z]\w+)\.([^|]+) \| [^|]+ \| (there|not needed|not there) \| .+ \|$", PAGE, re.MULTILINE)
    told = {f"{owner}.{name}" for owner, names, _ in rows for name in re.findall(r"\w+", re.sub(r"\(.*?\)", "", names))}
    missing = [
        f"{owner}.{name}"
        for owner, names in (line.split(": ") for line in API.read_text().splitlines() if line[0] != "#")
        for name in names.split()
        if f"{owner}.{name}" not in told
    ]
    assert missing == []


def test_the_examples_of_the_page_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) > 4
    for block in blocks:
        exec(compile(block, "docs/streams.md", "exec"), {"__name__": "page"})
