"""The events of the shop, made by dice with a seed, so that each run is the same. No clock, no I/O."""

from __future__ import annotations

import heapq
import math
from random import Random
from typing import Any, NamedTuple

from moldau.demo.topics import CLICKS, CUSTOMERS, ORDERS, PAYMENTS

FIRST = ("Ada", "Božena", "Carlos", "Dana", "Emil", "Franz", "Grete", "Hana", "Ivo", "Jana", "Karel", "Lucie")
LAST = ("Novák", "Svoboda", "Dvořák", "Kafka", "Smetana", "Čapek", "Marlowe", "Okafor", "Tanaka", "Silva")
CITIES = ("Praha", "Brno", "Plzeň", "Wien", "Berlin", "Lisboa", "Lagos", "Osaka")
LEVELS = ("Basic", "Silver", "Gold", "Platinum")
PRODUCTS = {"violin": 349.0, "score": 14.5, "metronome": 39.9, "strings": 24.0, "bow": 119.0, "piano stool": 89.5}
PAGES = ("/", "/search", "/basket", *(f"/{name.replace(' ', '-')}" for name in PRODUCTS))
METHODS = ("card", "transfer", "wallet")
CUSTOMER_COUNT = 100
ORDER_CHANCE, MOVE_CHANCE, DECLINED_CHANCE = 0.2, 0.01, 0.06
PAID_AFTER_MS = (500, 8_000)
WAVE_S, WAVE = 60.0, 0.6


class Event(NamedTuple):
    """An event, to be written as a record."""

    topic: str
    key: str
    value: dict[str, Any]


class Due(NamedTuple):
    """A payment that is still to come; sorted by time."""

    at_ms: int
    order: str
    amount: float


def pace(rate: float, seconds: float) -> float:
    """Return the events a second at a time; the rate rises and falls each minute, so that charts show something."""
    return rate * (1 + WAVE * math.sin(2 * math.pi * seconds / WAVE_S))


class Shop:
    """The shop. `orders` is the number of orders so far: after a restart the numbering continues."""

    def __init__(self, seed: int, orders: int = 0) -> None:
        self.dice = Random(f"{seed}/{orders}")
        self.orders = orders
        self.due: list[Due] = []
        people = Random(seed)  # the same people after a restart
        self.customers = [self._customer(f"c{number:03}", people) for number in range(CUSTOMER_COUNT)]

    def _customer(self, name: str, dice: Random) -> dict[str, Any]:
        full = f"{dice.choice(FIRST)} {dice.choice(LAST)}"
        return {"id": name, "name": full, "city": dice.choice(CITIES), "level": dice.choice(LEVELS)}

    def opening(self) -> list[Event]:
        """Return an event for each customer."""
        return [Event(CUSTOMERS.name, one["id"], dict(one)) for one in self.customers]

    def event(self, now_ms: int) -> Event:
        """Return the next event; a payment that is due comes first."""
        if self.due and self.due[0].at_ms <= now_ms:
            return self._payment(heapq.heappop(self.due))
        who, chance = self.dice.choice(self.customers), self.dice.random()
        if chance < MOVE_CHANCE:
            who["level"] = self.dice.choice(LEVELS)
            return Event(CUSTOMERS.name, who["id"], dict(who))
        if chance < MOVE_CHANCE + ORDER_CHANCE:
            return self._order(who["id"], now_ms)
        page = self.dice.choices(PAGES, range(len(PAGES), 0, -1))[0]
        return Event(CLICKS.name, who["id"], {"customer": who["id"], "page": page, "at": now_ms})

    def _order(self, who: str, now_ms: int) -> Event:
        self.orders += 1
        number, product = f"o{self.orders:06}", self.dice.choice(list(PRODUCTS))
        quantity = self.dice.randint(1, 3)
        amount = round(PRODUCTS[product] * quantity, 2)
        heapq.heappush(self.due, Due(now_ms + self.dice.randint(*PAID_AFTER_MS), number, amount))
        value = {"id": number, "customer": who, "product": product, "quantity": quantity, "amount": amount}
        return Event(ORDERS.name, who, {**value, "at": now_ms})

    def _payment(self, due: Due) -> Event:
        state = "declined" if self.dice.random() < DECLINED_CHANCE else "accepted"
        value = {"order": due.order, "method": self.dice.choice(METHODS), "amount": due.amount, "state": state}
        return Event(PAYMENTS.name, due.order, value)
