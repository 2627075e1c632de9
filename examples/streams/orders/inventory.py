"""The inventory service: what is in stock and not reserved yet is reserved for the order."""

from __future__ import annotations

from typing import Any

from orders_topics import STOCK, TYPES, VALIDATIONS, new_orders, result, service

from moldau.streams import Context, Long, Record, String
from moldau.streams.stores import persistent_key_value_store


class Reserve:
    """Orders of one product come one after the other, so that none is promised what another got."""

    def init(self, context: Context) -> None:
        self.context, self.reserved = context, context.store("reserved")

    def process(self, record: Record) -> None:
        order, stock = record.value["order"], record.value["stock"]
        reserved = self.reserved.get(record.key) or 0
        enough = stock - reserved >= order["quantity"]
        if enough:
            self.reserved.put(record.key, reserved + order["quantity"])
        key, said = result(order, "inventory", enough)
        self.context.forward(Record(key, said, record.timestamp))


def with_stock(order: dict[str, Any], stock: int | None) -> dict[str, Any]:
    return {"order": order, "stock": stock or 0}


builder = service("inventory")
builder.add_state_store(persistent_key_value_store("reserved", key=String(), value=Long()))
stock = builder.table(STOCK, store="stock", **TYPES)
(
    new_orders(builder)
    .select_key(lambda id, order: order["product"])
    .left_join(stock, with_stock, **TYPES)
    .process(Reserve, stores=["reserved"])
    .to(VALIDATIONS, **TYPES)
)
