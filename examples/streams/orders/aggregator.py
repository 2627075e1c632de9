"""The validation aggregator: when all checks have spoken, the order is validated, or has failed."""

from __future__ import annotations

from typing import Any

from orders_topics import CHECKS, FAILED, ORDERS, TYPES, VALIDATED, VALIDATIONS, new_orders, service

from moldau.streams import JoinWindows


def add(id: str, said: dict[str, Any], results: dict[str, bool]) -> dict[str, bool]:
    return {**results, said["check"]: said["passed"]}


def decide(results: dict[str, bool], order: dict[str, Any]) -> dict[str, Any]:
    return {**order, "state": VALIDATED if all(results.values()) else FAILED}


builder = service("validation-aggregator")
decided = (
    builder.stream(VALIDATIONS, **TYPES)
    .group_by_key(**TYPES)
    .aggregate(dict, add, store="checks", **TYPES)
    .to_stream()
    .filter(lambda id, results: len(results) == len(CHECKS))
)
window = JoinWindows.of("1 hour")
decided.join(new_orders(builder), decide, window=window, **TYPES).to(ORDERS, **TYPES)
