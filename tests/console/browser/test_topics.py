"""Overview, topics and messages in a real browser: hostile records, light and dark, wide and narrow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from moldau.admin import configs, groups, topics
from moldau.console import accounts
from moldau.serdes.context import Context
from moldau.serdes.formats import serde
from moldau.serdes.registry import Schema
from tests.console.browser.conftest import NARROW, PATIENCE_MS, Site
from tests.services import Service, unique

pytestmark = pytest.mark.needs("chromium")
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "amount", "type": "double"}, {"name": "country", "type": "string"}],
}
HOSTILE = b"<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>{{ 7 * 7 }}"


def test_the_overview_shows_brokers_flow_and_lag(site: Site) -> None:
    name, group = site.topic(*[b"x"] * 3000), unique("billing")  # more than other topics have: it is among the busiest
    groups.commit(site.client, group, {(name, 0): 1})
    page = site.open("/")
    expect(page.get_by_role("status")).to_contain_text("All is well.")
    expect(page.get_by_text(re.compile(r"127\.0\.0\.1:\d+"))).to_be_visible()
    expect(page.get_by_role("link", name=name)).to_be_visible()
    expect(page.get_by_text("Lag of all groups").locator("..")).to_contain_text(re.compile(r"\d,\d{3}"))
    for chart in ("Records written per second over time. Now: records/s", "Lag of groups over time. Now:"):
        expect(page.get_by_label(chart)).to_be_visible()


def test_a_topic_is_made_found_changed_and_deleted(site: Site) -> None:
    name = unique("parcels")
    page = site.open("/topics")
    page.get_by_role("button", name="New topic").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Partitions", exact=True).fill("2")
    page.get_by_label("Settings, one name=value per line").fill("retention.ms=60000")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text(f"Created {name}.")).to_be_visible()
    page.get_by_label("Search", exact=True).fill(name)
    expect(page.get_by_text(re.compile(r"^1 of "))).to_be_visible()  # a click while the table is redrawn is lost
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("tab", name="Settings").click()
    page.get_by_role("button", name="retention.ms", exact=True).click()
    page.get_by_label("New value").fill("70000")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("cell", name="70000")).to_be_visible()
    entry = configs.described(site.client, configs.Resource(configs.Kind.TOPIC, name), ["retention.ms"])[0]
    assert entry.value == "70000"
    page.get_by_role("button", name="Add partitions").click()
    page.get_by_label("Total partitions").fill("5")
    with page.expect_navigation():
        page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("link", name="4", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    sure = page.get_by_role("dialog").get_by_role("button", name="Delete")
    expect(sure).to_be_disabled()
    page.get_by_label("Type the name").fill(name)
    sure.click()
    page.wait_for_url("**/topics")
    assert name not in [topic.name for topic in topics.listed(site.client)]


def test_who_reads_a_topic_and_its_schema_are_shown(site: Site) -> None:
    name, group = site.topic(b"1", b"2"), unique("billing")
    groups.commit(site.client, group, {(name, 0): 1})
    site.registry.register(f"{name}-value", Schema("AVRO", json.dumps(ORDER)), False)
    page = site.open(f"/topics/{name}?tab=Consumers")
    expect(page.get_by_role("row").filter(has_text=group)).to_contain_text("1")
    page.get_by_role("tab", name="Schema").click()
    expect(page.get_by_text('"country"')).to_be_visible()


def test_a_record_is_produced_by_the_fields_of_its_schema_and_opened_as_a_tree(site: Site) -> None:
    name = site.topic()
    site.registry.register(f"{name}-value", Schema("AVRO", json.dumps(ORDER)), False)
    page = site.open(f"/topics/{name}/messages")
    expect(page.get_by_text("There are no records here.")).to_be_visible()
    page.get_by_role("button", name="Produce").click()
    page.get_by_role("button", name="From schema").nth(1).click()
    page.get_by_label("amount *").fill("much")
    page.get_by_label("country *").fill(HOSTILE.decode())
    page.get_by_label("Headers, one name: value per line").fill("trace: abc")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("amount: 'much' is not a number.")).to_be_visible()
    page.get_by_label("amount *").fill("12.5")
    page.get_by_label("country *").fill("de")
    expect(page.get_by_label("Value", exact=True)).to_have_value('{\n  "amount": 12.5,\n  "country": "de"\n}')
    page.get_by_label("Value", exact=True).fill('{"amount": 12.5, "country": "cz"}')
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text(f"Written to {name}.")).to_be_visible()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Open offset 0").click()
    expect(page.get_by_text("AVRO by schema")).to_be_visible()
    expect(page.get_by_text('country: "cz"')).to_be_visible()
    page.get_by_role("button", name="Hex").click()
    expect(page.get_by_text("00000000  00 00 00 00")).to_be_visible()
    page.get_by_role("tab", name="Headers (1)").click()
    expect(page.get_by_role("cell", name="trace")).to_be_visible()


def test_hostile_values_are_text(site: Site) -> None:
    name = site.topic(
        HOSTILE, b"\xff\xfe\0binary", b"[" * 50_000, key=HOSTILE, configs={"max.message.bytes": "11000000"}
    )
    site.put(name, b"x" * 10_000_000, key=HOSTILE)
    page = site.open(f"/topics/{name}/messages")
    for offset in range(4):
        page.get_by_role("button", name=f"Open offset {offset}").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_text(f"@ {offset}")).to_be_visible()
        if offset == 0:
            expect(dialog.get_by_text("<script>")).to_be_visible()
            expect(dialog.get_by_text("{{ 7 * 7 }}")).to_be_visible()
        if offset == 3:
            expect(dialog.get_by_text("10.0 MB, of which the first")).to_be_visible()
        page.get_by_role("tab", name="Key").click()
        expect(dialog.get_by_text("<script>").last).to_be_visible()
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
    assert page.title() == "Messages · Moldau" and page.locator("img[src=x]").count() == 0


def test_a_search_finds_what_an_expression_says_and_exports_it(site: Site) -> None:
    avro = serde("avro", site.registry, Schema("AVRO", json.dumps(ORDER)))
    name = site.topic(*(b'{"amount": %d, "country": "de"}' % n for n in range(1000)))
    typed = avro.to_bytes({"amount": 999.5, "country": "cz"}, Context(name))
    assert typed is not None
    site.put(name, typed)
    page = site.open(f"/topics/{name}/messages")
    expect(page.get_by_text("50 records")).to_be_visible()
    box = page.get_by_label("Search key, value and headers")
    box.fill("value.amount >= 998 and headers.trace = 'abc'")
    box.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("3 found")
    for offset in (998, 999, 1000):
        expect(page.get_by_role("button", name=f"Open offset {offset}")).to_be_visible()
    page.get_by_role("button", name="Export").click()
    with page.expect_download(timeout=PATIENCE_MS) as download:
        page.get_by_text("JSON lines").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert json.loads(lines[2])["value"] == {"amount": 999.5, "country": "cz"}
    box.fill("value.amount >")
    box.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is not a condition")


def test_records_are_read_from_an_offset_and_seen_as_they_come(site: Site) -> None:
    name = site.topic(*(b"old %d" % n for n in range(10)))
    page = site.open(f"/topics/{name}/messages?start=From offset&at=7")
    expect(page.get_by_text("3 records")).to_be_visible()
    expect(page.get_by_text("old 7")).to_be_visible()
    page.get_by_label("Start").click()
    page.get_by_role("option", name="Live").click()
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("Live: 0 records.")).to_be_visible()
    site.put(name, b"fresh")
    expect(page.get_by_text("fresh")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_a_topic_is_found_from_anywhere_by_the_keyboard(site: Site) -> None:
    name = site.topic()
    page = site.open("/")
    expect(page.get_by_role("status")).to_contain_text("All is well.")
    page.keyboard.press("/")
    page.get_by_placeholder("Find a topic").type(name)
    page.get_by_role("menuitem").filter(has_text=name).or_(page.get_by_role("listitem").filter(has_text=name)).click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_light_and_dark_are_remembered(site: Site) -> None:
    page = site.open("/topics", color_scheme="light")
    expect(page.locator("body.body--light")).to_be_visible()
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("body.body--dark")).to_be_visible()
    page.reload()
    expect(page.locator("body.body--dark")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/topics", "/topics/{}", "/topics/{}/messages"])
def test_pages_fit_a_telephone(site: Site, path: str) -> None:
    name = site.topic(b'{"a": "%s"}' % (b"x" * 500), key=b"k" * 100)
    page = site.open(path.format(name), viewport=NARROW)
    expect(page.get_by_role("heading").first).to_be_visible()
    expect(page.get_by_label("Loading")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    page.get_by_role("button", name="Navigation").click()
    expect(page.get_by_role("link", name="Topics")).to_be_visible()


@pytest.fixture(scope="module")
def locked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with a login, which may only look, whose broker and registry are away."""
    users = tmp_path_factory.mktemp("users") / "users"
    accounts.add(users, "ada", "correct horse")
    away = ("-b", "127.0.0.1:1", "--schema-registry", "http://127.0.0.1:1")
    console = Service("console", *away, "--port", "0", "--read-only", "--users", str(users))
    yield Site("127.0.0.1:1", "http://127.0.0.1:1", console.url, browser)
    console.stop()


def test_who_logs_in_is_told_that_the_broker_is_away_and_may_change_nothing(locked: Site) -> None:
    page = locked.open("/topics")
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Password").fill("wrong password")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong")
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile("/topics$"))
    expect(page.get_by_role("alert")).to_contain_text("do not answer")
    expect(page.get_by_text("moldau up")).to_be_visible()
    expect(page.get_by_text("read-only")).to_be_visible()
    assert page.get_by_role("button", name="New topic").count() == 0
    page.get_by_role("button", name="You").click()
    page.get_by_text("Log out").click()
    expect(page).to_have_url(re.compile("/login"))
