"""What the services share: the topics through which they are wired, and how keys and values are written there."""

from __future__ import annotations

from typing import Any

from moldau.streams import Json, KStream, StreamsBuilder, String

ORDERS = "orders"  # by order; the orders service and the aggregator write it
VALIDATIONS = "order-validations"  # by order: what each check says
PAYMENTS = "payments"  # by order
CUSTOMERS = "customers"  # by customer: the latest is what counts
STOCK = "warehouse-inventory"  # by product
EMAILS = "order-emails"  # by order
TOPICS = (ORDERS, VALIDATIONS, PAYMENTS, CUSTOMERS, STOCK, EMAILS)
COMPACTED = (CUSTOMERS, STOCK)
PARTITIONS = 2

# What is joined must lie in the same partition, and streams place keys as Java's producers do.
AS_STREAMS_DO = {"partitioner": "murmur2_random"}

CREATED, VALIDATED, FAILED = "CREATED", "VALIDATED", "FAILED"
CHECKS = ("details", "fraud", "inventory")
TYPES = {"key": String(), "value": Json()}


def service(name: str, **settings: Any) -> StreamsBuilder:
    """An application of its own. Each change counts: two orders of a customer in one batch are two orders."""
    return StreamsBuilder(name, {"statestore.cache.max.bytes": 0, **settings})


def new_orders(builder: StreamsBuilder) -> KStream[str, Any]:
    return builder.stream(ORDERS, **TYPES).filter(lambda id, order: order["state"] == CREATED)


def result(order: dict[str, Any], check: str, passed: bool) -> tuple[str, dict[str, Any]]:
    """What a check says of an order, by the order's id."""
    return order["id"], {"check": check, "passed": passed}
