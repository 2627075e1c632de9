"""Functions of users, checked when the topology is built and brought into one shape each.

How many arguments a function takes decides what it is given; one that takes another number is refused by a sentence
that names the node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from moldau.operators.context import TopologyError

Function = Callable[..., Any]


def takes(function: Function, count: int) -> bool | None:
    """Whether the function can be called with so many arguments; None if it does not say (some of C's do not)."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def checked(function: Any, node: str, shapes: dict[int, str]) -> int:
    """With how many arguments the function is called: the first number of `shapes` that it takes."""
    wanted = " or ".join(f"({arguments})" for arguments in shapes.values())
    if not callable(function):
        raise TopologyError(f"{node} needs a function of {wanted}, not {function!r}")
    for count in shapes:
        if takes(function, count) is not False:
            return count
    name = getattr(function, "__name__", type(function).__name__)
    raise TopologyError(f"{node} needs a function of {wanted}: {name}{inspect.signature(function)} is another")


def of_key_value(function: Any, node: str) -> Function:
    if isinstance(function, str):
        return expression(function, node)
    checked(function, node, {2: "key, value"})
    return function


def of_value(function: Any, node: str) -> Function:
    """One that takes the value alone is preferred, as for `map_values(str.upper)`."""
    if isinstance(function, str):
        return expression(function, node)
    if checked(function, node, {1: "value", 2: "key, value"}) == 2:
        return function

    def of_both(key: Any, value: Any) -> Any:
        return function(value)

    setattr(of_both, "of_value", function)  # noqa: B010 (functions have no such attribute, says pyright)
    return of_both


def expression(text: str, node: str) -> Function:
    from moldau.operators.expressions import of_key_and_value  # brings a library along

    return of_key_and_value(text, node)


def of_nothing(function: Any, node: str) -> Function:
    checked(function, node, {0: ""})
    return function


def joiner(function: Any, node: str) -> Function:
    """(key, left, right)"""
    if checked(function, node, {2: "left, right", 3: "key, left, right"}) == 3:
        return function
    return lambda key, left, right: function(left, right)


def aggregator(function: Any, node: str) -> Function:
    """(key, value, aggregate)"""
    if checked(function, node, {3: "key, value, aggregate", 2: "value, aggregate"}) == 3:
        return function
    return lambda key, value, aggregate: function(value, aggregate)


def topic_of(function: Any, node: str) -> Function:
    """(key, value, record)"""
    if checked(function, node, {3: "key, value, record", 2: "key, value"}) == 3:
        return function
    return lambda key, value, record: function(key, value)


def merger(function: Any, node: str) -> Function:
    """(key, one, other)"""
    if checked(function, node, {3: "key, one aggregate, the other", 2: "one aggregate, the other"}) == 3:
        return function
    return lambda key, one, other: function(one, other)


def reducer(function: Any, node: str) -> Function:
    checked(function, node, {2: "aggregate, value"})
    return function
