"""One cluster, one console and one browser for all tests here.

They end with this folder: while Playwright's browser is open, no other event loop can run in this thread.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from moldau.admin import topics
from moldau.client import Client, Record, build, produce
from moldau.serdes.registry import Registry
from tests import needs
from tests.console.browser.shop import Shop, opened
from tests.services import unique

PATIENCE_MS = 120_000  # whatever else the machine does
FIRST_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 390, "height": 800}


class Site:
    """A broker, a registry, a console and a browser."""

    def __init__(self, servers: str, registry: str, url: str, browser: Browser) -> None:
        self.url, self.browser = url, browser
        self.client = Client({"bootstrap.servers": servers})
        self.registry = Registry.connect({"url": registry})
        self.pages: list[Page] = []

    def open(self, path: str, **context: object) -> Page:
        page = self.browser.new_context(**{"viewport": WIDE, **context}).new_page()  # type: ignore[arg-type]
        page.set_default_timeout(PATIENCE_MS)
        self.pages.append(page)
        page.goto(self.url + path)
        return page

    def topic(
        self, *values: bytes, partitions: int = 1, key: bytes | None = None, configs: dict[str, str] | None = None
    ) -> str:
        name = unique("orders")
        topics.create(self.client, [topics.NewTopic(name, partitions, configs=configs)])
        self.put(name, *values, key=key)
        return name

    def put(self, name: str, *values: bytes, key: bytes | None = None, partition: int = 0) -> None:
        """Records a second from each other."""
        records = [Record(0, FIRST_MS + 1000 * at, key, value, (("trace", b"abc"),)) for at, value in enumerate(values)]
        if records:
            produce(self.client, name, partition, build(records))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    found = needs.find("chromium").path
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(found), args=["--no-sandbox"], timeout=PATIENCE_MS)
        yield started
        started.close()


@pytest.fixture(scope="package")
def shop() -> Iterator[Shop]:
    with opened() as made:
        yield made


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page()
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def site(shop: Shop, browser: Browser) -> Iterator[Site]:
    """The pages that a test opens are closed after it."""
    made = Site(shop.kafka.bootstrap_servers, shop.registry.url, shop.console.url, browser)
    yield made
    for page in made.pages:
        page.context.close()
    made.client.close()
