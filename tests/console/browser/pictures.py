"""`python -m tests.console.browser.pictures` (`make pictures`): pictures of the console in docs/pictures, made anew.

They are taken of `moldau demo`, in Chromium, when both of its applications have written for a while; those of a cluster
of three brokers, one of which has died. `--cluster` takes only these.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page, sync_playwright

from moldau.admin import offsets, topics
from moldau.client import Client, ClientError
from moldau.demo.topics import CLICKS_PER_PAGE, ORDERS, ORDERS_ENRICHED
from tests import needs
from tests.console.browser.test_cluster import opened

OFFSET = 21_000  # added to the usual ports
SERVERS, CONSOLE = f"127.0.0.1:{9092 + OFFSET}", f"http://127.0.0.1:{9021 + OFFSET}"
PICTURES = needs.ROOT / "docs" / "pictures"
START_S, FLOW_S, STOP_S = 240.0, 75.0, 60.0
PATIENCE_MS = 60_000
LARGEST = 150_000  # bytes of a picture
WIDE, TELEPHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 800}
MESSAGES = f"/topics/{ORDERS.name}/messages"


@dataclass(frozen=True, slots=True)
class Picture:
    """A page to be shown: light or dark, after something was done on it."""

    name: str
    path: str
    act: Callable[[Page], None]
    dark: bool = False
    narrow: bool = False


def charts(page: Page) -> None:
    page.get_by_label("Lag of groups over time. Now:").wait_for()


def found(page: Page) -> None:
    """The second search: the first of a console compiles what it needs."""
    box = page.get_by_label("Search key, value and headers")
    for words, told in (("value.amount < 0", "[^0-9]0 found"), ("value.amount > 300", "[0-9]{2} found")):
        box.fill(words)
        box.press("Enter")
        page.get_by_role("status").filter(has_text=re.compile(f"Searched.*{told}")).wait_for()


def record(page: Page) -> None:
    page.get_by_role("button", name=re.compile("Open offset")).nth(1).click()
    page.get_by_text("AVRO by schema").wait_for()


def graph(page: Page) -> None:
    page.locator(".graph").get_by_text(ORDERS_ENRICHED.name).wait_for()
    page.locator(".graph").get_by_text("/s").first.wait_for()


def rows(page: Page) -> None:
    page.locator("tbody tr").filter(has_text=re.compile(r"\d [KM]?B")).first.wait_for()


SHOWN = (
    Picture("console-demo", "/", charts),
    Picture("console-overview", "/", charts, dark=True),
    Picture("console-messages", MESSAGES, found),
    Picture("console-record", MESSAGES, record, dark=True),
    Picture("console-lineage", "/lineage", graph),
    Picture("console-telephone", "/topics", rows, dark=True, narrow=True),
)


def brokers(page: Page) -> None:
    page.get_by_label("Replicas of each broker").wait_for()


def planned(page: Page) -> None:
    page.get_by_text("partitions move").wait_for()


def unwell(page: Page) -> None:
    page.locator("tbody tr").filter(has_text="ISR shrinks").first.wait_for()
    page.get_by_text("wrong with").wait_for()


WELL = (Picture("console-brokers", "/brokers", brokers), Picture("console-balance", "/balance", planned, dark=True))
UNWELL = (Picture("console-health", "/health", unwell),)


@contextmanager
def demo() -> Iterator[None]:
    """`moldau demo`, from the moment at which its applications write."""
    process = subprocess.Popen([sys.executable, "-m", "moldau", "demo", "--port-offset", str(OFFSET)])
    try:
        until = time.monotonic() + START_S
        with Client({"bootstrap.servers": SERVERS}) as client:
            while not (written(client, CLICKS_PER_PAGE.name) and written(client, ORDERS_ENRICHED.name)):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit("The demonstration did not start; its own words are above.")
                time.sleep(1)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(STOP_S)


def written(client: Client, topic: str) -> bool:
    """Whether there are records in a topic."""
    try:
        return any(last for _, last in offsets.ends(client, topics.partitions(client, [topic])).values())
    except ClientError:
        return False


def take(browser: Browser, picture: Picture, console: str = CONSOLE) -> None:
    size = TELEPHONE if picture.narrow else WIDE
    page = browser.new_page(viewport=size, color_scheme="dark" if picture.dark else "light")  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE_MS)
    page.goto(console + picture.path)
    picture.act(page)
    page.wait_for_timeout(1000)  # what fades in has done so
    data = page.screenshot(path=PICTURES / f"{picture.name}.png")
    print(f"{picture.name}: {len(data):,} bytes")
    if len(data) > LARGEST:
        raise SystemExit(f"{picture.name} is too large for the documentation.")
    page.close()


def main() -> None:
    path = needs.find("chromium").path
    if path is None:
        raise SystemExit("Pictures are taken in Chromium, which is not here: apt install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox"])
        of_a_cluster(browser)
        if "--cluster" not in sys.argv:
            of_the_demo(browser)
        browser.close()


def of_a_cluster(browser: Browser) -> None:
    with opened() as three:
        for picture in WELL:
            take(browser, picture, three.console.url)
        three.brokers.kill(3)
        for picture in UNWELL:
            take(browser, picture, three.console.url)


def of_the_demo(browser: Browser) -> None:
    with demo():
        watching = browser.new_page()
        watching.goto(CONSOLE)  # while somebody looks, charts get a point every two seconds
        watching.wait_for_timeout(FLOW_S * 1000)
        for picture in SHOWN:
            take(browser, picture)


if __name__ == "__main__":
    main()
