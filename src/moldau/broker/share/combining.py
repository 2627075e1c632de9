"""Questions to share coordinators on other brokers, many partitions in one request.

Kafka answers the requests of a connection one after another, each when its records are replicated: a group of hundreds
of partitions that asked for each of them alone would wait longer than its clients do. So there is one request under way
to a coordinator for a group; what is asked meanwhile goes out together when it is answered. The order stays: whoever
reads the state of a partition must see what was written before.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.broker.outbox import Lost
from moldau.broker.steps import start
from moldau.machines.effects import Promise
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused

if TYPE_CHECKING:
    from moldau.broker.node import Node

AT_ONCE = 500  # partitions in a request


class Home(NamedTuple):
    """The broker of a coordinator, and a group."""

    leader: int
    group: str


class Question(NamedTuple):
    """One partition, and the classes of a request about it; the answer is its row of the response, or `Lost`."""

    classes: tuple[type[Any], type[Any]]
    topic_id: bytes
    part: Any
    answer: Promise


class Combined:
    """All questions that wait. A home has a queue while a request is under way to it."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.queues: dict[Home, deque[Question]] = {}

    async def ask(self, home: Home, classes: tuple[type[Any], type[Any]], topic_id: bytes, part: Any) -> Any:
        """Return a coordinator's row about a partition; raises Refused if it does not answer.

        `classes` are those of the request and of its topics.
        """
        question = Question(classes, topic_id, part, Promise(lambda error: Lost(error.message)))
        if home in self.queues:
            self.queues[home].append(question)
        else:
            self.queues[home] = deque([question])
            start(self.node, self.work_off(home))
        row = await question.answer
        if isinstance(row, Lost):
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_NOT_AVAILABLE.message)
        return row

    async def work_off(self, home: Home) -> None:
        queue = self.queues[home]
        while queue:
            asked = take(queue)
            response = await self.send(home, asked)
            rows = {} if isinstance(response, Lost) else rows_of(response)
            for place, question in asked.items():
                question.answer.resolve(rows.get(place, Lost("no answer")))
        del self.queues[home]

    async def send(self, home: Home, asked: dict[tuple[bytes, int], Question]) -> Any:
        address = self.node.replication.address_of(home.leader)
        if address is None:
            return Lost("its address is unknown")
        request, topic = next(iter(asked.values())).classes
        topics: dict[bytes, list[Any]] = {}
        for question in asked.values():
            topics.setdefault(question.topic_id, []).append(question.part)
        return await self.node.call(address, request(home.group, [topic(*item) for item in topics.items()]))


def take(queue: deque[Question]) -> dict[tuple[bytes, int], Question]:
    """Take the first questions that fit into one request: of one API, and about each partition once."""
    taken: dict[tuple[bytes, int], Question] = {}
    classes = queue[0].classes
    while queue and len(taken) < AT_ONCE and queue[0].classes == classes:
        place = queue[0].topic_id, queue[0].part.partition
        if place in taken:
            break
        taken[place] = queue.popleft()
    return taken


def rows_of(response: Any) -> dict[tuple[bytes, int], Any]:
    return {(bytes(topic.topic_id), row.partition): row for topic in response.results for row in topic.partitions}
