"""The cluster behind the proxy: a client that is asked about it through `moldau.admin`, and threads to wait in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from moldau.client import Client, ClientError, Error
from moldau.client import messages as m
from moldau.rest.errors import of_client, of_librdkafka
from moldau.settings import ServiceSettings

T = TypeVar("T")
PREFIXES = ("client.", "producer.", "consumer.", "admin.", "schema.registry.")
OWN = {"topic.metadata.propagation.max.ms": "1000", "client.id": "moldau-rest"}


def librdkafka(settings: ServiceSettings, *prefixes: str) -> dict[str, Any]:
    """Return settings of a client of librdkafka: those for all clients, then its own."""
    given = {name: text for prefix in ("client.", *prefixes) for name, text in settings.under(prefix).items()}
    # Without `log.connection.close` each idle connection that a broker closes is a line of log.
    quiet = {"log.connection.close": "false", "logger": logging.getLogger("moldau.rest.librdkafka")}
    own = {"client.id": "moldau-rest", "socket.nagle.disable": "true", **quiet}
    given.pop("sasl.scram.tokenauth", None)  # librdkafka cannot say it: `moldau.delegation.token.implicit`
    return {**own, **given, "bootstrap.servers": settings["bootstrap.servers"]}


class Kafka:
    """The cluster as endpoints see it. Methods block: call them from a function that `run` has put into a thread."""

    def __init__(self, settings: ServiceSettings) -> None:
        timeout = {"default.api.timeout.ms": str(settings["client.timeout.ms"])}
        given = {**OWN, **timeout, **settings.under("client."), **settings.under("admin.")}
        self.client = Client({**given, "bootstrap.servers": settings["bootstrap.servers"]})
        self.timeout_s = settings.seconds("client.timeout.ms")
        self._threads = ThreadPoolExecutor(settings["admin.threads"], "rest")
        self._cluster_id = ""

    def close(self) -> None:
        self.client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call something that blocks, in a thread; errors of Kafka become refusals."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call_kafka, function, *arguments)

    @property
    def cluster_id(self) -> str:
        self._cluster_id = self._cluster_id or self.client.refresh().id or ""
        return self._cluster_id

    def topics(self, names: Iterable[str] | None, operations: bool = False) -> list[Any]:
        """Return topics as Metadata describes them, all if no names are given; ClientError for an unknown one."""
        wanted = None if names is None else [m.MetadataRequest_MetadataRequestTopic(name=name) for name in names]
        request = m.MetadataRequest(wanted, False, include_topic_authorized_operations=operations)
        found = self.client.send(request).topics
        for topic in found:
            if topic.error_code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE) and names is not None:
                error = Error(topic.error_code)
                raise ClientError(error, error.message)
        return sorted((topic for topic in found if not topic.error_code), key=lambda topic: topic.name)


def call_kafka(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function; errors of Kafka become refusals."""
    try:
        return function(*arguments)
    except ClientError as error:
        raise of_client(error) from None
    except KafkaException as error:
        raise of_librdkafka(error.args[0]) from None
