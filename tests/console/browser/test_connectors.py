"""Connectors in a real browser, with a real worker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from tests.console.browser.shop import HOSTILE, Shop
from tests.services import Service, unique

pytestmark = pytest.mark.needs("chromium")
JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="module")
def services(shop: Shop) -> Iterator[tuple[Service, Service]]:
    """A worker, and a console that knows it."""
    servers, name = shop.kafka.bootstrap_servers, unique("connect")
    topics = tuple(f"{what}.storage.topic={name}-{what}" for what in ("config", "offset", "status"))
    given = (f"group.id={name}", *topics, "offset.flush.interval.ms=200")
    worker = Service("connect", "--bootstrap-servers", servers, "--listen", "127.0.0.1:0", settings=given)
    try:
        places = ("--bootstrap-servers", servers, "--schema-registry", shop.registry.url, "--connect", worker.url)
        console = Service("console", *places, "--listen", "127.0.0.1:0")
        try:
            yield worker, console
        finally:
            console.stop()
    finally:
        worker.stop()


def test_a_connector_is_seen_changed_mended_and_deleted(
    services: tuple[Service, Service], shop: Shop, page: Page, tmp_path: Path
) -> None:
    worker, console = services
    topic, letters, out = unique("letters"), unique("dlq"), tmp_path / "none" / "out"
    producer = Producer({"bootstrap.servers": shop.kafka.bootstrap_servers})
    producer.produce(topic, HOSTILE.encode())
    assert producer.flush(60) == 0
    config = {"connector.class": "FileStreamSink", "file": str(out), "topics": topic, "value.converter": JSON}
    config |= {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": letters, "some.password": "s3cret"}
    config["errors.deadletterqueue.context.headers.enable"] = "true"
    assert worker.http.post("/connectors", json={"name": "mended", "config": config}).status_code == 201
    page.goto(f"{console.url}/connectors")
    row = page.locator("tbody tr").filter(has_text="mended")
    expect(row.filter(has_text="FAILED").first).to_be_visible()
    expect(page.get_by_text("io.confluent.connect.jdbc.JdbcSinkConnector")).to_be_visible()
    page.get_by_role("link", name="mended").click()
    expect(page.get_by_text("Couldn't find or create file").first).to_be_visible()
    box = page.get_by_label("Config")
    assert "s3cret" not in page.content()
    box.fill(box.input_value().replace(str(out), str(tmp_path / "out")))
    page.get_by_role("button", name="Compare and save").click()
    changes = page.get_by_label("Changes of the config")
    expect(changes.locator(".diff-new")).to_have_text(f"+ file={tmp_path / 'out'}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("tbody tr").filter(has_text="RUNNING").first).to_be_visible()
    assert worker.http.get("/connectors/mended/config").json()["some.password"] == "s3cret"
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    page.reload()
    expect(page.locator("tbody tr").filter(has_text="VALUE_CONVERTER").first).to_be_visible()
    expect(page.locator("tbody tr").filter(has_text=json.dumps(topic)).first).to_be_visible()  # its offsets
    assert page.locator("img[src=x]").count() == 0
    page.get_by_role("button", name="Put them once more").click()
    expect(page.get_by_text("The dead letters were put once more.")).to_be_visible()
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("tbody tr").filter(has_text="PAUSED").first).to_be_visible()
    page.get_by_role("button", name="Delete").first.click()
    page.get_by_label("Type the name").fill("mended")
    page.get_by_role("button", name="Delete").last.click()
    expect(page.get_by_text("There are no connectors.")).to_be_visible()
    assert worker.http.get("/connectors").json() == []


def test_a_connector_is_created_by_a_form_and_json(
    services: tuple[Service, Service], page: Page, tmp_path: Path
) -> None:
    worker, console = services
    name, file = unique("typed"), str(tmp_path / "in")
    page.goto(f"{console.url}/connectors")
    page.get_by_role("button", name="New connector").click()
    page.get_by_label("Plugin", exact=True).fill("filestreamsou")
    page.get_by_role("option", name="FileStreamSourceConnector").click()
    state = page.get_by_role("status")
    expect(state).to_have_text("Missing: name, topic.")
    page.get_by_label("topic *").fill("lines")
    expect(state).to_have_text("Missing: name.")
    page.get_by_role("button", name="Create").click()
    error = page.get_by_role("alert").filter(has_text='Missing required configuration "name"')
    expect(error.first).to_be_visible()
    page.get_by_text("Connector", exact=True).click()
    page.get_by_label("batch.size").fill("many")
    expect(page.get_by_role("alert").filter(has_text="Invalid value many").first).to_be_visible()
    page.get_by_label("batch.size").fill("7")
    expect(state).to_have_text("Missing: name.")
    page.get_by_role("tab", name="JSON").click()
    config = {"connector.class": "FileStreamSource", "topic": "lines", "file": file, "batch.size": 7}
    request = {"name": name, "config": {**config, "some.password": "s3cret"}}
    page.get_by_label("Config", exact=True).fill(json.dumps(request))
    expect(state).to_have_text("The config is valid.")
    page.get_by_role("tab", name="Form").click()
    expect(page.get_by_label("file", exact=True)).to_have_value(file)
    page.get_by_label("topic *").fill("others")
    page.get_by_role("tab", name="JSON").click()
    written = re.compile(r'"some.password": "\[hidden]",\n  "topic": "others"')
    expect(page.get_by_label("Config", exact=True)).to_have_value(written)
    page.get_by_text("Do not start it yet").click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    try:
        stored = worker.http.get(f"/connectors/{name}/config").json()
        assert stored == {**config, "name": name, "batch.size": "7", "topic": "others", "some.password": "s3cret"}
        expect(page.get_by_text("STOPPED").first).to_be_visible()
    finally:
        assert worker.http.delete(f"/connectors/{name}").is_success
