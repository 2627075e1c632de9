"""Functions of users: checked when the topology is built, and adapted to one signature for each purpose.

The number of arguments that a function takes decides what it is given. A function that takes another number is refused
with a sentence that names the node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from moldau.operators.context import TopologyError

Function = Callable[..., Any]


def takes(function: Function, count: int) -> bool | None:
    """Return whether the function can be called with so many arguments; None if that is unknown, as for some in C."""
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
    """Return with how many arguments the function is called: the first number of `shapes` that it takes."""
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
    """Prefer to call the function with the value alone, as in `map_values(str.upper)`."""
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


def topic_of(function: Any, node: str) -> Function:
    if checked(function, node, {3: "key, value, record", 2: "key, value"}) == 3:
        return function
    return lambda key, value, record: function(key, value)


def with_key(function: Any, node: str, shapes: dict[int, str]) -> Function:
    """Return a function of a key and two other arguments; the given one may leave out the key."""
    if checked(function, node, shapes) == 3:
        return function
    return lambda key, one, other: function(one, other)


def joiner(function: Any, node: str) -> Function:
    return with_key(function, node, {2: "left, right", 3: "key, left, right"})


def aggregator(function: Any, node: str) -> Function:
    return with_key(function, node, {3: "key, value, aggregate", 2: "value, aggregate"})


def merger(function: Any, node: str) -> Function:
    return with_key(function, node, {3: "key, one aggregate, the other", 2: "one aggregate, the other"})


def reducer(function: Any, node: str) -> Function:
    checked(function, node, {2: "aggregate, value"})
    return function
