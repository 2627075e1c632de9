"""The client, which sends any message to the broker in charge, with retries, back-off and a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import Any, Self, TypeVar

from moldau.client.brokers import Brokers
from moldau.client.cluster import NOBODY, Broker, Cluster, Topic
from moldau.client.config import Address, Config
from moldau.client.connection import Connection
from moldau.client.deadline import Deadline, pause_s
from moldau.client.errors import ClientError, error_of, unreachable
from moldau.client.outcomes import all_among, check, outcomes
from moldau.client.targets import (
    ANY,
    CONTROLLER,
    UNKNOWN,
    AnyBroker,
    Controller,
    Coordinator,
    Leader,
    Node,
    Target,
    passing,
)
from moldau.wire import messages
from moldau.wire.errors import Error

T = TypeVar("T")
BOOTSTRAP = frozenset({"bootstrap.servers", "metadata.broker.list", "bootstrap.controllers"})
BROKERS, CONTROLLERS = 1, 2  # kinds of endpoints in DescribeCluster
WAITS = ("max_wait_ms", "timeout_ms", "rebalance_timeout_ms")  # how long a request itself lets the broker wait


class Client:
    """A client of one cluster, for any number of threads. Settings have librdkafka's names.

    >>> with Client({"bootstrap.servers": "localhost:9092"}) as client:
    ...     client.send(messages.DescribeClusterRequest()).cluster_id
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.config = Config(settings)
        self._settings = dict(settings)
        self.brokers = Brokers(self.config)
        self._lock = threading.Lock()
        self._cluster = Cluster()
        self._learned: dict[str, float] = {}  # when the metadata of a topic last came
        self._coordinators: dict[Coordinator, Address] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Calls of other threads fail."""
        self.brokers.close()

    def sibling(self, **changed: Any) -> Client:
        """Return another client with connections of its own and the same settings, but for `changed` ones."""
        return Client({**self._settings, **changed})

    def of_controllers(self, addresses: Iterable[str]) -> Client:
        """Return a client with the same settings that asks controllers."""
        kept = {name: value for name, value in self._settings.items() if name not in BOOTSTRAP}
        return Client({**kept, "bootstrap.controllers": ",".join(addresses)})

    @property
    def endpoint_type(self) -> int:
        """Return whom this client asks, as DescribeCluster numbers it."""
        return CONTROLLERS if self.config.asks_controllers else BROKERS

    @property
    def cluster(self) -> Cluster:
        """Return what is known, without a request."""
        return self._cluster

    def refresh(self, topics: Iterable[str] | None = (), *, timeout_s: float | None = None) -> Cluster:
        """Fetch metadata of the brokers and of these topics; None means all topics."""
        names = None if topics is None else tuple(topics)
        return self.until(self.deadline(timeout_s), lambda deadline: self._ask_metadata(names, deadline))

    def topic(self, name: str, *, timeout_s: float | None = None) -> Topic:
        """Return a topic; it is fetched if it is unknown or older than `metadata.max.age.ms`."""
        return self.until(self.deadline(timeout_s), lambda deadline: self._topic(name, deadline))

    def learn(self, names: Iterable[str], deadline: Deadline) -> Cluster:
        """Fetch those of the topics that are unknown or too old; one attempt."""
        oldest = time.monotonic() - self.config.seconds("metadata.max.age.ms")
        cluster = self._cluster
        missing = [
            name
            for name in dict.fromkeys(names)
            if name not in cluster.topics or self._learned.get(name, oldest) <= oldest
        ]
        return self._ask_metadata(tuple(missing), deadline) if missing else cluster

    def send(
        self,
        message: Any,
        to: Target | int = ANY,
        *,
        timeout_s: float | None = None,
        at_most: int | None = None,
        retry: bool = True,
    ) -> Any:
        """Send a request of `moldau.wire.messages` and return the response as it came.

        The version is the newest that both sides speak and that can carry the request (`at_most` limits it). If the
        broker cannot be reached, is not in charge or not ready, the request is repeated until `timeout_s` is over, by
        default `default.api.timeout.ms`. A response is returned if any part of it succeeded, or if it refuses for good;
        `check` raises the errors in it. With `retry` false there is one attempt.
        """
        target = Node(to) if isinstance(to, int) else to
        if self.config.asks_controllers and target == ANY:
            target = CONTROLLER
        deadline = self.deadline(timeout_s, own_wait_s(message))
        try:
            return self.until(deadline, lambda left: self._attempt(message, target, left, at_most), retry)
        except ClientError as error:
            if error.answer is None:
                raise
            return error.answer

    def send_to_each(self, message: Any, *, timeout_s: float | None = None, partial: bool = False) -> dict[int, Any]:
        """Send a request to every broker and return the responses by broker.

        If one cannot be reached, all that are then in the cluster are asked again, because another broker may have
        taken over what the lost one would have listed. `partial` returns what there is when the time is up.
        """
        answers: dict[int, Any] = {}

        def attempt(deadline: Deadline) -> dict[int, Any]:
            brokers = sorted(self._ask_metadata((), deadline).brokers)
            found, lost = self.ask_each(dict.fromkeys(brokers, message), deadline)
            answers.clear()
            answers.update(found)
            if lost is not None:
                raise lost
            return answers

        try:
            return self.until(self.deadline(timeout_s), attempt)
        except ClientError as error:
            if not partial or not error.retriable or not answers:
                raise
            return answers

    def ask_each(self, requests: Mapping[int, Any], deadline: Deadline) -> tuple[dict[int, Any], ClientError | None]:
        """Send a request to each of these brokers, once; return the responses, and the error of one that gave none.

        A broker that hangs takes only its share of the time, so that the others are still asked.
        """
        answers: dict[int, Any] = {}
        lost: ClientError | None = None
        for place, (broker, message) in enumerate(requests.items()):
            share = deadline.within(deadline.left / (len(requests) - place))
            try:
                answers[broker] = self._attempt(message, Node(broker), share, None)
            except ClientError as error:
                lost = error
        return answers, lost

    def deadline(self, timeout_s: float | None = None, more_s: float = 0.0) -> Deadline:
        """Return the deadline of a call that begins now."""
        return Deadline(self.config.seconds("default.api.timeout.ms") + more_s if timeout_s is None else timeout_s)

    def until(self, deadline: Deadline, attempt: Callable[[Deadline], T], retry: bool = True) -> T:
        """Try until it succeeds, fails for good, or the time is up.

        The deadline may cut the last try short, so the error of the try before it is added as a note.
        """
        began, before = time.monotonic(), ""
        first, most = self.config["retry.backoff.ms"], self.config["retry.backoff.max.ms"]
        patience = Deadline(self.config.seconds("topic.metadata.propagation.max.ms"))
        for number in count():
            try:
                return attempt(deadline)
            except ClientError as error:
                pause = max(pause_s(number, first, most), _throttle_s(error))
                spent = not retry or number >= self.config["retries"] or deadline.left <= pause
                if self.brokers.closed or not error.retriable or spent or (error.error in UNKNOWN and patience.passed):
                    if number:
                        said = "" if before == str(error) else f"; the one before: {before}"
                        error.add_note(f"{number + 1} tries in {time.monotonic() - began:.1f} s{said}")
                    raise
                before = str(error)
                self.brokers.sleep(pause)
        raise AssertionError("unreachable")

    def locate(self, to: Target, deadline: Deadline) -> Address:
        """Return the address of a target, which is looked up if it is unknown; one attempt."""
        match to:
            case AnyBroker():
                return self.brokers.choose(broker.address for broker in self._cluster.brokers.values())
            case Controller():
                return self._broker(self._cluster.controller, to, deadline)
            case Node(id=number):
                return self._broker(number, to, deadline)
            case Leader(topic=name, partition=index):
                return self._broker(self._leader(name, index, deadline), to, deadline)
            case Coordinator():
                return self._coordinators.get(to) or self._find_coordinator(to, deadline)

    def forget(self, to: Target) -> None:
        """Forget where a target is, because it was not there or not in charge."""
        match to:
            case Coordinator():
                self._coordinators.pop(to, None)
            case Leader(topic=name):
                self._learned.pop(name, None)
            case Controller() | Node():
                self._cluster = Cluster()
                self._learned.clear()
            case AnyBroker():
                pass

    def features(self, to: Target = ANY, *, timeout_s: float | None = None) -> dict[str, int]:
        """Return the finalized feature levels of the cluster, as a broker reports them."""

        def ask(deadline: Deadline) -> dict[str, int]:
            with self.brokers.connection(self.locate(to, deadline), deadline) as connection:
                return connection.features

        return self.until(self.deadline(timeout_s), ask)

    def connection(self, to: Target, deadline: Deadline) -> Connection:
        """Return a connection that is the caller's until `client.brokers.give_back(connection)`."""
        return self.brokers.take(self.locate(to, deadline), deadline)

    def _attempt(self, message: Any, to: Target, deadline: Deadline, at_most: int | None) -> Any:
        try:
            address = self.locate(to, deadline)
            answer = self._call(address, message, deadline, at_most)
        except ClientError as error:
            if error.error in (Error.NETWORK_EXCEPTION, Error.REQUEST_TIMED_OUT):
                self.forget(to)
            raise
        if answer is not None and all_among(answer, passing(to)):
            self.forget(to)
            [(error, words, item), *_] = outcomes(answer)
            sentence = f"{to} at {address} refuses{' ' + item if item else ''}: {words or error.message}"
            raise ClientError(error, sentence, answer=answer, retriable=True)
        return answer

    def _call(self, address: Address, message: Any, deadline: Deadline, at_most: int | None = None) -> Any:
        limit = deadline.within(self.config.seconds("socket.timeout.ms") + own_wait_s(message))
        with self.brokers.connection(address, limit) as connection:
            return connection.call(message, limit, at_most=at_most)

    def _broker(self, number: int, to: Target, deadline: Deadline) -> Address:
        found: Broker | None = self._cluster.brokers.get(number)
        if found is None:
            cluster = self._ask_metadata((), deadline)
            found = cluster.brokers.get(cluster.controller if isinstance(to, Controller) else number)
        if found is None:
            error = Error.LEADER_NOT_AVAILABLE if isinstance(to, Leader) else Error.BROKER_NOT_AVAILABLE
            raise ClientError(error, f"The cluster has no broker {number} just now.", retriable=True)
        return found.address

    def _leader(self, name: str, index: int, deadline: Deadline) -> int:
        partition = self._topic(name, deadline).partitions.get(index)
        if partition is None:
            self._learned.pop(name, None)
            raise ClientError(Error.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {name} has no partition {index}.")
        if partition.leader == NOBODY:
            self._learned.pop(name, None)
            raise ClientError(Error.LEADER_NOT_AVAILABLE, f"Partition {name}-{index} has no leader just now.")
        return partition.leader

    def _topic(self, name: str, deadline: Deadline) -> Topic:
        cluster = self.learn([name], deadline)
        if name not in cluster.topics:
            error = cluster.unknown.get(name, Error.UNKNOWN_TOPIC_OR_PARTITION)
            known = error is not Error.UNKNOWN_TOPIC_OR_PARTITION
            raise ClientError(error, f"Topic {name}: {error.message}" if known else f"There is no topic {name}.")
        return cluster.topics[name]

    def _ask_metadata(self, names: tuple[str, ...] | None, deadline: Deadline) -> Cluster:
        if self.config.asks_controllers:
            return self._ask_controllers(names, deadline)
        topics = None if names is None else [messages.MetadataRequest_MetadataRequestTopic(name=name) for name in names]
        create = self.config["allow.auto.create.topics"] and names is not None
        request = messages.MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        answer = self._call(self.locate(ANY, deadline), request, deadline)
        with self._lock:
            if answer.error_code:  # KIP-1102: what we know is of no use any more
                self._cluster = Cluster()
                raise unreachable(f"The cluster asks to begin anew: {error_of(answer.error_code).message}")
            self._cluster = cluster = self._cluster.after(answer, names is None)
            now = time.monotonic()
            self._learned.update((row.name, now) for row in answer.topics)
        return cluster

    def _ask_controllers(self, names: tuple[str, ...] | None, deadline: Deadline) -> Cluster:
        """Ask a controller for all of them; the active one decides (KIP-919)."""
        if names != ():
            raise ClientError(Error.UNSUPPORTED_ENDPOINT_TYPE, "Controllers do not tell of topics: ask a broker.")
        request = messages.DescribeClusterRequest(endpoint_type=CONTROLLERS)
        answer = check(self._call(self.locate(ANY, deadline), request, deadline))
        found = {row.broker_id: Broker(row.broker_id, Address(row.host, row.port)) for row in answer.brokers}
        self._cluster = cluster = Cluster(answer.cluster_id, answer.controller_id, found)
        return cluster

    def _find_coordinator(self, to: Coordinator, deadline: Deadline) -> Address:
        address = self.locate(ANY, deadline)
        with self.brokers.connection(address, deadline) as connection:
            many = connection.version_of(messages.FindCoordinatorRequest) >= 4  # KIP-699
            keys: dict[str, Any] = {"coordinator_keys": [to.key]} if many else {"key": to.key}
            limit = deadline.within(self.config.seconds("socket.timeout.ms"))
            answer = connection.call(messages.FindCoordinatorRequest(key_type=to.kind, **keys), limit)
        check(answer)
        row = answer.coordinators[0] if many else answer
        found = self._coordinators[to] = Address(row.host, row.port)
        return found


def own_wait_s(message: Any) -> float:
    """Return how long a request lets the broker wait before it answers."""
    return max(0, *(getattr(message, name, 0) for name in WAITS)) / 1000


def _throttle_s(error: ClientError) -> float:
    """Return the pause that a broker asks for when a quota is used up (KIP-599)."""
    return getattr(error.answer, "throttle_time_ms", 0) / 1000 if error.answer is not None else 0.0
