"""Tables: their functions, groups, suppression and versions."""

from __future__ import annotations

from typing import Any

from moldau.operators.stores.key_value import key_value
from moldau.streams import StreamsBuilder
from tests.streams.judge.functions import add, even, first, joined, subtract, text
from tests.streams.judge.topologies.sources import NUMBER, TEXT, Build, stream, table


class Numbered:
    """The value and how many values there were before, of any key: state in a store."""

    def init(self, context: Any) -> None:
        self.store = context.store("numbers")

    def transform(self, key: str, value: str | None) -> str | None:
        number = (self.store.get("all") or 0) + 1
        self.store.put("all", number)
        return None if value is None else f"{value}{number}"


class Keyed:
    """Without state."""

    def init(self, context: Any) -> None:
        pass

    def transform(self, key: str, value: str | None) -> str | None:
        return None if value is None else key + value


def transform_values_stored(b: StreamsBuilder) -> None:
    b.add_state_store(key_value("numbers", TEXT, NUMBER, persistent=False))
    table(b).transform_values(Numbered, stores=["numbers"], store="numbered", value=TEXT).to_stream().to("out")


PLAIN: dict[str, Build] = {
    "table": lambda b: table(b).to_stream().to("out"),
    "table_stored": lambda b: b.table("in", key=TEXT, value=TEXT, name="rows", store="kept").to_stream().to("out"),
    "table_in_memory": lambda b: (
        b.table("in", key=TEXT, value=TEXT, store="kept", store_type="in_memory").to_stream().to("out")
    ),
    "table_filter": lambda b: table(b).filter(lambda k, v: even(v)).to_stream().to("out"),
    "table_filter_stored": lambda b: table(b).filter(lambda k, v: even(v), store="evens").to_stream().to("out"),
    "table_stored_filter": lambda b: (
        b.table("in", key=TEXT, value=TEXT, store="kept")
        .filter(lambda k, v: even(v), name="evens")
        .to_stream()
        .to("out")
    ),
    "table_filter_not": lambda b: table(b).filter_not(lambda k, v: even(v)).to_stream().to("out"),
    "table_map_values": lambda b: table(b).map_values(lambda v: v + "!").to_stream().to("out"),
    "table_map_values_with_key": lambda b: table(b).map_values(lambda k, v: k + v, name="keyed").to_stream().to("out"),
    "table_map_values_stored": lambda b: (
        table(b)
        .map_values(lambda v: v + "!", value=TEXT, store="mapped")
        .filter(lambda k, v: len(v) < 4)
        .to_stream()
        .to("out")
    ),
    "table_map_to_null": lambda b: table(b).map_values(lambda v: v or None).to_stream().to("out"),
    "table_chain": lambda b: (
        table(b)
        .filter(lambda k, v: v != "b")
        .map_values(lambda v: v + v)
        .filter_not(lambda k, v: len(v) > 4, store="short")
        .map_values(lambda v: v + ".")
        .to_stream()
        .to("out")
    ),
    "table_to_stream_key": lambda b: table(b).to_stream(lambda k, v: k + text(v)).to("out"),
    "table_transform_values": lambda b: table(b).transform_values(Keyed).to_stream().to("out"),
    "table_transform_values_stored": transform_values_stored,
}

GROUPS: dict[str, Build] = {
    "table_group_count": lambda b: table(b).group_by(lambda k, v: (v, k)).count().to_stream().to("out"),
    "table_group_null": lambda b: table(b).group_by(lambda k, v: (first(v), v)).count().to_stream().to("out"),
    "table_group_reduce": lambda b: (
        table(b)
        .group_by(lambda k, v: ("long" if len(v) > 1 else "short", v), name="lengths")
        .reduce(joined, lambda a, v: subtract(None, v, a), store="reduced")
        .to_stream()
        .to("out")
    ),
    "table_group_aggregate": lambda b: (
        table(b)
        .group_by(lambda k, v: (first(v) or "none", k + v))
        .aggregate(lambda: "", add, subtract, value=TEXT)
        .to_stream()
        .to("out")
    ),
    "table_filter_group_count": lambda b: (
        table(b)
        .filter(lambda k, v: v != "")
        .group_by(lambda k, v: (first(v), v))
        .count(store="letters")
        .to_stream()
        .to("out")
    ),
    "count_group_sum": lambda b: (
        stream(b)
        .group_by_key()
        .count()
        .group_by(lambda k, n: ("all", n), key=TEXT, value=NUMBER)
        .reduce(lambda total, n: total + n, lambda total, n: total - n)
        .to_stream()
        .to("out")
    ),
}

TOPOLOGIES: dict[str, Build] = {**PLAIN, **GROUPS}
