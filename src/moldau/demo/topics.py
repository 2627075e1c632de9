"""The topics of the demo, with the schemas of their values. Keys are text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

PARTITIONS = 3
KEPT: Mapping[str, str] = {
    "retention.bytes": str(16 << 20),
    "segment.bytes": str(4 << 20),
}  # a limit for each partition: the demo may run for weeks
LATEST = {"cleanup.policy": "compact"}


class Topic(NamedTuple):
    """A topic, the Avro schema of its values, and its settings."""

    name: str
    schema: str
    settings: Mapping[str, str] = KEPT

    @property
    def subject(self) -> str:
        return f"{self.name}-value"


def record(name: str, doc: str, fields: str) -> str:
    """Write an Avro schema; fields are `name:type`, and strings without a type."""
    types = {field: kind or "string" for field, _, kind in (text.partition(":") for text in fields.split())}
    rows = [{"name": field, "type": TIME if kind == "time" else kind} for field, kind in types.items()]
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "doc": doc, "fields": rows})


TIME = {"type": "long", "logicalType": "timestamp-millis"}

CUSTOMERS = Topic("shop.customers", record("Customer", "The latest of each customer.", "id name city level"), LATEST)
CLICKS = Topic("shop.clicks", record("Click", "A page that somebody looked at.", "customer page at:time"))
ORDERS = Topic(
    "shop.orders",
    record("Order", "Somebody bought something.", "id customer product quantity:int amount:double at:time"),
)
PAYMENTS = Topic("shop.payments", record("Payment", "What became of an order.", "order method amount:double state"))
CLICKS_PER_PAGE = Topic(
    "shop.clicks-per-page", record("PageClicks", "Looks at a page within ten seconds.", "page since:time clicks:long")
)
ORDERS_ENRICHED = Topic(
    "shop.orders-enriched",
    record(
        "EnrichedOrder", "An order with what is known of its customer.",
        "id customer name city level product amount:double",
    ),
)  # fmt: skip
TOPICS = (CUSTOMERS, CLICKS, ORDERS, PAYMENTS, CLICKS_PER_PAGE, ORDERS_ENRICHED)
