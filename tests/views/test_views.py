"""A view answers as the store does: all kinds, over partitions, at positions, in the past, and as SQL."""

from __future__ import annotations

import pytest

from moldau.client import CONTROLLER, Leader, TransactionalProducer, build, check, end
from moldau.client import Record as Row
from moldau.client import messages as m
from moldau.operators.windowed import Windowed
from moldau.streams import Json, Long, SessionWindows, StreamsBuilder, String, TimeWindows, TopologyTestDriver
from moldau.streams.stores import lru_map, persistent_key_value_store, persistent_versioned_key_value_store
from moldau.views import KeyValueView, SessionView, Stale, VersionedView, ViewError, WindowView
from tests.views.conftest import World

WAIT_S = 60.0
CLICKS = [("ann", "/home", 0), ("bob", "/home", 1_000), ("ann", "/cart", 2_000), ("cid", "/home", 61_000)]


def clicks(world: World) -> StreamsBuilder:
    """One store of each kind."""
    builder = world.builder()
    grouped = builder.stream("clicks").group_by_key()
    grouped.count(store="counts")
    grouped.windowed_by(TimeWindows.of("1 minute", grace="1 hour")).count(store="per-minute")
    grouped.windowed_by(SessionWindows.of("5 minutes")).count(store="visits")
    versions = persistent_versioned_key_value_store("pages", "1 hour")
    builder.table("pages", store=versions)
    return builder


def piped(builder: StreamsBuilder) -> TopologyTestDriver:
    driver = TopologyTestDriver(builder)
    topic = driver.create_input_topic("clicks")
    for key, value, time in CLICKS:
        topic.pipe_input(key, value, time)
    pages = driver.create_input_topic("pages")
    for value, time in (("v1", 100), ("v3", 300), ("v2", 200), (None, 400)):
        pages.pipe_input("/home", value, time)
    pages.pipe_input("/cart", "c1", 500)
    return driver


@pytest.mark.parametrize("partitions", [1, 3])
def test_views_of_all_kinds_answer_as_the_stores_do(world: World, partitions: int) -> None:
    builder = clicks(world)
    with piped(builder) as driver, world.stores(builder) as stores:
        for name in ("counts", "per-minute", "visits", "pages"):
            world.log(driver, stores.changelogs[name].topic, partitions)
        counts, minutes, visits, pages = (stores.store(name) for name in ("counts", "per-minute", "visits", "pages"))
        same = driver.store
        assert isinstance(counts, KeyValueView)
        assert counts.get("ann") == same("counts").get("ann")
        assert counts.get("nobody") is None
        assert list(counts.all()) == list(same("counts").all())
        assert list(counts.range("b", "c", reverse=True)) == list(same("counts").range("b", "c", reverse=True))
        assert list(counts.prefix_scan("a")) == list(same("counts").prefix_scan("a"))
        assert isinstance(minutes, WindowView)
        assert minutes.fetch("ann", 0) == same("per-minute").fetch("ann", 0)
        assert list(minutes.fetch_range("cid", 0, 60_000)) == list(same("per-minute").fetch_range("cid", 0, 60_000))
        assert sorted(minutes.all()) == sorted(same("per-minute").all())
        assert sorted(minutes.fetch_keys("a", "b", 0, 0)) == sorted(same("per-minute").fetch_keys("a", "b", 0, 0))
        assert isinstance(visits, SessionView)
        assert list(visits.fetch("ann")) == [(Windowed("ann", 0, 2_000), 2)] == list(same("visits").fetch("ann"))
        assert visits.fetch_session("ann", 0, 2_000) == 2
        assert isinstance(pages, VersionedView)
        assert pages.get("/home") is None
        for time in (50, 100, 250, 399, 400):
            assert pages.as_of("/home", time) == same("pages").as_of("/home", time)
        assert list(pages.get_range("/home", 0, 1_000)) == list(same("pages").get_range("/home", 0, 1_000))


def test_plain_stores_of_processors_are_served_too(world: World) -> None:
    class Keep:
        def init(self, context):
            self.kept, self.recent = context.store("kept"), context.store("recent")

        def process(self, record):
            self.kept.put(record.key, record.value)
            self.recent.put(record.key, record.value)

    builder = world.builder()
    builder.add_state_store(persistent_key_value_store("kept", key=String(), value=String()))
    builder.add_state_store(lru_map("recent", 2, key=String(), value=String()))
    builder.stream("in").process(Keep, stores=["kept", "recent"])
    with TopologyTestDriver(builder) as driver, world.stores(builder) as stores:
        driver.create_input_topic("in").pipe_key_value_list([("a", "1"), ("b", "2"), ("c", "3")])
        for name in ("kept", "recent"):
            world.log(driver, stores.changelogs[name].topic)
        assert list(stores.store("kept").all()) == [("a", "1"), ("b", "2"), ("c", "3")]
        assert list(stores.store("recent").all()) == [("b", "2"), ("c", "3")]


