"""The store that keeps a number of entries, beside a dict that does the same."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.operators.stores.lru import LruBytes
from moldau.operators.stores.ordered import MemoryBytes
from moldau.streams import Context, Record, StreamsBuilder, String, TopologyTestDriver
from moldau.streams.stores import lru_map

keys = st.sampled_from([b"", b"a", b"b", b"c", b"d"])
steps = st.lists(st.tuples(st.sampled_from(["get", "put", "delete", "again"]), keys), max_size=40)


@given(steps, st.integers(1, 4))
@settings(deadline=None)
def test_it_equals_an_ordered_dict(given: list[tuple[str, bytes]], limit: int) -> None:
    content, gone = MemoryBytes(), list[bytes]()
    store, model, expected = LruBytes(content, limit, gone.append), OrderedDict[bytes, bytes](), list[bytes]()
    for number, (step, key) in enumerate(given):
        match step:
            case "get":
                assert store.get(key) == model.get(key)
                if key in model:
                    model.move_to_end(key)
            case "put":
                store.put(key, b"%d" % number)
                model[key] = b"%d" % number
                model.move_to_end(key)
                if len(model) > limit:
                    expected.append(model.popitem(last=False)[0])
            case "delete":
                store.put(key, None)
                model.pop(key, None)
            case _:
                store = LruBytes(content, limit, gone.append)  # as after a restart
        assert list(store.range()) == sorted(model.items())
        assert list(store.range(b"b", b"c", reverse=True)) == sorted(
            ((k, v) for k, v in model.items() if b"b" <= k <= b"c"), reverse=True
        )
        assert (store.approximate_count(), gone) == (len(model), expected)


def test_what_is_forgotten_is_deleted_from_the_changelog() -> None:
    class Keeping:
        def init(self, context: Context) -> None:
            self.store = context.store("recent")

        def process(self, record: Record) -> None:
            self.store.put(record.key, record.value)

    builder = StreamsBuilder("app", {"default.key.serde": "string", "default.value.serde": "string"})
    builder.add_state_store(lru_map("recent", 2))
    builder.stream("in").process(Keeping, stores=["recent"])
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in").pipe_key_value_list([("a", "1"), ("b", "2"), ("c", "3")])
        changes = driver.create_output_topic("app-recent-changelog", String(), String()).read_key_values_to_list()
        assert changes == [("a", "1"), ("b", "2"), ("a", None), ("c", "3")]
        assert [key for key, _ in driver.store("recent").all()] == ["b", "c"]
