"""The SQL editor and the pages of queries in a real browser, on a real SQL server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from moldau.testing.sql import Ksql, sql_server
from tests.console.browser.conftest import NARROW
from tests.console.browser.shop import HOSTILE, Shop
from tests.services import Service

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def ksql(shop: Shop) -> Iterator[Ksql]:
    with sql_server(shop.kafka.bootstrap_servers, {"ksql.service.id": "console_"}) as started:
        started.execute(
            "CREATE STREAM pay (card STRING KEY, amount INT) WITH (kafka_topic='pay', format='JSON', partitions=1);"
        )
        started.execute("CREATE STREAM big_pay AS SELECT card, amount FROM pay WHERE amount > 10;")
        yield started


@pytest.fixture(scope="module")
def query(ksql: Ksql) -> str:
    """The id of the query that fills big_pay."""
    (shown,) = ksql.execute("SHOW QUERIES;")
    return next(one["id"] for one in shown["queries"] if one["sinks"] == ["BIG_PAY"])


@pytest.fixture(scope="module")
def consoles(shop: Shop, ksql: Ksql) -> Iterator[tuple[Service, Service]]:
    """A console of this SQL server, and one that is read-only."""
    words = ("--bootstrap-servers", shop.kafka.bootstrap_servers, "--sql", ksql.url, "--listen", "127.0.0.1:0")
    made = [Service("console", *words, *more) for more in ((), ("--read-only",))]
    yield made[0], made[1]
    for one in made:
        one.stop()


def test_statement_is_completed_and_rows_come_as_they_are_written(
    consoles: tuple[Service, Service], ksql: Ksql, page: Page
) -> None:
    page.goto(f"{consoles[0].url}/sql")
    box = page.get_by_label("Statements")
    box.fill("")
    box.press_sequentially("SELECT am")
    box.evaluate("box => { box.value = 'SELECT am FROM pay EMIT CHANGES'; box.dispatchEvent(new Event('input')) }")
    box.evaluate("box => { box.focus(); box.setSelectionRange(9, 9) }")
    box.press("Shift")
    page.get_by_role("option", name="amount", exact=True).click()
    expect(box).to_have_value("SELECT amount FROM pay EMIT CHANGES")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("thead th").filter(has_text="AMOUNT")).to_be_visible()
    for amount in (5, 70):
        ksql.execute(f"INSERT INTO pay VALUES ('visa', {amount});")
        expect(page.locator("tbody td").get_by_text(str(amount), exact=True)).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("2 rows so far")
    expect(page.locator("svg").filter(has_text=":").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("status")).to_have_text("2 rows")


def test_refusal_is_underlined_and_nothing_is_taken_for_html(consoles: tuple[Service, Service], page: Page) -> None:
    page.goto(f"{consoles[0].url}/sql")
    hostile = HOSTILE.replace("'", "''")
    page.get_by_label("Statements").fill(f"SHOW TYPES; SELECT amont, '{hostile}' FROM pay EMIT CHANGES;")
    page.get_by_role("button", name="Run").click()
    answers = page.get_by_label("Answers")
    expect(answers.get_by_text("Type Name")).to_be_visible()
    expect(answers.get_by_text("Did you mean AMOUNT?")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0 and page.title() != "owned"


def test_query_is_seen_with_its_topology_paused_and_resumed(
    consoles: tuple[Service, Service], query: str, page: Page
) -> None:
    page.goto(f"{consoles[0].url}/sql/queries")
    row = page.locator("tbody tr").filter(has_text=query)
    expect(row.filter(has_text="RUNNING")).to_be_visible()
    page.get_by_role("link", name=query).click()
    state = page.get_by_label("State", exact=True)
    expect(state.get_by_text("RUNNING")).to_be_visible()
    expect(state.get_by_text("BIG_PAY", exact=True)).to_be_visible()
    expect(page.locator(".graph svg").get_by_text("KSTREAM-SOURCE").first).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(state.get_by_text("PAUSED")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(state.get_by_text("RUNNING")).to_be_visible()


def test_who_may_only_look_may_query_but_not_change(consoles: tuple[Service, Service], query: str, page: Page) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.goto(f"{consoles[1].url}/sql")
    box = page.get_by_label("Statements")
    box.fill("DESCRIBE pay;")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_label("Answers").get_by_text("VARCHAR(STRING)").first).to_be_visible()
    box.fill("DROP STREAM big_pay;")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("This console is read-only").first).to_be_visible()
    page.goto(f"{consoles[1].url}/sql/queries/{query}")
    expect(page.get_by_label("State", exact=True).get_by_text("RUNNING")).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
