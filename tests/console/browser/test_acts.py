"""The main act of each page, in a real browser: groups, schemas, brokers, access, applications, lineage."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from moldau.client import Client
from moldau.records.stores import Kind, spec_of
from moldau.serdes.formats import serde
from moldau.spark.progress import commit_offsets
from moldau.spark.runner.reports import Fallback, Report, to_text
from moldau.spark.runner.status import State
from moldau.views.served import Changelog, Served
from moldau.views.service import serve
from tests.console.browser.shop import HOSTILE, READ, RECORDS, SECOND, Shop

pytestmark = pytest.mark.needs("chromium")
FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
NARROWER = SECOND.replace("double", "string")


def row(page: Page, *texts: str) -> None:
    """There is a row of a table with all these texts."""
    found = page.locator("tbody tr")
    for text in texts:
        found = found.filter(has_text=text)
    expect(found.first).to_be_visible()


def test_offsets_are_set_after_a_look_and_a_group_is_deleted_by_its_name(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/groups")
    page.get_by_role("link", name="billing", exact=True).click()
    row(page, "orders", str(READ), str(RECORDS), str(RECORDS - READ))
    expect(page.get_by_label(f"Lag of billing over time. Now: lag {RECORDS - READ}.")).to_be_visible()
    page.get_by_role("link", name=str(READ), exact=True).click()
    expect(page.get_by_text(f"{RECORDS - READ} records")).to_be_visible()  # what it has still to read
    page.go_back()
    page.get_by_role("button", name="Reset offsets").click()
    expect(page.get_by_role("button", name="Execute")).to_be_disabled()
    page.get_by_role("button", name="Preview").click()
    row(page.get_by_role("dialog"), "orders", f"-{READ}")  # type: ignore[arg-type]
    page.get_by_role("button", name="Execute").click()
    row(page, "orders", "0", str(RECORDS))
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete").click()
    page.get_by_label("Type the name").fill("billing")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("link", name="biller")).to_be_visible()
    expect(page.get_by_role("link", name="billing", exact=True)).to_have_count(0)


def test_a_schema_is_checked_compared_and_saved(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/schemas")
    page.get_by_role("link", name="orders-value").click()
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator(".diff .diff-new").filter(has_text='"amount"')).to_be_visible()
    page.get_by_role("tab", name="New version").click()
    page.get_by_label("Schema", exact=True).fill(NARROWER.replace("0}", '"none"}'))
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It is not compatible with the existing versions:")).to_be_visible()
    wider = SECOND.replace('"default": 0}', '"default": 0}, {"name": "paid", "type": "boolean", "default": false}')
    page.get_by_label("Schema", exact=True).fill(wider)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("It is compatible.")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(re.compile(r"Version 3 · AVRO · id \d+"))).to_be_visible()
    page.get_by_role("tab", name="Use").click()
    expect(page.get_by_role("link", name="orders", exact=True)).to_have_attribute("href", "/topics/orders")


def test_one_broker_is_well_and_has_nothing_to_balance(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/health")
    expect(page.get_by_text(re.compile(r"All is well with 1 broker and \d+ partitions"))).to_be_visible()
    expect(page.get_by_text("Nothing has happened lately.")).to_be_visible()
    expect(page.get_by_text("Moves")).not_to_be_visible()
    page.goto(f"{shop.console.url}/balance")
    expect(page.get_by_text("With one broker there is nothing to balance.")).to_be_visible()


def test_a_setting_of_a_broker_is_found_and_set(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/brokers")
    page.get_by_role("link", name="1", exact=True).click()
    page.get_by_label("Search").fill("log.cleaner.threads")
    page.get_by_role("button", name="log.cleaner.threads").click()
    page.get_by_label("New value").fill("2")
    page.get_by_role("button", name="Set", exact=True).click()
    row(page, "log.cleaner.threads", "2", "this broker")


def test_rules_and_limits_come_and_go(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/access")
    page.get_by_role("button", name="New rule").click()
    page.get_by_label("Principal").fill("User:ada")
    page.get_by_label("Name").fill("orders")
    page.get_by_role("button", name="Add").click()
    row(page, "User:ada", "ALLOW", "READ", "TOPIC", "orders", "LITERAL")
    expect(page.get_by_role("link", name="orders", exact=True)).to_have_attribute("href", "/topics/orders")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no rules.")).to_be_visible()
    page.get_by_role("button", name="New limit").click()
    page.get_by_label("User").fill("ada")
    page.get_by_label("Value").fill("1000000")
    page.get_by_role("button", name="Set", exact=True).click()
    row(page, "user ada", "producer_byte_rate", "1e+06")


def test_open_doors_are_listed_with_what_closes_them(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/access")
    row(page, "PLAINTEXT", "nobody authenticates", "use SASL_SSL", "broker 1")
    expect(page.get_by_text("Brokers do not show certificates")).to_be_visible()


def test_an_application_is_found_with_what_it_reads_and_writes(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/lineage?of=bills")
    row(page, "topic orders", "application biller")
    row(page, "application biller", "topic bills")
    page.locator(".graph").get_by_text("biller", exact=True).click()
    expect(page.get_by_role("heading", name="biller")).to_be_visible()
    expect(page.get_by_role("link", name="orders")).to_have_attribute("href", "/topics/orders")
    expect(page.get_by_role("link", name="bills")).to_have_attribute("href", "/topics/bills")
    page.goto(f"{shop.console.url}/applications")
    row(page, "biller", "orders", "bills")
    page.get_by_role("link", name="counter").click()
    expect(page.get_by_role("heading", name="Topology")).to_be_visible()
    row(page, "0", "orders", "counter-counts-changelog")


def test_the_page_of_an_application_says_what_it_does_and_what_slows_it_down(shop: Shop, page: Page) -> None:
    report = Report(
        State.FAILED, FIRST_MS, FIRST_MS, None, "ValueError: no weights", (Fallback(1, 1234, "it is None"),)
    )
    client = Client({"bootstrap.servers": shop.kafka.bootstrap_servers})
    commit_offsets(client, "weigher", {("orders", 0): 1}, metadata=to_text(report))
    client.close()
    page.goto(f"{shop.console.url}/applications")
    row(page, "weigher", "failed: ValueError: no weights", "2023-11-14 22:13:20", "orders", "9")
    page.get_by_role("link", name="weigher").click()
    expect(page.get_by_text("failed", exact=True)).to_be_visible()
    expect(page.get_by_text("ValueError: no weights")).to_be_visible()
    slow = "1,234 batches of sub-topology 1 were processed record by record: it is None"
    expect(page.get_by_text(slow)).to_be_visible()


def test_stores_are_asked_by_key_by_range_and_by_sql(shop: Shop, page: Page) -> None:
    page.goto(f"{shop.console.url}/applications/biller")
    page.get_by_role("button", name="Location and formats").click()
    expect(page.locator(".q-expansion-item--expanded")).to_have_count(1)
    expect(page.locator(".q-expansion-item--collapsing, .q-expansion-item--expanding")).to_have_count(0)
    page.get_by_label("Format of values").focus()  # by keys: a list that opens while the box unfolds closes again
    page.keyboard.press("ArrowDown")
    page.get_by_role("option", name="long").click()
    page.get_by_label("Key", exact=True).fill("ann")
    page.get_by_role("button", name="Query", exact=True).click()
    row(page, "ann", "2")
    page.get_by_role("button", name="SQL").click()
    page.get_by_label("SQL over stores").fill("select sum(value) as together from totals")
    page.get_by_role("button", name="Query", exact=True).click()
    expect(page.get_by_role("cell", name="5", exact=True)).to_be_visible()
    changelog = Changelog(
        spec_of("totals", Kind.key_value, 0, serde("string"), serde("long")), "biller-totals-changelog"
    )
    with Served("biller", {"totals": changelog}, {"bootstrap.servers": shop.kafka.bootstrap_servers}) as served:
        serving = serve(served, "127.0.0.1:0")
        page.get_by_label("Address of application.server").fill(serving.url)
        page.get_by_role("button", name="Range").click()
        page.get_by_label("Prefix").fill("<")
        page.get_by_role("button", name="Query", exact=True).click()
        row(page, HOSTILE, "1")
        serving.close()
    assert page.locator("img[src=x]").count() == 0
    page.get_by_role("button", name="Query", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("does not answer")


@pytest.mark.parametrize("place", ["groups/biller", "schemas/orders-value", "brokers/1", "access", "new-connector"])
def test_who_may_only_look_is_offered_nothing_that_changes(shop: Shop, page: Page, place: str) -> None:
    page.goto(f"{shop.visitors.url}/{place}")
    expect(page.get_by_label("Loading")).to_have_count(0)
    expect(page.get_by_role("heading", name="Security check")).to_have_count(0)
    for name in ("Reset offsets", "Delete", "Create", "New rule", "New limit", "Save", "log.cleaner.threads"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
