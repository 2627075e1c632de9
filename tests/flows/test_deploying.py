"""Deploying and removing an application: exactly its own topics and code go, and what survives an upgrade is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moldau.admin import topics
from moldau.admin.topics import NewTopic
from moldau.client import Client
from moldau.flows import code, deploying
from moldau.flows.catalog import Catalog, opened
from moldau.flows.definition import Definition, FlowError, Wanted, versions_of
from moldau.flows.deploying import Application, depends_on, internal_topics, made_of, steps_for, surviving
from moldau.flows.kinds import Place
from moldau.flows.lanes import STEPS
from moldau.flows.streams_kind import KIND, internal_of, kept_of
from moldau.streams import Long, StreamsBuilder, String
from moldau.streams.application import application
from moldau.testing import Broker, broker

SERDES = {"default.key.serde": String(), "default.value.serde": String()}


def counting(name: str = "orders", store: str = "counts", data: bytes = b"zip", **words: Any) -> Application:
    builder = StreamsBuilder(name, SERDES)
    builder.stream("lines").group_by_key().count(store=store, **words)
    return packed(builder, data)


def packed(builder: StreamsBuilder, data: bytes = b"zip", more: Mapping[str, str] | None = None) -> Application:
    return made_of(application(builder.build(), {"bootstrap.servers": "x", **(more or {})}), "app.py", data)


def test_internal_topics_are_those_of_the_plan() -> None:
    builder = StreamsBuilder("orders", SERDES)
    builder.stream("lines").group_by(lambda key, value: value).count(store="counts")
    builder.stream("more").repartition(name="spread").to("out")
    builder.table("table")  # its changelog is the topic itself
    assert internal_topics(packed(builder).plan) == (
        "orders-counts-changelog",
        "orders-counts-repartition",
        "orders-moldau.shards-changelog",
        "orders-spread-repartition",
    )
    assert deploying.outputs(packed(builder).plan) == ["out"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("processing.guarantee", "at_least_once"), ("commit.interval.ms", "1000"), ("producer.compression.type", "lz4")],
)
def test_settings_that_a_shared_lane_could_not_keep_need_one_of_its_own(name: str, text: str) -> None:
    builder, there = StreamsBuilder("orders", SERDES), {"lines": 1}
    builder.stream("lines").to("out")
    plain, special = packed(builder), packed(builder, more={name: text})
    assert steps_for({}, None, depends_on(plain, there), plain.alone) == 0
    assert steps_for({}, None, depends_on(special, there), special.alone) is None
    shared = Definition("orders", "streams", "v1", {STEPS: 0})
    with pytest.raises(FlowError, match="moldau streams move"):
        steps_for({}, shared, depends_on(special, there), special.alone)


def test_names_that_begin_with_the_id_of_another_application_are_left_alone() -> None:
    names = ["orders-a-changelog", "orders-b-repartition", "orders-eu-a-changelog", "orders-out", "orders2-a-changelog"]
    assert internal_of("orders", names, ["orders", "orders-eu", "others"]) == names[:2]
    assert internal_of("orders", names, ["orders"]) == names[:3]  # as Kafka's own tool


def test_what_survives_is_known_without_the_code_before() -> None:
    there = {"lines": 2}
    was = depends_on(counting(), there)
    assert surviving(None, was) is surviving(was, None) is None
    same = surviving(was, depends_on(counting(data=b"other"), there))
    assert same is not None and (same.survive, same.obstacle) == (("counts",), None)
    renamed = surviving(was, depends_on(counting(store="sums"), there))
    assert renamed is not None and (renamed.empty, renamed.left) == (("sums",), ("counts",))
    other = surviving(was, depends_on(counting(value=String()), there))
    assert other is not None and "the store counts was made with value long" in (other.obstacle or "")
    wider = surviving(was, depends_on(counting(), {"lines": 3}))
    assert wider is not None and "lines had 2 partitions" in (wider.obstacle or "")
    with pytest.raises(FlowError, match="undeploy it first"):
        deploying.refuse_loss("orders", wider)
    deploying.refuse_loss("orders", same)


@pytest.fixture(scope="module")
def started() -> Iterator[Broker]:
    with broker() as one:
        yield one


@pytest.fixture
def place(started: Broker, tmp_path: Path) -> Place:
    return Place({"bootstrap.servers": started.bootstrap_servers}, str(tmp_path / "state"), tmp_path / "code")


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    with place.client() as made:
        yield made


@pytest.fixture
def catalog(place: Place) -> Iterator[Catalog]:
    with opened(place.settings) as made:
        yield made


def deploy(catalog: Catalog, client: Client, one: Application) -> Definition:
    new, _ = deploying.defined(one, {}, client, catalog.flows.get(one.name))
    return deploying.deploy(catalog, client, new, one.data)


def test_removing_a_flow_deletes_its_own_topics_and_code_and_nothing_else(
    catalog: Catalog, client: Client, place: Place
) -> None:
    own = ["orders-counts-changelog", "orders-moldau.shards-changelog"]
    others = ["lines", "orders-eu-x-changelog", "orders-out", "orders-theirs-changelog"]
    topics.create(client, [NewTopic(name, 1) for name in (*own, *others)])
    deploy(catalog, client, counting(data=b"first"))
    flow = deploy(catalog, client, counting(data=b"second"))
    shared = deploy(catalog, client, counting("others", data=b"first"))
    for version in (flow.version, shared.version):
        (place.folder / version).mkdir(parents=True)
    KIND.clear(catalog.want("orders", Wanted.REMOVED), place)
    left = {topic.name for topic in topics.listed(client)}
    assert not left & set(own) and set(others) <= left
    assert code.get(client, kept_of(flow.version, flow.what)) is None
    assert code.get(client, kept_of(shared.version, shared.what)) == b"first"
    assert [folder.name for folder in place.folder.iterdir()] == [shared.version]
    catalog.forget(catalog.flows["orders"])


def test_a_second_upgrade_lets_the_first_version_go(catalog: Catalog, client: Client) -> None:
    flows = [deploy(catalog, client, counting("thrice", data=bytes([number]))) for number in range(3)]
    found = [code.get(client, kept_of(flow.version, flow.what)) for flow in flows]
    assert found == [None, b"\1", b"\2"]
    assert [version for version, _ in versions_of(flows[2])] == [flows[2].version, flows[1].version]
    again = deploy(catalog, client, counting("thrice", data=b"\2"))
    assert again.what == flows[2].what and again.attempt == flows[2].attempt + 1  # the code was there already


def test_stores_of_versions_before_the_last_are_remembered(catalog: Catalog, client: Client) -> None:
    if "lines" not in {topic.name for topic in topics.listed(client)}:
        topics.create(client, [NewTopic("lines", 1)])
    deploy(catalog, client, counting("renamed"))
    deploy(catalog, client, counting("renamed", store="sums", data=b"2"))
    back, kept = deploying.defined(counting("renamed"), {}, client, catalog.flows["renamed"])
    assert kept is not None and (kept.again, kept.left) == (("counts",), ("sums",))
    assert "renamed-sums-changelog" in catalog.deploy(replace(back, what={**back.what, "at": 0})).topics


def test_an_application_whose_topics_are_missing_can_be_deployed(catalog: Catalog, client: Client) -> None:
    builder = StreamsBuilder("early", SERDES)
    builder.stream("nowhere").group_by_key().count(store="counts", value=Long())
    made = deploy(catalog, client, packed(builder))
    assert made.what["state"] is None and made.topics