def test_a_table_that_has_its_topic_as_changelog_is_read_from_there(world: World) -> None:
    builder = world.builder(topology_optimization="all")
    topic = world.topic(f"{builder.graph.application_id}-users")
    builder.table(topic, store="users")
    behind = world.put(topic, [(b"ann", b"asia", 5), (None, b"nobody", 6), (b"bob", b"africa", 7)])
    users = world.stores(builder).store("users", at_least={0: behind}, timeout=WAIT_S)
    assert users.topic == topic
    assert users.get("ann") == ("asia", 5)
    world.put(topic, [(b"ann", None, 8)])
    assert users.wait("latest", WAIT_S).get("ann") is None


def test_a_view_waits_for_a_position_and_for_a_key(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="latest")
    stores = world.stores(builder)
    topic = world.topic(stores.changelogs["latest"].topic, 2)
    view = stores.store("latest")
    assert view.position == {0: 0, 1: 0}
    with pytest.raises(Stale, match="has not reached 1:1"):
        view.wait({1: 1}, timeout=0.05)
    with pytest.raises(ViewError, match="no partition 7"):
        view.wait({7: 1}, timeout=0.05)
    with pytest.raises(Stale, match="a value of 'k'"):
        view.wait_for("k", 0.05)
    behind = world.put(topic, [(b"k", b"v", 3)], 1)
    assert view.wait_for("k", WAIT_S) == ("v", 3)
    assert view.wait({1: behind}, WAIT_S).position == {0: 0, 1: 1}
    assert view.ends() == {0: 0, 1: 1}
    assert view.lags == {0: 0, 1: 0}


def test_a_view_waits_for_what_the_application_has_read(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="latest")
    stores = world.stores(builder)
    world.topic(stores.changelogs["latest"].topic)
    source = world.topic(f"{stores.application}-source")
    stores.store("latest", timeout=WAIT_S)
    with pytest.raises(Stale, match=r"has not processed .*-source up to \{0: 1\} yet: it is at \{0: -1\}"):
        stores.store("latest", at_least={(source, 0): 1}, timeout=1.0)
    producer = TransactionalProducer(world.client, f"{stores.application}-progress")
    producer.send_offsets(stores.application, {(source, 0): 1})
    end(world.client, producer.flush(), commit=True)
    producer.close()
    assert stores.store("latest", at_least={(source, 0): 1}, timeout=WAIT_S).position == {0: 0}


def test_only_what_is_committed_is_seen(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="latest")
    stores = world.stores(builder)
    topic = world.topic(stores.changelogs["latest"].topic)
    name = f"{topic}-transactions"
    for number, commit in enumerate((False, True)):
        producer = TransactionalProducer(world.client, f"{name}-{number}")
        producer.send(topic, 0, build([Row(timestamp=1, key=b"k", value=b"%d" % number)]))
        end(world.client, producer.flush(), commit=commit)
        producer.close()
    view = stores.store("latest")
    assert view.wait_for("k", WAIT_S) == ("1", 1)
    assert view.wait({0: 4}, WAIT_S).get("k") == ("1", 1)  # markers are offsets too


def test_the_past_can_be_asked_until_it_is_forgotten(world: World) -> None:
    builder = world.builder()
    builder.stream("in").group_by_key().windowed_by(TimeWindows.of(10, grace="1 minute")).count(store="windows")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in")
        for time in (0, 5, 10, 15):
            topic.pipe_input("k", "v", time)
        stores = world.stores(builder)
        world.log(driver, stores.changelogs["windows"].topic)
    view = stores.store("windows")
    assert [value.value for _, value in view.fetch_range("k")] == [2, 2]
    assert [[value.value for _, value in view.at(offset).fetch_range("k")] for offset in range(5)] == [
        [],
        [1],
        [2],
        [2, 1],
        [2, 2],
    ]
    assert view.at({0: 2}).sql("select count(*) as n from windows").to_pylist() == [{"n": 1}]
    with pytest.raises(ViewError, match="has read partition 0 up to 4, and not to 5 yet"):
        view.at(5)
    short = world.stores(builder, views_history=2).store("windows")
    with pytest.raises(ViewError, match="does not remember offset 0"):
        short.at(0)


