"""Topologies whose description is compared with Java's, by the names under which descriptions.txt has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.operators.stores.key_value import key_value
from moldau.streams import KGroupedStream, KGroupedTable, StreamsBuilder

TOPOLOGIES: dict[str, Callable[[StreamsBuilder], Any]] = {}


def topology(define: Callable[[StreamsBuilder], Any]) -> Callable[[StreamsBuilder], Any]:
    TOPOLOGIES[define.__name__] = define
    return define


def yes(key: Any, value: Any) -> bool:
    return True


def same(key: Any, value: Any) -> tuple[Any, Any]:
    return key, value


def by_value(key: Any, value: Any) -> Any:
    return value


def swapped(key: Any, value: Any) -> tuple[Any, Any]:
    return value, key


def one_value(value: Any) -> list[Any]:
    return [value]


def itself(value: Any) -> Any:
    return value


def first(left: Any, right: Any) -> Any:
    return left


def kept(key: Any, value: Any, aggregate: Any) -> Any:
    return aggregate


class Quiet:
    def process(self, record: Any) -> None:
        return


class Transformer:
    def transform(self, key: Any, value: Any) -> Any:
        return value


@topology
def stateless(b: StreamsBuilder) -> None:
    s = b.stream("in").filter(yes).filter_not(yes).map_values(itself).map(same).flat_map_values(one_value)
    s.flat_map(lambda key, value: [(key, value)]).select_key(by_value).peek(yes).to("out")


@topology
def named(b: StreamsBuilder) -> None:
    b.stream("in", name="source").filter(yes, name="filter").map_values(itself, name="mapper").to("out", name="sink")


@topology
def ends(b: StreamsBuilder) -> None:
    s = b.stream("in")
    s.foreach(yes)
    s.print()


@topology
def two_topics(b: StreamsBuilder) -> None:
    b.stream(["alpha", "beta", "gamma", "delta", "t1", "t2"]).to("out")


@topology
def pattern(b: StreamsBuilder) -> None:
    b.stream(pattern="in-.*").to("out")


@topology
def same_topic_twice(b: StreamsBuilder) -> None:
    b.stream("in").to("a")
    b.stream("in").to("b")


@topology
def merge(b: StreamsBuilder) -> None:
    b.stream("a").merge(b.stream("b")).to("out")


@topology
def split(b: StreamsBuilder) -> None:
    branches = b.stream("in").split().branch(yes).branch(yes).default_branch()
    branches[min(branches)].to("out")


@topology
def split_named(b: StreamsBuilder) -> None:
    branches = (
        b.stream("in").split(name="by-").branch(yes, name="one").branch(yes, lambda s: s.to("two"))
    ).default_branch(name="rest")
    assert list(branches) == ["by-one", "by-rest"]
    branches["by-one"].to("one")
    branches["by-rest"].to("rest")


@topology
def split_no_default(b: StreamsBuilder) -> None:
    b.stream("in").split(name="by-").branch(yes, name="one").no_default_branch()["by-one"].to("one")


@topology
def count(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count().to_stream().to("out")


@topology
def count_named_store(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(store="counts").to_stream().to("out")


@topology
def count_with_serdes(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(key="string").to_stream().to("out")


@topology
def count_named_node(b: StreamsBuilder) -> None:
    b.stream("in").group_by_key().count(name="counter").to_stream(name="stream").to("out")


@topology
def word_count(b: StreamsBuilder) -> None:
    b.stream("in").flat_map_values(one_value).group_by(by_value).count().to_stream().to("out")


@topology
def word_count_named(b: StreamsBuilder) -> None:
    words = b.stream("in").flat_map_values(one_value).group_by(by_value, name="words")
    words.count(name="counter", store="counts").to_stream().to("out")


@topology
def word_count_store(b: StreamsBuilder) -> None:
    b.stream("in").flat_map_values(one_value).group_by(by_value).count(store="counts").to_stream().to("out")


@topology
def grouped_twice(b: StreamsBuilder) -> None:
    twice(b.stream("in").group_by(by_value))


@topology
def grouped_twice_named(b: StreamsBuilder) -> None:
    twice(b.stream("in").group_by(by_value, name="again"))


def twice(grouped: KGroupedStream[Any, Any]) -> None:
    grouped.count().to_stream().to("a")
    grouped.reduce(first).to_stream().to("b")


@topology
def reduce_aggregate(b: StreamsBuilder) -> None:
    g = b.stream("in").group_by_key()
    g.reduce(first).to_stream().to("a")
    g.aggregate(str, kept, value="string").to_stream().to("b")
    g.aggregate(str, kept, name="agg", store="store").to_stream().to("c")


@topology
def table(b: StreamsBuilder) -> None:
    b.table("in").to_stream().to("out")


@topology
def table_store(b: StreamsBuilder) -> None:
    b.table("in", store="store").to_stream().to("out")


@topology
def table_named(b: StreamsBuilder) -> None:
    b.table("in", name="tab", store="store").to_stream().to("out")


@topology
def table_ops(b: StreamsBuilder) -> None:
    b.table("in").filter(yes).map_values(itself).filter_not(yes).to_stream().to("out")


@topology
def table_ops_stored(b: StreamsBuilder) -> None:
    t = b.table("in").filter(yes, store="f").map_values(itself, value="string")
    t.filter_not(yes, name="not", value="string").to_stream(by_value).to("out")


@topology
def table_group_count(b: StreamsBuilder) -> None:
    b.table("in").group_by(swapped).count().to_stream().to("out")


@topology
def table_group_reduce(b: StreamsBuilder) -> None:
    b.table("in").group_by(swapped).reduce(first, first).to_stream().to("out")


@topology
def table_group_named(b: StreamsBuilder) -> None:
    grouped = b.table("in").group_by(swapped, name="regroup")
    grouped.aggregate(str, kept, kept, name="agg", store="store").to_stream().to("out")


@topology
def table_group_twice_named(b: StreamsBuilder) -> None:
    grouped: KGroupedTable[Any, Any] = b.table("in").group_by(swapped, name="regroup")
    grouped.count().to_stream().to("a")
    grouped.count().to_stream().to("b")


@topology
def table_group_derived(b: StreamsBuilder) -> None:
    b.table("in").map_values(itself).filter(yes).group_by(swapped).count().to_stream().to("out")


@topology
def stream_table(b: StreamsBuilder) -> None:
    b.stream("s").join(b.table("t"), first).to("out")


@topology
def stream_table_left_rekeyed(b: StreamsBuilder) -> None:
    b.stream("s").select_key(by_value).left_join(b.table("t"), first).to("out")


@topology
def stream_table_named(b: StreamsBuilder) -> None:
    b.stream("s").select_key(by_value).join(b.table("t"), first, name="joined").to("out")


@topology
def stream_table_derived(b: StreamsBuilder) -> None:
    b.stream("s").join(b.table("t").filter(yes).map_values(itself), first).to("out")


@topology
def stream_global(b: StreamsBuilder) -> None:
    b.stream("s").join(b.global_table("g"), first, key=by_value).to("out")


@topology
def stream_global_left(b: StreamsBuilder) -> None:
    g = b.global_table("g", store="gs")
    b.stream("s").left_join(g, first, key=by_value, name="gj").to("out")


@topology
def table_table(b: StreamsBuilder) -> None:
    b.table("a").join(b.table("b"), first).to_stream().to("out")


@topology
def table_table_left(b: StreamsBuilder) -> None:
    b.table("a").left_join(b.table("b"), first, store="joined").to_stream().to("out")


@topology
def table_table_outer(b: StreamsBuilder) -> None:
    b.table("a").outer_join(b.table("b"), first, name="outer", value="string").to_stream().to("out")


@topology
def table_table_chain(b: StreamsBuilder) -> None:
    joined = b.table("a").join(b.table("b"), first).join(b.table("c"), first)
    joined.group_by(swapped).count().to_stream().to("out")


@topology
def table_self(b: StreamsBuilder) -> None:
    t = b.table("a")
    t.join(t.map_values(itself), first).to_stream().to("out")


@topology
def repartition(b: StreamsBuilder) -> None:
    b.stream("in").repartition().to("out")


@topology
def repartition_named(b: StreamsBuilder) -> None:
    s = b.stream("in").select_key(by_value).repartition(name="again", partitions=3)
    s.group_by_key().count().to_stream().to("out")


@topology
def to_table(b: StreamsBuilder) -> None:
    b.stream("in").to_table().to_stream().to("out")


@topology
def to_table_rekeyed(b: StreamsBuilder) -> None:
    b.stream("in").select_key(by_value).to_table(value="string").to_stream().to("out")


@topology
def to_table_named(b: StreamsBuilder) -> None:
    b.stream("in").select_key(by_value).to_table(name="tab", store="store").to_stream().to("out")


@topology
def process(b: StreamsBuilder) -> None:
    b.add_state_store(key_value("kv"))
    b.stream("in").process(Quiet, stores=["kv"]).to("out")


@topology
def process_named(b: StreamsBuilder) -> None:
    b.stream("in").process(Quiet, name="proc").group_by_key().count().to_stream().to("out")


@topology
def process_values(b: StreamsBuilder) -> None:
    b.stream("in").process_values(Quiet).group_by_key().count().to_stream().to("out")


@topology
def shared_store(b: StreamsBuilder) -> None:
    b.add_state_store(key_value("kv"))
    b.stream("a").process(Quiet, stores=["kv"])
    b.stream("b").process(Quiet, stores=["kv"])


@topology
def transform_values(b: StreamsBuilder) -> None:
    b.table("in").transform_values(Transformer).to_stream().to("out")


@topology
def transform_values_stored(b: StreamsBuilder) -> None:
    b.table("in").transform_values(Transformer, store="tv").group_by(swapped).count().to_stream().to("out")


@topology
def cogroup(b: StreamsBuilder) -> None:
    x, y = b.stream("a").group_by_key(), b.stream("b").group_by_key()
    x.cogroup(kept).cogroup(y, kept).aggregate(str).to_stream().to("out")


@topology
def cogroup_rekeyed(b: StreamsBuilder) -> None:
    x = b.stream("a").group_by(by_value, name="x")
    y = b.stream("b").group_by_key()
    x.cogroup(kept).cogroup(y, kept).aggregate(str, name="cg", store="store").to_stream().to("out")


@topology
def merge_rekeyed(b: StreamsBuilder) -> None:
    b.stream("a").select_key(by_value).merge(b.stream("b")).group_by_key().count().to_stream().to("out")


@topology
def global_store(b: StreamsBuilder) -> None:
    b.add_global_store(key_value("gs"), "g", Quiet)
    b.stream("in").to("out")


@topology
def many_stores(b: StreamsBuilder) -> None:
    names = ["zeta", "alpha", "m1", "m2", "store-7"]
    for name in names:
        b.add_state_store(key_value(name))
    b.stream("in").process(Quiet, stores=names).to("out")


@topology
def fan_out(b: StreamsBuilder) -> None:
    s = b.stream("in")
    s.filter(yes).to("a")
    m = s.map_values(itself)
    m.to("b")
    m.filter(yes).to("c")
    s.to("d")


@topology
def names_count(b: StreamsBuilder) -> None:
    s = b.stream("in", name="n1")
    s.map_values(itself).to("o1")
    s = s.flat_map_values(one_value, name="n2").flat_map(lambda key, value: [(key, value)], name="n3")
    s = s.map(same, name="n4").select_key(by_value, name="n5").peek(yes, name="n6")
    s.map_values(itself).to("o2")
    s.print(name="n7")
    s.foreach(yes, name="n8")
    s.map_values(itself).to("o3")
    s = s.merge(b.stream("in2"), name="n9")
    s.process_values(Quiet, name="n10").to("o4", name="n11")
    s.map_values(itself).to("o5")
    s.filter(yes, name="n12").filter_not(yes, name="n13").map_values(itself).to("o6")


@topology
def names_count_tables(b: StreamsBuilder) -> None:
    x = b.table("in", name="n1")
    derived = x.map_values(itself, name="n2").filter(yes, name="n3").filter_not(yes, name="n4")
    derived.to_stream(name="n5").map_values(itself).to("o1")
    x.transform_values(Transformer, name="n6").to_stream().to("o2")
    g = b.global_table("g", name="n7")
    b.stream("s").join(g, first, key=by_value, name="n8").map_values(itself).to("o3")
    x.join(x, first, name="n9").to_stream().to("o4")
    b.stream("s2").to_table(name="n10").to_stream().to("o5")
    b.stream("s3").left_join(x, first, name="n11").to("o6")


@topology
def table_map_stored_grouped(b: StreamsBuilder) -> None:
    b.table("in").map_values(itself, store="m").group_by(swapped).count().to_stream().to("out")


@topology
def aggregate_regrouped(b: StreamsBuilder) -> None:
    counted = b.stream("in").group_by_key().count(store="c").group_by(swapped).count()
    counted.join(b.table("t"), first).to_stream().to("out")


@topology
def stream_joined_aggregate(b: StreamsBuilder) -> None:
    counted = b.stream("in").group_by_key().count()
    b.stream("s").left_join(counted, first).to("out")


@topology
def wide_fan_out(b: StreamsBuilder) -> None:
    s = b.stream("in")
    for i in range(9):
        m = s.map_values(itself)
        for _ in range(i * 5 % 4):
            m = m.filter(yes)
        m.to(f"o{i}")


@topology
def two_subtopologies_global(b: StreamsBuilder) -> None:
    g = b.global_table("g")
    b.stream("a").join(g, first, key=by_value).to("o")
    b.table("b").group_by(swapped).count().to_stream().to("p")
    b.global_table("g2")


@topology
def merge_many(b: StreamsBuilder) -> None:
    b.stream("a").merge(b.stream("b")).merge(b.stream("c").filter(yes)).merge(b.stream("a")).to("o")
