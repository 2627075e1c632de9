"""What happens in the shop: by a seed, in order, and fit for its schemas."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.demo.shop import CUSTOMER_COUNT, Event, Shop, pace
from moldau.demo.topics import CLICKS, CUSTOMERS, ORDERS, PAYMENTS, TOPICS
from moldau.serdes.context import Context
from moldau.serdes.formats import serde
from moldau.serdes.registry import Registry

STEP_MS = 50


def day(shop: Shop, events: int) -> list[Event]:
    return [shop.event(STEP_MS * number) for number in range(events)]


@settings(deadline=None, max_examples=20)
@given(st.integers(), st.integers(0, 10**6))
def test_a_seed_says_what_happens(seed: int, orders: int) -> None:
    assert day(Shop(seed, orders), 50) == day(Shop(seed, orders), 50)
    assert Shop(seed).opening() == Shop(seed, orders).opening()


def test_another_seed_says_otherwise_and_so_does_a_restart() -> None:
    assert day(Shop(1), 50) != day(Shop(2), 50)
    assert [e.value["id"] for e in day(Shop(1, 700), 100) if e.topic == ORDERS.name][:2] == ["o000701", "o000702"]


def test_every_payment_is_of_an_order_before_it_and_of_its_amount() -> None:
    open_orders: dict[str, float] = {}
    for event in day(Shop(1), 3000):
        if event.topic == ORDERS.name:
            open_orders[event.value["id"]] = event.value["amount"]
        elif event.topic == PAYMENTS.name:
            assert open_orders.pop(event.value["order"]) == event.value["amount"]
    assert len(open_orders) < 100  # those of the last eight seconds


def test_there_is_something_of_everything_and_most_of_it_are_clicks() -> None:
    counts = Counter(event.topic for event in day(Shop(1), 2000))
    assert set(counts) == {CUSTOMERS.name, CLICKS.name, ORDERS.name, PAYMENTS.name}
    assert counts[CLICKS.name] > counts[ORDERS.name] >= counts[PAYMENTS.name] > counts[CUSTOMERS.name] > 0


def test_values_fit_the_schemas_of_their_topics() -> None:
    registry = Registry.connect({"schema.registry.url": "mock://shop"})
    serdes = {topic.name: serde("avro", registry, topic.schema) for topic in TOPICS}
    shop = Shop(1)
    opening = shop.opening()
    assert len({event.key for event in opening}) == CUSTOMER_COUNT
    for topic, _, value in [*opening, *day(shop, 500)]:
        data = serdes[topic].to_bytes(value, Context(topic))
        assert set(serdes[topic].from_bytes(data, Context(topic))) == set(value)


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 10_000), st.floats(0, 10**7))
def test_the_pace_is_a_wave_around_the_rate(rate: float, seconds: float) -> None:
    assert 0.3 * rate < pace(rate, seconds) < 1.7 * rate
