"""The fraud service: a customer may order for so much within a session, and no more."""

from __future__ import annotations

from typing import Any

from orders_topics import TYPES, VALIDATIONS, new_orders, result, service

from moldau.streams import SessionWindows

LIMIT = 2_000
Sum = dict[str, Any]  # the order that was added last, and what all of the session are worth


def add(customer: str, order: dict[str, Any], sum: Sum) -> Sum:
    return {"order": order, "total": sum["total"] + order["quantity"] * order["price"]}


def merge(customer: str, one: Sum, other: Sum) -> Sum:
    return {"order": other["order"] or one["order"], "total": one["total"] + other["total"]}


builder = service("fraud")
(
    new_orders(builder)
    .group_by(lambda id, order: order["customer"], **TYPES)
    .windowed_by(SessionWindows.of("1 hour", grace="1 minute"))
    .aggregate(lambda: {"order": None, "total": 0}, add, merge, store="customer-totals", **TYPES)
    .to_stream()
    .filter(lambda session, sum: sum is not None)  # a session that became part of another
    .map(lambda session, sum: result(sum["order"], "fraud", sum["total"] <= LIMIT))
    .to(VALIDATIONS, **TYPES)
)
