"""The orders service over HTTP: orders and payments are posted, and read back from a view of the topic `orders`.

| | |
|---|---|
| POST /v1/orders | `{"id", "customer", "product", "quantity", "price"}`: 201, once it is in the topic |
| GET /v1/orders/ID | the order; waits until it is there |
| GET /v1/orders/ID/validated | the order when it has been decided on; waits for that |
| POST /v1/payments | `{"order", "amount"}` |
| GET /v1/search?q=WORDS | validated orders, from the search index |

`timeout_ms` says how long a GET waits; 504 if that was not enough. Reads see what was written before: a view that
does not know an order yet waits for it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from orders_topics import AS_STREAMS_DO, CREATED, FAILED, ORDERS, PAYMENTS, TYPES, VALIDATED
from search import Index
from starlette.requests import Request
from starlette.responses import Response

from moldau.http import HttpError, Route, Routes, Threaded, json_response, read_body, read_json
from moldau.streams import StreamsBuilder
from moldau.views import Stale

MEDIA = "application/json"
FIELDS: dict[str, type] = {"id": str, "customer": str, "product": str, "quantity": int, "price": int}
MOST_WAIT_MS = 25_000

builder = StreamsBuilder("orders-service", {"topology.optimization": "all"})  # the topic is the table's changelog
builder.table(ORDERS, store="orders", **TYPES)


class OrdersService:
    def __init__(self, bootstrap_servers: str, listen: str, index: Index) -> None:
        settings = {"bootstrap.servers": bootstrap_servers}
        self.producer = Producer({**settings, **AS_STREAMS_DO, "enable.idempotence": True, "linger.ms": 0})
        self.stores = builder.stores(settings)
        self.orders: Any = self.stores.store("orders")
        self.index = index
        self.server = Threaded(
            Routes(
                (
                    Route("POST", "/v1/orders", self.post_order),
                    Route("GET", "/v1/orders/{id}", self.get_order),
                    Route("GET", "/v1/orders/{id}/validated", self.get_decided),
                    Route("POST", "/v1/payments", self.post_payment),
                    Route("GET", "/v1/search", self.search),
                )
            ),
            listen,
        )

    @property
    def url(self) -> str:
        return self.server.url

    def close(self) -> None:
        self.server.close()
        self.stores.close()
        self.producer.flush(30)

    async def post_order(self, request: Request) -> Response:
        order = await document(request, FIELDS)
        await asyncio.to_thread(self.write, ORDERS, order["id"], {**order, "state": CREATED})
        return json_response(order, MEDIA, 201, {"Location": f"/v1/orders/{order['id']}"})

    async def post_payment(self, request: Request) -> Response:
        payment = await document(request, {"order": str, "amount": int})
        await asyncio.to_thread(self.write, PAYMENTS, payment["order"], payment)
        return json_response(payment, MEDIA, 201)

    async def get_order(self, request: Request) -> Response:
        return await self.wait_for(request, lambda found: True)

    async def get_decided(self, request: Request) -> Response:
        return await self.wait_for(request, lambda found: found.value["state"] in (VALIDATED, FAILED))

    async def wait_for(self, request: Request, until: Callable[[Any], bool]) -> Response:
        text = request.query_params.get("timeout_ms", "5000")
        if not text.isdecimal():
            raise HttpError(422, "timeout_ms must be a whole number.")
        timeout = min(int(text), MOST_WAIT_MS) / 1000
        try:
            found = await asyncio.to_thread(self.orders.wait_for, request.path_params["id"], timeout, until)
        except Stale as error:
            raise HttpError(504, f"{error}.") from None
        return json_response(found.value, MEDIA)

    async def search(self, request: Request) -> Response:
        return json_response(await asyncio.to_thread(self.index.search, request.query_params.get("q", "")), MEDIA)

    def write(self, topic: str, key: str, value: Any) -> None:
        """Until the brokers have it."""
        said: list[KafkaError | None] = []
        done = threading.Event()

        def delivered(error: KafkaError | None, message: Message) -> None:
            said.append(error)
            done.set()

        self.producer.produce(topic, json.dumps(value).encode(), key.encode(), on_delivery=delivered)
        while not done.is_set():
            self.producer.poll(0.1)
        if said[0] is not None:
            raise HttpError(503, f"The order was not written: {said[0].str()}.")


async def document(request: Request, fields: dict[str, type]) -> dict[str, Any]:
    """The fields of a document, each of its type."""
    try:
        found = read_json(await read_body(request))
    except ValueError as error:
        raise HttpError(400, str(error)) from None
    if not isinstance(found, dict) or any(not isinstance(found.get(name), kind) for name, kind in fields.items()):
        raise HttpError(422, f"The document must have {', '.join(fields)}.")
    return {name: found[name] for name in fields}
