"""Quotas enforced: `producer_byte_rate`, `consumer_byte_rate`, `request_percentage` and `controller_mutation_rate`.

While the metadata has quotas of clients, handlers are wrapped, and while some limit time `Node.receive` is replaced by
`Quotas.receive`; as long as there are none, nothing is measured and nothing costs. A client over its limit is answered
at once with `throttle_time_ms`, and its connection is muted for that long (KIP-219): a Wait without an answer takes its
place behind the answers of the connection. A fetch over its limit is answered empty and is not counted.

A change of topics over its limit is refused since the versions of KIP-599; before, it is done and the client throttled.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from moldau.broker.wait import Wait, finish
from moldau.machines.metadata.metering import IP, Bucket, Limit, Rate, find_limit
from moldau.wire import messages as m
from moldau.wire.errors import Error

if TYPE_CHECKING:
    from moldau.broker.api import Handler
    from moldau.broker.connection import Connection
    from moldau.broker.node import Node

PRODUCE, FETCH = 0, 1
PRODUCED, CONSUMED, TIME, CHANGES = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
# The first version of a change of topics that is refused rather than done late (KIP-599).
STRICT_SINCE = {19: 6, 20: 5, 37: 3}
EXEMPT = frozenset({17, 18, 36})  # logins and versions
MOST_THROTTLED = 200  # users and clients in the metrics
ENTITIES = 10_000  # whose rates are remembered


class Account:
    """The rates that produce requests of a client count for, with their limits: for those that are not decoded."""

    __slots__ = ("_limit", "_monotonic_ms", "_rate", "_safe", "_time")

    def __init__(self, node: Node, produced: tuple[Rate, float] | None, time: tuple[Rate, float] | None) -> None:
        self._monotonic_ms, self._time = node.clock.monotonic_ms, time
        self._rate, self._limit = produced or (None, 0.0)
        self._safe = 0.0 if self._rate is None else self._rate.safe_total(self._limit)

    def admits(self, size: int) -> bool:
        """Count a request with so many bytes of records, if it is below the limits."""
        rate = self._rate
        if self._time is not None and self._time[0].throttle_ms(self._time[1], self._monotonic_ms()):
            return False
        if rate is None or not size:
            return True
        now_ms = self._monotonic_ms()
        if rate.record(size, now_ms) <= self._safe or not rate.throttle_ms(self._limit, now_ms):
            return True
        rate.record(-size, now_ms)
        return False

    def take_back(self, size: int) -> None:
        if self._rate is not None:
            self._rate.record(-size, self._monotonic_ms())


class Quotas:
    """What clients have used."""

    def __init__(self, node: Node) -> None:
        self.node = node
        settings = node.settings
        self._windows = settings["quota.window.num"], settings["quota.window.size.seconds"] * 1000.0
        self._burst_s = settings["controller.quota.window.num"] * settings["controller.quota.window.size.seconds"]
        self._limits: dict[tuple[str, str, str | None], Limit | None] = {}  # that were looked up, until one changes
        self._accounts: dict[tuple[str, str | None], Account | None] = {}
        self.has_time_limits = False
        self._rates: dict[tuple[str, str | None, str | None], Rate] = {}
        self.throttled: dict[tuple[str, str, str], list[float]] = {}  # quota, user, client id: how often, how many ms
        self._buckets: dict[tuple[str | None, str | None], Bucket] = {}

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Take a frame in the node's place, and measure its time."""
        clock = self.node.clock
        begin_ms = clock.monotonic_ms()
        type(self.node).receive(self.node, connection, frame)
        if (limit := self.limit(TIME, connection)) is not None:
            now_ms = clock.monotonic_ms()
            self.rate(TIME, limit).record((now_ms - begin_ms) / 10, now_ms)  # percent of a second

    def forget_limits(self) -> None:
        """Look them up again: some have changed."""
        self._limits.clear()
        self._accounts.clear()
        self.has_time_limits = any(TIME in values for values in self.node.cluster.quotas.values())

    def limit(self, key: str, connection: Connection, client_id: str | None = None) -> Limit | None:
        asked = key, connection.principal, client_id or connection.client_id
        try:
            return self._limits[asked]
        except KeyError:
            if len(self._limits) >= ENTITIES:
                self._limits.clear()
            user = connection.principal.partition(":")[2]
            found = self._limits[asked] = find_limit(self.node.cluster.quotas, key, user, asked[2] or "")
            return found

    def account(self, connection: Connection, client_id: str | None) -> Account | None:
        """Return what a client's produce requests are measured by, None if nothing limits them."""
        asked = connection.principal, client_id
        try:
            return self._accounts[asked]
        except KeyError:
            if len(self._accounts) >= ENTITIES:
                self._accounts.clear()
            limits = {key: self.limit(key, connection, client_id) for key in (PRODUCED, TIME)}
            rates = {key: (self.rate(key, limit), limit.value) for key, limit in limits.items() if limit is not None}
            found = self._accounts[asked] = Account(self.node, rates.get(PRODUCED), rates.get(TIME)) if rates else None
            return found

    def rate(self, key: str, limit: Limit) -> Rate:
        name = key, limit.user, limit.client_id
        return self._rates.get(name) or self._known(self._rates, name, partial(Rate, *self._windows))

    def note(self, key: str, limit: Limit, throttle_ms: float) -> float:
        """Count that a client was throttled, for the metrics; returns for how long."""
        if throttle_ms:
            if len(self.throttled) >= MOST_THROTTLED:
                self.throttled.pop(next(iter(self.throttled)))
            found = self.throttled.setdefault((key, limit.user or "", limit.client_id or ""), [0, 0.0])
            found[0] += 1
            found[1] += throttle_ms
        return throttle_ms

    def _known(self, known: dict[Any, Any], key: Any, make: Any) -> Any:
        found = known.get(key)
        if found is None:
            if len(known) >= ENTITIES:
                known.pop(next(iter(known)))
                self._accounts.clear()  # one may count for that rate, and connections know it
                self.node.forget_heads()
            found = known[key] = make()
        return found

    def mute(self, connection: Connection, for_ms: float) -> None:
        """Take no further request of a connection for a while."""
        wait = Wait(self.node.clock.monotonic_ms() + for_ms, lambda expired: expired or None)
        pending = connection.park(wait, 0)
        self.node.waits.park(wait, lambda _: connection.answer(pending, []))

    def wrap(self, key: int, handle: Handler) -> Handler:
        """Put the quotas around a handler of clients."""
        if key in EXEMPT:
            return handle

        def metered(node: Node, connection: Connection, request: Any, version: int) -> Any:
            throttle_ms = self.time_throttle_ms(connection)
            if key == PRODUCE:
                throttle_ms = max(throttle_ms, self.produced(connection, request))
            is_fetch = key == FETCH and self.is_consumer(connection, request)
            if is_fetch and (limit := self.limit(CONSUMED, connection)) is not None:
                most = limit.value * (self._windows[0] - 1) * self._windows[1] / 1000
                request.max_bytes = max(1, int(min(request.max_bytes, most)))
            is_late = False

            def last_word(response: Any) -> Any:
                wait_ms = throttle_ms
                if key in STRICT_SINCE:  # the controller may have said so
                    wait_ms = max(wait_ms, response.throttle_time_ms)
                if is_fetch:
                    wait_ms, response = self.consumed(connection, request, response, throttle_ms)
                set_throttle(response, version, wait_ms)
                if is_late and wait_ms:
                    self.mute(connection, wait_ms)
                elif wait_ms:
                    connection.throttle_ms = max(connection.throttle_ms, wait_ms)
                return response

            outcome = finish(handle(node, connection, request, version), last_word)
            is_late = True
            if outcome is None and throttle_ms:
                connection.throttle_ms = throttle_ms
            return outcome

        return metered

    def time_throttle_ms(self, connection: Connection) -> float:
        """Return the throttle for what a client's requests have taken so far, at most one window."""
        limit = self.limit(TIME, connection)
        if limit is None:
            return 0.0
        throttle_ms = self.rate(TIME, limit).throttle_ms(limit.value, self.node.clock.monotonic_ms())
        return self.note(TIME, limit, min(throttle_ms, self._windows[1]))

    def produced(self, connection: Connection, request: m.ProduceRequest) -> float:
        limit = self.limit(PRODUCED, connection)
        if limit is None:
            return 0.0
        partitions = (one for topic in request.topic_data for one in topic.partition_data)
        size = sum(len(one.records) for one in partitions if one.records is not None)
        now_ms, rate = self.node.clock.monotonic_ms(), self.rate(PRODUCED, limit)
        rate.record(size, now_ms)
        return self.note(PRODUCED, limit, rate.throttle_ms(limit.value, now_ms))

    def is_consumer(self, connection: Connection, request: m.FetchRequest) -> bool:
        state = getattr(request, "replica_state", None)
        return max(request.replica_id, -1 if state is None else state.replica_id) < 0

    def consumed(
        self, connection: Connection, request: m.FetchRequest, response: Any, throttle_ms: float
    ) -> tuple[float, Any]:
        """Count a response of Fetch; returns for how long to throttle, and the response, an empty one if so.

        A batch may be larger than all that a client may have in its windows: it gets it if it had nothing before.
        """
        limit = self.limit(CONSUMED, connection)
        partitions = (one for topic in response.responses for one in topic.partitions)
        size = sum(len(one.records) for one in partitions if one.records is not None)
        if limit is not None:
            now_ms, rate = self.node.clock.monotonic_ms(), self.rate(CONSUMED, limit)
            had_none = not rate.measure(now_ms)[0]
            rate.record(size, now_ms)
            over_ms = 0.0 if had_none else self.note(CONSUMED, limit, rate.throttle_ms(limit.value, now_ms))
            throttle_ms = max(over_ms, throttle_ms)
            if throttle_ms:
                rate.record(-size, now_ms)
        if throttle_ms and size:
            session = response.session_id if request.session_epoch > 0 else 0
            response = m.FetchResponse(session_id=session)
        return throttle_ms, response

    # Changes of topics.

    def wrap_changes(self, key: int, handle: Handler) -> Handler:
        """Let changes of topics take from the client's bucket; refuse those for which nothing is left."""
        if key not in STRICT_SINCE:
            return handle

        def metered(node: Node, connection: Connection, request: Any, version: int) -> Any:
            limit = self.limit(CHANGES, connection)
            if limit is None or getattr(request, "validate_only", False):
                return handle(node, connection, request, version)
            bucket = self._known(self._buckets, limit[1:], Bucket)
            now_ms = node.clock.monotonic_ms()
            is_strict, refused = version >= STRICT_SINCE[key], list[Any]()
            name = "topic_names" if key == 20 and version < 6 else "topics"
            kept: list[Any] = []
            for topic in getattr(request, name):
                if bucket.fill(limit.value, limit.value * self._burst_s, now_ms) < 0 and is_strict:
                    refused.append(topic)
                else:
                    bucket.take(changes_of(node, key, topic))
                    kept.append(topic)
            setattr(request, name, kept)
            # In strict versions only a refusal throttles: a change that overdraws the bucket is done, the next one not.
            is_throttled = refused or not is_strict
            throttle_ms = self.note(CHANGES, limit, bucket.throttle_ms(limit.value)) if is_throttled else 0.0
            last_word = partial(refuse_changes, key, version, refused, throttle_ms)
            if throttle_ms:
                connection.throttle_ms = max(connection.throttle_ms, throttle_ms)
            if not kept and refused:
                return last_word(m.response_class(key)())
            return finish(handle(node, connection, request, version), last_word)

        return metered


