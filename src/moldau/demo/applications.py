"""The two streams applications of the demo, as anybody would write them: counts in windows, and a join.

They are deployed as flows; the worker of the platform runs them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.client import Client
from moldau.demo.topics import CLICKS, CLICKS_PER_PAGE, CUSTOMERS, ORDERS, ORDERS_ENRICHED, TOPICS, Topic
from moldau.flows import deploying
from moldau.flows.catalog import opened
from moldau.flows.overview import members
from moldau.streams import Avro, KStream, StreamsBuilder, String, TimeWindows, Windowed

NO_WORKER = "No worker runs yet, and the demo's applications wait for one: `moldau worker` starts it."
PATIENCE_S, LOOK_EVERY_S = 120.0, 0.2
UNKNOWN = {"name": "unknown", "city": "unknown", "level": "unknown"}


def page_clicks() -> StreamsBuilder:
    """Count the clicks of each page in windows of ten seconds."""
    builder = StreamsBuilder("page-clicks")
    (
        stream_of(builder, CLICKS)
        .group_by(lambda customer, click: click["page"], key=String(), value=Avro(CLICKS.schema))
        .windowed_by(TimeWindows.of("10 seconds", grace="5 seconds"))
        .count(store="clicks-per-page")
        .to_stream()
        .map(count_of)
        .to(CLICKS_PER_PAGE.name, key=String(), value=Avro(CLICKS_PER_PAGE.schema))
    )
    return builder


def count_of(window: Windowed, clicks: int) -> tuple[str, dict[str, Any]]:
    return window.key, {"page": window.key, "since": window.start, "clicks": clicks}


def enriched_orders() -> StreamsBuilder:
    """Join orders with the current name, city and level of their customer."""
    builder = StreamsBuilder("enriched-orders")
    customers = builder.table(CUSTOMERS.name, key=String(), value=Avro(CUSTOMERS.schema), store="customers")
    (
        stream_of(builder, ORDERS)
        .left_join(customers, enrich)
        .to(ORDERS_ENRICHED.name, key=String(), value=Avro(ORDERS_ENRICHED.schema))
    )
    return builder


def enrich(order: Mapping[str, Any], customer: Mapping[str, Any] | None) -> dict[str, Any]:
    known = {name: (customer or UNKNOWN)[name] for name in UNKNOWN}
    return {**known, **{name: order[name] for name in ("id", "customer", "product", "amount")}}


def stream_of(builder: StreamsBuilder, topic: Topic) -> KStream[Any, Any]:
    return builder.stream(topic.name, key=String(), value=Avro(topic.schema))


def deploy(bootstrap_servers: str, registry_url: str) -> list[str]:
    """Deploy both as flows, unless that was done before, and return what to tell."""
    await_topics(bootstrap_servers)
    own = {"schema.registry.url": registry_url}
    place = {"bootstrap.servers": bootstrap_servers}
    with Client(place) as client, opened(place) as catalog:
        for file, make in APPLICATIONS.items():
            one = deploying.packed(make().build(), {**place, **own}, Path(__file__).with_name(file))
            known = catalog.flows.get(one.name)
            new, kept = deploying.defined(one, own, client, known)
            deploying.refuse_loss(one.name, kept)
            if known is None or (known.version, known.settings) != (new.version, new.settings):
                deploying.deploy(catalog, client, new, one.data)
        return [] if members(client) else [NO_WORKER]


# The file that makes each of them on a worker.
APPLICATIONS = {"page_clicks.py": page_clicks, "enriched_orders.py": enriched_orders}


def await_topics(bootstrap_servers: str) -> None:
    """Wait until the shop, which starts at the same time, has created the topics; applications need them."""
    client = Client({"bootstrap.servers": bootstrap_servers})
    wanted, deadline = {topic.name for topic in TOPICS}, time.monotonic() + PATIENCE_S
    while not wanted <= set(client.refresh(None).topics) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    client.close()
