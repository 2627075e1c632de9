"""Processors of users as operators: a class or a function that makes one, checked when it is added."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from moldau.operators.context import Operator, TopologyError
from moldau.operators.stores.spec import StoreSpec
from moldau.operators.user import FixedKey, UserOperator

from . import functions


def user_operator(processor: Any, node: str, fixed_key: bool = False) -> tuple[Callable[[], Operator], list[StoreSpec]]:
    """Return the factory of operators, and the stores that the processor brings along."""
    if not callable(processor):
        raise TopologyError(
            f"{node} needs a processor's class, or a function that makes one: an instance of its own for each task. "
            f"{type(processor).__name__} is an instance: give its class, or lambda: {type(processor).__name__}(...)"
        )
    functions.of_nothing(processor, node)
    wrapper = FixedKey if fixed_key else UserOperator

    def made() -> Operator:
        return wrapper(processor(), node)

    return made, brought_by(processor)


def brought_by(processor: Any) -> list[StoreSpec]:
    """Return `stores` of a class or a function: a list, or a function that returns one."""
    stores: Any = getattr(processor, "stores", None)
    if stores is None:
        return []
    return list(cast(Any, stores() if callable(stores) else stores))
