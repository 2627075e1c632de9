"""The e-mailer: an order that was paid, and the customer who is to be told. What it would send is in a topic."""

from __future__ import annotations

from typing import Any

from orders_topics import CUSTOMERS, EMAILS, PAYMENTS, TYPES, new_orders, service

from moldau.streams import JoinWindows


def paid(order: dict[str, Any], payment: dict[str, Any]) -> dict[str, Any]:
    return {**order, "paid": payment["amount"]}


def email(order: dict[str, Any], customer: dict[str, Any]) -> dict[str, Any]:
    text = f"Dear {customer['name']}, we have received {order['paid']} for {order['quantity']} {order['product']}."
    return {"order": order["id"], "to": customer["email"], "level": customer["level"], "text": text}


builder = service("emails")
payments = builder.stream(PAYMENTS, **TYPES)
customers = builder.table(CUSTOMERS, **TYPES)
(
    new_orders(builder)
    .join(payments, paid, window=JoinWindows.of("10 minutes"), **TYPES)
    .select_key(lambda id, order: order["customer"])
    .join(customers, email, **TYPES)
    .select_key(lambda customer, said: said["order"])
    .to(EMAILS, **TYPES)
)
