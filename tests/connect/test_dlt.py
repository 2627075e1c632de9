"""The dlt source: any source by its name, in a program of its own, with its state as the offset."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.connect.connector import SourceContext
from moldau.connect.connectors.dlt_runner import chosen
from moldau.connect.connectors.dlt_source import DLT
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.shapes import plain
from moldau.testing import eventually

PATIENCE_S = 300
needs_dlt = pytest.mark.skipif(find_spec("dlt") is None, reason="dlt is not installed")
SHOP = """
import datetime, dlt

@dlt.source
def shop(count, breaks=False):
    print("a source may print")

    @dlt.resource(primary_key="id")
    def orders(cursor=dlt.sources.incremental("id", initial_value=0)):
        yield [{"id": n, "at": datetime.date(2026, 1, n), "who": {"name": "Ana"}} for n in range(1, count + 1)]
        if breaks:
            raise ValueError("the shop is closed")

    @dlt.transformer(data_from=orders)
    def numbers(items):
        yield from ({"number": item["id"]} for item in items)

    return orders, numbers
"""


def run(folder: Path, state: Any = None, arguments: Any = None, **config: str) -> tuple[list[Record], Any]:
    """All records of one run, and the state after it."""
    (folder / "shop.py").write_text(SHOP)
    given = {"dlt.source": "shop.shop", "dlt.path": str(folder), "dlt.arguments": json.dumps(arguments or {"count": 2})}
    given |= {"dlt.python": sys.executable, "tap.interval.ms": "3600000"}
    [task] = DLT.task_configs({**given, **{name.replace("_", "."): one for name, one in config.items()}}, 2)
    reading = DLT.open(SourceContext(task, lambda _: state, lambda _: False))
    found: list[Record] = []

    def ended() -> bool:
        found.extend(reading.poll())
        return reading._child is None

    try:
        eventually(ended, PATIENCE_S, "the end of the run")
    finally:
        reading.close()
    return found, reading._offset


@needs_dlt
def test_a_source_goes_on_from_its_state(tmp_path: Path) -> None:
    found, state = run(tmp_path)
    orders = [one for one in found if one.topic == "orders"]
    row = {"id": 1, "at": "2026-01-01", "who": {"name": "Ana"}}
    assert plain(orders[0].value_schema, orders[0].value) == row and orders[0].key.get("id") == 1
    assert [one.value.get("number") for one in found if one.topic == "numbers"] == [1, 2]
    assert {json.dumps(one.source_offset) for one in found} == {json.dumps(state)}
    again, _ = run(tmp_path, state, {"count": 3}, topic_name_format="shop-${stream}", dlt_resources="orders")
    assert [(one.topic, one.value.get("id")) for one in again] == [("shop-orders", 3)]
    with pytest.raises(ConnectError, match="the shop is closed"):
        run(tmp_path, state, {"count": 4, "breaks": True})


def test_resources_are_chosen() -> None:
    made = SimpleNamespace(selected_resources={"a": 1, "b": 2})
    assert chosen(made, []) == {"a": 1, "b": 2} and chosen(made, ["b"]) == {"b": 2}
    with pytest.raises(SystemExit, match="no resource c; it has a, b"):
        chosen(made, ["c"])


def test_settings_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"package\.module\.function"):
        DLT.task_configs({"dlt.source": "shop"}, 1)
    with pytest.raises(ConfigError, match="not JSON"):
        DLT.task_configs({"dlt.source": "a.b", "dlt.arguments": "{"}, 1)
    monkeypatch.setattr("moldau.connect.connectors.dlt_source.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install 'moldau\[dlt\]', or name an interpreter"):
        DLT.task_configs({"dlt.source": "a.b"}, 1)