def test_a_changelog_that_lost_records_is_not_asked_about_the_past(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="latest")
    stores = world.stores(builder)
    topic = world.topic(stores.changelogs["latest"].topic)
    world.put(topic, [(b"a", b"1", 1), (b"b", b"2", 2)])
    world.put(topic, [(b"c", b"3", 3)])
    row = m.DeleteRecordsRequest_DeleteRecordsPartition(0, 2)
    wanted = m.DeleteRecordsRequest_DeleteRecordsTopic(topic, [row])
    check(world.client.send(m.DeleteRecordsRequest([wanted], timeout_ms=10_000), to=Leader(topic, 0)))
    view = stores.store("latest")
    assert [key for key, _ in view.all()] == ["c"]
    with pytest.raises(ViewError, match="it goes back to 3"):
        view.at(2)
    world.put(topic, [(b"c", b"4", 4)])
    view.wait({0: 4}, WAIT_S)
    assert view.at(3).get("c") == ("3", 3)


def test_sql_joins_views_and_looks_into_documents(world: World) -> None:
    builder = world.builder()
    orders = builder.stream("orders", value=Json())
    orders.to_table(store="orders", key=String(), value=Json())
    per_minute = orders.group_by_key().windowed_by(TimeWindows.of("1 minute", grace="1 hour"))
    per_minute.count(store="per_minute", key=String(), value=Long())
    with TopologyTestDriver(builder) as driver, world.stores(builder) as stores:
        topic = driver.create_input_topic("orders")
        topic.pipe_input("o1", {"amount": 5, "who": "ann"}, 0)
        topic.pipe_input("o2", {"amount": 7, "who": "ann"}, 60_000)
        for name in ("orders", "per_minute"):
            world.log(driver, stores.changelogs[name].topic, 2)
        found = stores.sql(
            "select o.value.who as who, sum(o.value.amount) as total, max(w.window_start) as latest "
            "from orders o join per_minute w using (key) group by all"
        ).to_pylist()
        assert [(row["who"], row["total"], row["latest"].minute) for row in found] == [("ann", 12, 1)]
        assert stores.store("orders").sql("select key from orders order by key").column("key").to_pylist() == [
            "o1",
            "o2",
        ]
        for wrong in (
            "select * from read_csv('/etc/passwd')",
            "drop table orders",
            "select 1; select 2",
            "select from",
        ):
            with pytest.raises(ViewError):
                stores.sql(wrong)


def test_values_of_many_types_are_text_in_json(world: World) -> None:
    builder = world.builder()
    builder.stream("in", value=Json()).to_table(store="mixed", key=String(), value=Json())
    stores = world.stores(builder)
    topic = world.topic(stores.changelogs["mixed"].topic)
    world.put(topic, [(b"a", b'{"x": 1}', 1), (b"b", b'"text"', 2)])
    assert stores.sql("select value from mixed order by key").column("value").to_pylist() == ['{"x": 1}', '"text"']


def test_a_view_that_would_hold_too_much_ends_with_a_sentence(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="large")
    stores = world.stores(builder, views_max_bytes=1_000)
    topic = world.topic(stores.changelogs["large"].topic)
    world.put(topic, [(b"%d" % number, b"x" * 500, 1) for number in range(3)])
    with pytest.raises(ViewError, match=r"more than 1000 bytes: let it take more \(views.max.bytes\)"):
        stores.store("large", at_least={0: 99}, timeout=WAIT_S)


def test_what_is_not_there_is_told(world: World) -> None:
    builder = world.builder()
    builder.stream("in").group_by_key().count(store="counts")
    builder.stream("in").group_by_key().count(store="quiet", logging=False)
    stores = world.stores(builder)
    with pytest.raises(ViewError, match=r"has no store 'quiet' with a changelog: it has counts"):
        stores.store("quiet")
    with pytest.raises(ViewError, match=r"There is no topic .*-counts-changelog. Has the application run\?"):
        stores.store("counts")


def test_a_changelog_that_is_made_again_is_read_anew(world: World) -> None:
    builder = world.builder()
    builder.stream("in").to_table(store="latest")
    stores = world.stores(builder)
    topic = world.topic(stores.changelogs["latest"].topic)
    world.put(topic, [(b"old", b"1", 1)])
    view = stores.store("latest")
    assert view.get("old") == ("1", 1)
    gone = m.DeleteTopicsRequest_DeleteTopicState(topic)
    check(world.client.send(m.DeleteTopicsRequest([gone], timeout_ms=10_000), to=CONTROLLER))
    world.topic(topic)
    world.put(topic, [(b"new", b"2", 2)])
    assert view.wait_for("new", WAIT_S) == ("2", 2)
    assert view.get("old") is None