def changes_of(node: Node, key: int, topic: Any) -> int:
    """Return how many partitions a change creates or deletes."""
    if key == 19:
        count = topic.num_partitions if topic.num_partitions > 0 else node.settings["num.partitions"]
        return len(topic.assignments) or count
    name: str | None = topic if isinstance(topic, str) else topic.name
    known = node.cluster.topics.get(name) if name else node.cluster.topics_by_id.get(getattr(topic, "topic_id", b""))
    if known is None:
        return 0
    return len(known.partitions) if key == 20 else max(0, getattr(topic, "count", 0) - len(known.partitions))


def refuse_changes(key: int, version: int, refused: list[Any], throttle_ms: float, response: Any) -> Any:
    from moldau.broker.authorization import refuse_all

    set_throttle(response, version, throttle_ms)
    rows = {19: "topics", 20: "responses", 37: "results"}[key]
    error = Error.THROTTLING_QUOTA_EXCEEDED
    denied = refuse_all(type(response), rows, refused, error) if refused else []
    setattr(response, rows, [*getattr(response, rows), *denied])
    return response


def set_throttle(response: Any, version: int, throttle_ms: float) -> None:
    if throttle_ms and any(field.name == "throttle_time_ms" and field.at(version) for field in response.SCHEMA.fields):
        response.throttle_time_ms = max(response.throttle_time_ms, int(throttle_ms))


def apply_quotas(node: Node) -> None:
    """Begin to measure when the metadata has quotas of clients, and end when it has none any more."""
    wanted = any(kind != IP for entity in node.cluster.quotas for kind, _ in entity)
    before, node.quotas = node.quotas, (node.quotas or Quotas(node)) if wanted else None
    was_timed = before is not None and before.has_time_limits
    if node.quotas is not None:
        node.quotas.forget_limits()
    if node.quotas is not None and node.quotas.has_time_limits:
        node.receive = node.quotas.receive
    elif was_timed:
        del node.receive  # pyright: ignore[reportAttributeAccessIssue]
    if before is not node.quotas:
        node.routes.clear()
        node.controller_routes.clear()
