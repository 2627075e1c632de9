"""The topics of the demonstration as rows, with the schemas of their values. Keys are text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

PARTITIONS = 3
KEPT = {"retention.bytes": str(16 << 20), "segment.bytes": str(4 << 20)}  # of a partition: it may run for weeks
LATEST = {"cleanup.policy": "compact"}


class Topic(NamedTuple):
    """A topic, what its values are, and its settings."""

    name: str
    schema: str
    settings: Mapping[str, str]

    @property
    def subject(self) -> str:
        return f"{self.name}-value"


def record(name: str, doc: str, /, **fields: str | dict[str, str]) -> str:
    """An Avro schema; every field has a type by its name."""
    rows = [{"name": field, "type": kind} for field, kind in fields.items()]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "doc": doc, "fields": rows})


TIME: dict[str, str] = {"type": "long", "logicalType": "timestamp-millis"}

CUSTOMERS = Topic(
    "shop.customers",
    record("Customer", "The latest of each customer.", id="string", name="string", city="string", level="string"),
    LATEST,
)
CLICKS = Topic(
    "shop.clicks",
    record("Click", "A page that somebody looked at.", customer="string", page="string", at=TIME),
    KEPT,
)
ORDERS = Topic(
    "shop.orders",
    record(
        "Order", "Somebody bought something.",
        id="string", customer="string", product="string", quantity="int", amount="double", at=TIME,
    ),
    KEPT,
)  # fmt: skip
PAYMENTS = Topic(
    "shop.payments",
    record("Payment", "What became of an order.", order="string", method="string", amount="double", state="string"),
    KEPT,
)
CLICKS_PER_PAGE = Topic(
    "shop.clicks-per-page",
    record("PageClicks", "Looks at a page within ten seconds.", page="string", since=TIME, clicks="long"),
    KEPT,
)
ORDERS_ENRICHED = Topic(
    "shop.orders-enriched",
    record(
        "EnrichedOrder", "An order with what is known of its customer.",
        id="string", customer="string", name="string", city="string", level="string", product="string", amount="double",
    ),
    KEPT,
)  # fmt: skip
TOPICS = (CUSTOMERS, CLICKS, ORDERS, PAYMENTS, CLICKS_PER_PAGE, ORDERS_ENRICHED)
