"""SQL servers without HTTP on a real broker, for tests and programs whose queries run on Spark."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from moldau.admin import topics
from moldau.client import Client
from moldau.sql.lowering import application_id
from moldau.sql.plan_json import encoded
from moldau.sql.server.broker_topics import BrokerTopics
from moldau.sql.server.command_topic import CommandTopic, topic_name
from moldau.sql.server.service import Request, Service
from moldau.sql.server.states import WorkerStates
from moldau.testing import eventually

EARLIEST = {"auto.offset.reset": "earliest"}
PATIENCE_S = 240


def forget_service(client: Client, service_id: str) -> None:
    """Delete the command topic of a service, so that no worker runs its queries."""
    name = topic_name(service_id)
    if name in client.refresh([name]).topics:
        topics.delete(client, [name])


class Server:
    """A server: statements, pull queries, and what it says of its queries."""

    def __init__(self, client: Client, service_id: str, stack: ExitStack, **settings: Any) -> None:
        given = {**EARLIEST, "ksql.runtime": "spark", "ksql.service.id": service_id, **settings}
        own = stack.enter_context(client.sibling())
        states = WorkerStates(stack.enter_context(client.sibling()))
        stack.callback(states.close)
        made: list[CommandTopic] = []

        def commands(service: Service) -> CommandTopic:
            made.append(CommandTopic(own, service_id, 1, service.apply))
            return made[0]

        cluster = BrokerTopics(stack.enter_context(client.sibling()))
        self.service = Service(cluster, None, given, commands, states=states)
        made[0].start()
        stack.callback(made[0].close)
        stack.callback(self.service.close)

    def do(self, *statements: str, **properties: Any) -> list[dict[str, Any]]:
        return self.service.execute(Request(" ".join(statements), properties))

    def query_id(self, statement: str, **properties: Any) -> str:
        return self.do(statement, **properties)[0]["commandStatus"]["queryId"]

    def pulled(self, text: str) -> list[list[Any]]:
        results = self.service.query(Request(text))
        found = results.poll()
        while not results.done:
            found += results.poll()
        results.close()
        return sorted(row.columns for row in found)

    def await_rows(self, text: str, *rows: list[Any]) -> None:
        try:
            eventually(lambda: self.pulled(text) == list(rows), PATIENCE_S, text)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.pulled(text)}, and queries are {self.states()}") from None

    def states(self) -> dict[str, str]:
        return {row["id"]: row["state"] for row in self.do("SHOW QUERIES;")[0]["queries"]}

    def await_state(self, query_id: str, state: str) -> None:
        eventually(lambda: self.states().get(query_id) == state, PATIENCE_S, f"{query_id} to be {state}")

    def said(self, query_id: str) -> str | None:
        """What a worker says of a query, also of one that was terminated."""
        found = self.service.states.of(f"_confluent-ksql-{self.service.service_id}query_{query_id}")
        return None if found is None else found.state

    def catalogue(self) -> str:
        engine = self.service.engine
        return json.dumps(encoded((engine.catalogue, engine.queries, engine.paused)))

    def groups(self) -> dict[str, str]:
        """The consumer groups of queries, by their ids."""
        engine = self.service.engine
        return {name: application_id(plan, self.service.service_id) for name, plan in engine.queries.items()}
