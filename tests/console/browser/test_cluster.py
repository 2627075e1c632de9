"""The pages of a cluster, in a real browser: three brokers, one of which dies; a plan that is carried out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from moldau.admin import clusters, reassignments, topics
from moldau.admin.connection import Connection
from moldau.admin.mistakes import Mistake
from moldau.balance.journal import RUNNING, TOPIC
from moldau.balance.progress import CANCELLED, PAUSED, Wish
from moldau.client import Client, Record, build, produce
from moldau.console.balancing import Balancing
from moldau.testing import eventually
from moldau.testing.clusters import Cluster, cluster
from tests.console.browser.conftest import PATIENCE_MS, WIDE
from tests.services import Service

pytestmark = pytest.mark.needs("chromium")
PARTITIONS, BATCHES, RECORDS, BYTES = 8, 12, 10, 40_000
LOPSIDED = {index: [1, 2] if index % 2 else [2, 1] for index in range(PARTITIONS)}  # broker 3 has nothing of it
SETTINGS = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "4000"}


@dataclass(frozen=True, slots=True)
class Three:
    """A cluster, a client of it, its console, and one that is read-only."""

    brokers: Cluster
    client: Client
    console: Service
    visitors: Service


@contextmanager
def opened() -> Iterator[Three]:
    """Three brokers, with a topic that is spread badly."""
    with (
        cluster(3, SETTINGS, proxied=False) as brokers,
        Client({"bootstrap.servers": brokers.bootstrap_servers}) as client,
    ):
        topics.create(client, [topics.NewTopic("lopsided", assignments=LOPSIDED), topics.NewTopic("orders", 3)])
        for index in [*range(PARTITIONS)] * BATCHES:
            produce(client, "lopsided", index, build([Record(0, 0, None, bytes(BYTES))] * RECORDS))
        where = ("--bootstrap-servers", brokers.bootstrap_servers, "--listen", "127.0.0.1:0")
        with ThreadPoolExecutor(2) as pool:
            options: tuple[tuple[str, ...], ...] = ((), ("--read-only",))
            consoles = list(pool.map(lambda more: Service("console", *where, *more), options))
        try:
            yield Three(brokers, client, *consoles)
        finally:
            for part in consoles:
                part.stop()


@pytest.fixture(scope="module")
def three() -> Iterator[Three]:
    with opened() as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page(viewport=WIDE)  # type: ignore[arg-type]
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


def row(page: Page, *texts: str) -> Locator:
    found = page.locator("tbody tr")
    for text in texts:
        found = found.filter(has_text=text)
    return found


def held(three: Three, broker: int) -> int:
    """How many partitions of the lopsided topic a broker has."""
    [topic] = [one for one in topics.listed(three.client) if one.name == "lopsided"]
    return sum(broker in part.replicas for part in topic.partitions)


def test_brokers_and_the_quorum_are_shown(three: Three, page: Page) -> None:
    page.goto(f"{three.console.url}/brokers")
    for number, broker in three.brokers.brokers.items():
        address = broker.settings["listeners"].partition(",")[0].removeprefix("PLAINTEXT://")
        expect(row(page, address, f"r{number}", "Moldau", "up")).to_have_count(1)
    told = re.compile("Replicas of each broker. broker 1: .*; broker 3: leads [0-9]+, follows")
    expect(page.get_by_label(told)).to_be_visible()
    quorum = clusters.quorum(three.client)
    expect(page.get_by_text(f"Leader {quorum.leader}, epoch {quorum.leader_epoch}")).to_be_visible()
    expect(row(page, "CONTROLLER://", "voter")).to_have_count(2)
    expect(row(page, "CONTROLLER://", "leader")).to_have_count(1)


def test_a_plan_is_shown_to_all_and_carried_out_or_called_off_by_who_may(three: Three, page: Page) -> None:
    page.goto(f"{three.visitors.url}/balance")
    expect(page.get_by_text(re.compile(r"\d+ partitions move"))).to_be_visible()
    expect(page.get_by_role("button", name="Carry out")).to_have_count(0)
    assert not any(topic.name == TOPIC for topic in topics.listed(three.client)), "looking changes nothing"

    page.goto(f"{three.console.url}/balance")
    begin(page, "0.1")  # it would take minutes
    expect(page.get_by_text("It is being carried out.")).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d of [1-9]\d* moves, .* of [\d.]+ MB"))).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Moves under way come to their end")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("It was cancelled")).to_be_visible()
    assert not reassignments.listed(three.client)

    page.get_by_role("button", name="Plan", exact=True).click()
    begin(page, "0")
    expect(page.get_by_text("All its moves are done.")).to_be_visible()
    assert held(three, 3) >= PARTITIONS // 2
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.get_by_text("The cluster is balanced: nothing to do.")).to_be_visible()


def begin(page: Page, rate: str) -> None:
    page.get_by_label("Throttle, MB/s").fill(rate)
    expect(page.get_by_text(re.compile(r"\d+ partitions? (move|only)")).first).to_be_visible()
    page.get_by_role("button", name="Carry out").click()
    page.get_by_role("dialog").get_by_role("button", name="Carry out").click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_console_that_ends_calls_moves_off_and_another_goes_on(three: Three) -> None:
    where = Connection(three.brokers.bootstrap_servers)
    first, second = Balancing(where), Balancing(where)
    try:
        first.begin(first.plan([3]), "drain 3", 10_000)  # it would take an hour
        eventually(lambda: reassignments.listed(three.client), what="moves")
        seen = first.watch()
        assert seen is not None and (seen.run.state, seen.is_ours) == (RUNNING, True)
        with pytest.raises(Mistake, match="resume or cancel"):
            first.begin(first.plan([3]), "drain 3", 0)
        first.close()
        seen = second.watch()
        assert seen is not None and (seen.run.state, seen.is_ours) == (PAUSED, False)
        assert not reassignments.listed(three.client)
        with pytest.raises(Mistake, match="resume or cancel"):
            second.begin(second.plan([3]), "drain 3", 0)
        second.steer(Wish.RUN)
        eventually(lambda: reassignments.listed(three.client), what="moves again")
        second.steer(Wish.CANCEL)
        eventually(lambda: (seen := second.watch()) and seen.run.state == CANCELLED, what="the end")
        assert not reassignments.listed(three.client)
    finally:
        for one in (first, second):
            one.close()
        where.close()


def moved_to(three: Three, broker: int) -> str:
    """Begin to move a partition to a broker that does not have it; returns its name."""
    [topic] = [one for one in topics.listed(three.client) if one.name == "lopsided"]
    part = next(one for one in topic.partitions if broker not in one.replicas)
    reassignments.alter(three.client, {("lopsided", part.index): [*part.replicas, broker]})
    return f"lopsided-{part.index}"


def test_a_broker_that_dies_is_seen_with_what_suffers_and_what_happened(three: Three, page: Page) -> None:
    page.goto(f"{three.console.url}/health")
    expect(page.get_by_text(re.compile("All is well with 3 brokers and .* partitions"))).to_be_visible()
    three.brokers.kill(3)
    page.goto(three.console.url)
    expect(page.get_by_text("1 broker is fenced.")).to_be_visible()
    page.goto(f"{three.console.url}/health")
    expect(row(page, "broker 3", "fenced", "the controller does not hear from it")).to_have_count(1)
    expect(row(page, "orders-0", "at min ISR", "2 of 3 in sync", "missing 3 (fenced)")).to_have_count(1)
    name = moved_to(three, 3)
    expect(row(page, name, "0 B of 4.8 MB")).to_have_count(1)
    page.get_by_label("Search").fill("orders-0")
    expect(row(page, "ISR shrinks", "orders-0", "without 3").first).to_be_visible()
    three.brokers.start_again(3)
    expect(page.get_by_text("All is well")).to_be_visible()
    expect(row(page, name, "of 4.8 MB")).to_have_count(0)
    expect(row(page, "ISR grows", "orders-0", "with 3").first).to_be_visible()
    expect(page.get_by_label(re.compile("Events over time: controller [1-9].*ISR grows [1-9]"))).to_be_visible()
    expect(row(page, "broker 3")).to_have_count(0)
