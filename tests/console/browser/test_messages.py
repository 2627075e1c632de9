"""The message browser in a real browser: where records are read from, a search that is stopped, what is copied."""

from __future__ import annotations

import ast
import base64
import json
import shlex
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.browser.conftest import Site
from tests.console.browser.shop import Shop
from tests.services import Service

pytestmark = pytest.mark.needs("chromium")
UNKNOWN = b"\0\0\0\xff\xff"  # begins like a value whose schema the registry has under a number that it does not know
CLIPBOARD = ["clipboard-read", "clipboard-write"]


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()


def test_records_are_read_from_one_partition_and_from_a_time(site: Site) -> None:
    name = site.topic(*(b"first %d" % n for n in range(4)), partitions=2)
    site.put(name, b"second 0", b"second 1", partition=1)
    page = site.open(f"/topics/{name}/messages?partition=1")
    expect(page.get_by_text("2 records")).to_be_visible()
    choose(page, "Partition", "all")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("6 records")).to_be_visible()
    choose(page, "Start", "From time")
    page.get_by_label("Time, e.g.").fill("2023-11-14T22:13:22")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("2 records")).to_be_visible()
    expect(page.get_by_text("first 2")).to_be_visible()
    page.get_by_label("Time, e.g.").fill("noon")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_role("alert")).to_contain_text("noon")


def test_a_search_says_how_far_it_is_and_is_stopped(site: Site, shop: Shop) -> None:
    name = site.topic(UNKNOWN + b"x", b"y")
    page = site.open(f"/topics/{name}/messages")
    expect(page.get_by_text("2 records")).to_be_visible()
    shop.registry.process.send_signal(signal.SIGSTOP)
    try:
        box = page.get_by_label("Search key, value and headers")
        box.fill("value = 'nobody'")
        box.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Searching: 0 of 2 records")
        expect(page.get_by_label("Progress of the search")).to_be_visible()
        other = site.open("/topics")
        expect(other.get_by_role("link", name=name, exact=True)).to_be_visible()  # meanwhile pages go on
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_label("Progress of the search")).to_be_hidden()
    finally:
        shop.registry.process.send_signal(signal.SIGCONT)
    expect(page.get_by_role("status")).to_contain_text("Stopped:")


def test_a_record_is_copied_as_a_command_and_as_a_program(site: Site) -> None:
    name = site.topic(b"it's \xff", key=b"$(reboot)")
    page = site.open(f"/topics/{name}/messages", permissions=CLIPBOARD)
    page.get_by_role("button", name="Open offset 0").click()
    page.get_by_role("button", name="Copy as curl").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('curl'))")
    words = shlex.split(page.evaluate("navigator.clipboard.readText()").replace("\\\n", ""))
    [record] = json.loads(words[-1])["records"]
    assert words[1].endswith(f"/topics/{name}") and base64.b64decode(record["key"]) == b"$(reboot)"
    assert base64.b64decode(record["value"]) == b"it's \xff"
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('from confluent_kafka'))")
    assert ast.parse(page.evaluate("navigator.clipboard.readText()"))


@pytest.fixture(scope="module")
def alone(shop: Shop, browser: Browser) -> Iterator[Site]:
    """A console whose registry is away."""
    away = "http://127.0.0.1:1"
    console = Service("console", "-b", shop.kafka.bootstrap_servers, "--schema-registry", away, "--port", "0")
    made = Site(shop.kafka.bootstrap_servers, away, console.url, browser)
    yield made
    for page in made.pages:
        page.context.close()
    made.client.close()
    console.stop()


def test_where_the_registry_is_away_that_is_told_and_the_rest_goes_on(alone: Site) -> None:
    name = alone.topic(UNKNOWN + b"x", b'{"a": 1}')
    page = alone.open("/schemas")
    expect(page.get_by_role("alert")).to_contain_text("No registry at http://127.0.0.1:1")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.goto(f"{alone.url}/topics/{name}?tab=Schema")
    expect(page.get_by_role("alert")).to_contain_text("Is there a Schema Registry")
    page.get_by_role("tab", name="Partitions").click()
    expect(page.get_by_role("link", name="0", exact=True)).to_be_visible()
    page.get_by_role("button", name="Messages").click()
    expect(page.get_by_text('{"a": 1}')).to_be_visible()
    page.get_by_role("button", name="Open offset 0").click()
    expect(page.get_by_text("00000000  00 00 00 ff ff 78")).to_be_visible()
