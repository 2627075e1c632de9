"""The two streams applications of the demo, as anybody would write them: counts in windows, and a join."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau.client import Client
from moldau.demo.topics import CLICKS, CLICKS_PER_PAGE, CUSTOMERS, ORDERS, ORDERS_ENRICHED, TOPICS, Topic
from moldau.streams import Avro, KStream, StreamsBuilder, String, TimeWindows, Windowed

STOP_S = 5.0  # an interrupted batch is repeated
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


def run(bootstrap_servers: str, registry_url: str, state_dir: str, ready: Callable[[], None]) -> None:
    """Run both in one Spark session until SIGTERM or SIGINT."""
    from moldau.plan.conveyor.start import run as run_applications
    from moldau.spark import session
    from moldau.spark.runner import Policy
    from moldau.streams.application import application

    settings = {
        "bootstrap.servers": bootstrap_servers,
        "schema.registry.url": registry_url,
        "state.dir": state_dir,
        "commit.interval.ms": 1000,
    }
    made = [application(builder.build(), settings) for builder in (page_clicks(), enriched_orders())]
    spark = session("moldau-demo", "local[2]")
    spark.sparkContext.setLogLevel("ERROR")
    await_topics(bootstrap_servers)
    ready()
    run_applications(made, spark, policy=Policy(stop_s=STOP_S), progress=False)


def await_topics(bootstrap_servers: str) -> None:
    """Wait until the shop, which starts at the same time, has created the topics; applications need them."""
    client = Client({"bootstrap.servers": bootstrap_servers})
    wanted, deadline = {topic.name for topic in TOPICS}, time.monotonic() + PATIENCE_S
    while not wanted <= set(client.refresh(None).topics) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    client.close()
