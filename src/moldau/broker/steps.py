"""Handlers that wait in several steps: coroutines that await promises, run without an event loop.

`await promise` goes on at once if the promise has its answer, which is the rule on a single node; otherwise the
coroutine goes on within the call that resolves the promise. So a handler reads from top to bottom although commits
may take their time, and the simulator sees every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from math import inf
from typing import TYPE_CHECKING, Any

from moldau.broker.wait import NO_ANSWER, Wait
from moldau.machines.effects import Promise, error_promise
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.node import Node

Steps = Coroutine[Promise, None, Any]


class Task:
    """A coroutine under way. Its `result` is resolved with what it returns."""

    __slots__ = ("awaited", "node", "result", "steps")

    def __init__(self, node: Node, steps: Steps) -> None:
        self.node = node
        self.steps = steps
        self.result = Promise(self.refuse)
        self.awaited: Promise | None = None
        self.advance()

    def advance(self) -> None:
        """Run to the next promise that has no answer yet, or to the end."""
        try:
            self.awaited = self.steps.send(None)
        except StopIteration as end:
            self.awaited = None
            self.result.resolve(NO_ANSWER if end.value is None else end.value)
            self.node.signal(self.result)
        else:
            self.awaited.then = self.advance

    def attempt(self, expired: bool) -> Any:
        """Return the answer if there is one; at the end of its time the coroutine is told that it waited too long."""
        return self.refuse(Error.REQUEST_TIMED_OUT) if expired else self.result.answer

    def refuse(self, error: Error) -> Any:
        """Refuse whatever the coroutine awaits, and return the answer that it gives then."""
        while (awaited := self.awaited) is not None:
            awaited.resolve(awaited.refuse(error))
        return self.result.answer


def start(node: Node, steps: Steps) -> Promise:
    """Run a coroutine; the promise is resolved with what it returns."""
    return Task(node, steps).result


def follow(node: Node, steps: Steps) -> Any:
    """Answer a request by a coroutine: return its response, or a Wait for it."""
    task = Task(node, steps)
    answer = task.result.answer
    if answer is not None:
        return None if answer is NO_ANSWER else answer
    return Wait(inf, task.attempt, (task.result,))


class Turns:
    """A lock whose holders take turns in the order in which they came: `async with turns`."""

    __slots__ = ("busy", "queue")

    def __init__(self) -> None:
        self.busy = False
        self.queue: deque[Promise] = deque()

    async def __aenter__(self) -> None:
        if self.busy:
            turn = error_promise()
            self.queue.append(turn)
            await turn
        self.busy = True

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:  # the node is gone, and the coroutine is collected
            return
        if self.queue:
            self.queue.popleft().resolve(Error.NONE)
        else:
            self.busy = False
