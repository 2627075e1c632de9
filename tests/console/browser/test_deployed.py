"""Deployed applications in a real browser, with a real worker: its code cannot be loaded, so it needs no Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import NoReturn

import pytest
from playwright.sync_api import Page, expect

from moldau.client import Client
from moldau.console.pages.deployed import EVERY_S
from moldau.flows import code
from moldau.flows.catalog import opened
from moldau.flows.definition import Definition, FlowError
from moldau.flows.kinds import Place
from moldau.flows.verbs import act
from moldau.flows.worker import Worker
from tests.console.browser.conftest import NARROW
from tests.console.browser.shop import HOSTILE, Shop

pytestmark = pytest.mark.needs("chromium")
NAME = "teller"
APP = f"import sys\nsys.stderr.write({HOSTILE!r})\nraise ValueError('no weights')\n"


@pytest.fixture(scope="module")
def deployed(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """An application in two versions, none of which can be loaded, and a worker."""
    folder, settings = tmp_path_factory.mktemp("deployed"), {"bootstrap.servers": shop.kafka.bootstrap_servers}
    with Client(settings) as client, opened(settings) as catalog:
        for text in (APP.replace("weights", "scales"), APP):
            (folder / "app.py").write_text(text)
            kept = code.put(client, code.pack(folder / "app.py"))
            what = {"file": "app.py", "size": kept.size, "at": kept.at}
            catalog.deploy(Definition(NAME, "streams", kept.version, what, topics=("teller-counts-changelog",)))
    stopped = threading.Event()
    worker = Worker("desk", Place(settings, str(folder / "state"), folder / "code"), no_session)
    thread = threading.Thread(target=worker.run, args=(stopped.wait,))
    thread.start()
    yield shop
    stopped.set()
    thread.join(120)
    assert not thread.is_alive()


def no_session() -> NoReturn:
    raise FlowError("Nothing gets that far here.")


def test_a_deployed_application_is_seen_compared_steered_and_removed(deployed: Shop, page: Page) -> None:
    page.goto(f"{deployed.console.url}/applications")
    row = page.locator("tbody tr").filter(has_text=NAME)
    expect(page.locator("tbody tr").filter(has_text="desk").filter(has_text="streams/teller")).to_be_visible()
    expect(page.locator("tbody tr").filter(has_text=re.compile(r"desk.*\d [MG]B")).first).to_be_visible()
    expect(row.filter(has_text="failed: app.py cannot be loaded")).to_be_visible()
    page.get_by_role("link", name=NAME).click()
    expect(page.get_by_text("app.py cannot be loaded (code 1).")).to_be_visible()
    expect(page.get_by_text("ValueError: no weights")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    page.get_by_role("button", name="Compare versions").click()
    changes = page.get_by_label("Changes of the code")
    expect(changes.locator(".diff-new").filter(has_text="+raise ValueError('no weights')")).to_be_visible()
    expect(changes.locator(".diff-gone").filter(has_text="-raise ValueError('no scales')")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("stopped", exact=True).first).to_be_visible()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_text("ValueError: no weights")).to_be_visible()
    page.get_by_role("button", name="Rollback", exact=True).click()
    expect(page.get_by_text("ValueError: no scales")).to_be_visible()
    page.get_by_role("button", name="Undeploy", exact=True).click()
    page.get_by_label("Type the name").fill(NAME)
    change_meanwhile(deployed, page)
    page.get_by_role("dialog").get_by_role("button", name="Undeploy").click()
    expect(page.get_by_role("heading", name="Applications")).to_be_visible()

    def is_gone() -> bool:
        page.reload()
        expect(page.get_by_label("Loading")).to_have_count(0)
        return row.count() == 0

    for _ in range(120):
        if is_gone():
            break
        page.wait_for_timeout(500)
    assert is_gone()


def change_meanwhile(shop: Shop, page: Page) -> None:
    """Stop the application from elsewhere, and give the page time to notice."""
    settings = {"bootstrap.servers": shop.kafka.bootstrap_servers}
    with Client(settings) as client:
        act(settings, client, NAME, "stop")
    page.wait_for_timeout(3000 * EVERY_S)


def test_who_may_only_look_at_applications_is_offered_no_verbs(deployed: Shop, page: Page) -> None:
    with opened({"bootstrap.servers": deployed.kafka.bootstrap_servers}) as catalog:
        catalog.deploy(Definition("looked-at", "mystery", "v1", {}))
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(f"{deployed.visitors.url}/applications/looked-at")
    expect(page.get_by_text("This worker knows no flows of the kind mystery, only streams, query.")).to_be_visible()
    for verb in ("Pause", "Resume", "Restart", "Stop", "Rollback", "Undeploy"):
        expect(page.get_by_role("button", name=verb, exact=True)).to_have_count(0)
