"""What all pages have in common, in a real browser: the keyboard, a telephone, strangers, long lists, wrong ways."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from moldau.admin import topics
from tests.console.browser.conftest import NARROW, Site
from tests.console.browser.shop import Shop
from tests.services import unique

pytestmark = pytest.mark.needs("chromium")
STEPS = 60  # of the Tab key
MANY = 60  # topics: more than a page of the list has
PATHS = (
    "/groups", "/groups/biller", "/schemas", "/schemas/orders-value", "/schemas/orders-value?tab=Compare",
    "/applications", "/applications/biller", "/applications/counter", "/lineage", "/brokers", "/brokers/1", "/health",
    "/balance", "/access",
    "/topics/orders?tab=Settings", "/topics/orders?tab=Consumers", "/topics/orders?tab=Schema", "/nowhere",
)  # fmt: skip


def tab_to(page: Page, words: str) -> None:
    """Press Tab until what has these words has the focus."""
    for _ in range(STEPS):
        page.keyboard.press("Tab")
        if words in (page.evaluate("document.activeElement.innerText || ''") or ""):
            return
    raise AssertionError(f"Tab does not come to {words}")


def test_topics_are_made_and_opened_by_the_keyboard_alone(site: Site) -> None:
    name = site.topic()
    page = site.open(f"/topics?search={name}")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    tab_to(page, "New topic")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    tab_to(page, name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_every_page_fits_a_telephone(shop: Shop, site: Site) -> None:
    page = site.open("/", viewport=NARROW)
    for path in PATHS:
        page.goto(shop.console.url + path)
        expect(page.get_by_role("heading").first).to_be_visible()
        expect(page.get_by_label("Loading")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path


def test_a_form_of_a_strangers_page_does_nothing(shop: Shop, page: Page) -> None:
    form = f'<form method="post" action="{shop.console.url}/logout"><button>Win a prize</button></form>'
    page.route("http://stranger.example/", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://stranger.example/")
    page.get_by_role("button").click()
    expect(page.get_by_text("This request came from another site and is refused.")).to_be_visible()


def test_a_long_list_is_paged_sorted_and_searched_as_a_whole(site: Site) -> None:
    prefix = unique("many")
    last = f"{prefix}-x{MANY - 1:02}"
    names = [f"{prefix}-x{number:02}" for number in range(MANY)]
    topics.create(site.client, [topics.NewTopic(name, 3 if name == last else 1) for name in names])
    page = site.open(f"/topics?search={prefix}-x")
    expect(page.get_by_role("status")).to_contain_text(f"{MANY} of ")
    expect(page.get_by_role("link", name=names[0])).to_be_visible()
    expect(page.get_by_role("link", name=last)).to_have_count(0)
    page.get_by_label("Sort by").click()
    page.get_by_role("option", name="partitions").click()
    expect(page.locator("tbody tr").first).to_contain_text(last)
    page.get_by_role("button", name="2", exact=True).click()
    expect(page.get_by_role("link", name=names[-2])).to_be_visible()
    page.get_by_label("Search", exact=True).fill(last)
    expect(page.get_by_role("status")).to_contain_text("1 of ")
    expect(page.locator("tbody tr").first).to_contain_text(re.compile(r"\d B"))  # sizes have come
    topics.delete(site.client, names)


def test_what_is_not_there_is_told_with_a_way_on(shop: Shop, page: Page) -> None:
    for path, words in (
        ("/nowhere", "There is nothing at this address."),
        ("/topics/nowhere", "There is no topic nowhere."),
        ("/groups/nowhere", "There is no group nowhere."),
        ("/applications/nowhere", "There is no application nowhere."),
        ("/brokers/77", "There is no broker 77 now."),
    ):
        page.goto(shop.console.url + path)
        expect(page.get_by_text(words)).to_be_visible()
        expect(page.get_by_role("link", name="Topics")).to_be_visible()
