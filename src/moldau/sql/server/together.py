"""What comes while a thread is at work waits, and is worked on together: one hop to the thread for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
MOST = 64  # that are worked on at once, so that the first of them does not wait long for the last


class Together(Generic[Asked, Answer]):
    """A thread that answers what tasks of one loop ask, in the order in which they do."""

    def __init__(self, answers: Callable[[Sequence[Asked]], Sequence[Answer]], name: str, most: int = MOST) -> None:
        self._answers, self._most = answers, most
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: list[tuple[Asked, asyncio.Future[Answer]]] = []
        self._working: asyncio.Task[None] | None = None

    async def answer(self, asked: Asked) -> Answer:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((asked, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            now, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            working = loop.run_in_executor(self._thread, self._answers, [asked for asked, _ in now])
            await asyncio.wait([working])
            error = working.exception()
            answers = working.result() if error is None else ()
            for at, (_, future) in enumerate(now):
                if future.done():
                    continue  # who asked has left
                if error is None:
                    future.set_result(answers[at])
                else:
                    future.set_exception(error)
