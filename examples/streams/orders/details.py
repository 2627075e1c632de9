"""The order details service: is the order well formed?"""

from __future__ import annotations

from typing import Any

from orders_topics import TYPES, VALIDATIONS, new_orders, result, service


def is_well_formed(order: dict[str, Any]) -> bool:
    return bool(order["customer"] and order["product"] and order["quantity"] > 0 and order["price"] >= 0)


builder = service("order-details")
(new_orders(builder).map(lambda id, order: result(order, "details", is_well_formed(order))).to(VALIDATIONS, **TYPES))
