"""Joins of tables by a foreign key: which nodes, topics and stores they are made of, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from moldau.operators import foreign_key
from moldau.operators.coders import Field, Write, writer
from moldau.operators.context import Context
from moldau.operators.stores.key_value import timestamped_key_value
from moldau.operators.views import View
from moldau.serdes.primitive import BYTES

from . import functions
from .graph import Graph
from .joins import tables
from .materialized import StoreOptions, materialized
from .recipes import Source
from .serdes import SerdeLike, settled

if TYPE_CHECKING:
    from .table import KTable

FK = "KTABLE-FK-JOIN-"
REGISTRATION, RESPONSE = f"{FK}SUBSCRIPTION-REGISTRATION-", f"{FK}SUBSCRIPTION-RESPONSE-"
PROCESSOR, RESOLVER = f"{FK}SUBSCRIPTION-PROCESSOR-", f"{FK}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
STATE, OUTPUT = f"{FK}SUBSCRIPTION-STATE-STORE-", f"{FK}OUTPUT-"
SINK, SOURCE = "KTABLE-SINK-", "KTABLE-SOURCE-"


Partitioners = tuple[Any, Any]  # of the keys of both tables


@dataclass(frozen=True, slots=True)
class ForeignOptions:
    """`partitioner` is that of the left table's keys, `other_partitioner` that of the right one's."""

    name: str | None
    partitioner: Any
    other_partitioner: Any
    store: StoreOptions


def opened(serde: SerdeLike, field: Field, topic: str) -> Callable[[Context], Write]:
    """Writes keys or values once there is a task, and with it the settings that a serde may come from."""
    return lambda context: writer(settled(serde, field, context.settings, context.name), topic, field)


def names(graph: Graph, given: str | None) -> dict[str, str]:
    """All names in the order in which Kafka counts them."""
    rows = (
        ("registration", "-subscription-registration", REGISTRATION),
        ("subscribe", "-subscription-registration-processor", REGISTRATION),
        ("registration sink", "-subscription-registration-sink", SINK),
        ("registration source", "-subscription-registration-source", SOURCE),
        ("subscriptions", "-subscription-store", STATE),
        ("keep", "-subscription-receive", PROCESSOR),
        ("answer", "-subscription-join-foreign", PROCESSOR),
        ("tell", "-foreign-join-subscription", PROCESSOR),
        ("response", "-subscription-response", RESPONSE),
        ("response sink", "-subscription-response-sink", SINK),
        ("response source", "-subscription-response-source", SOURCE),
        ("resolve", "-subscription-response-resolver", RESOLVER),
        ("result", "-result", OUTPUT),
    )
    return {row: graph.suffixed(given, suffix, prefix) for row, suffix, prefix in rows}


def join_on_foreign_key(
    table: KTable[Any, Any],
    other: KTable[Any, Any],
    extractor: Callable[..., Any],
    joiner: Callable[..., Any],
    left: bool,
    options: ForeignOptions,
) -> KTable[Any, Any]:
    tables(table, other)
    partitioned_by(options, table.name)
    other.recipe.send_old_values(True)
    table.recipe.send_old_values(True)
    named = names(table.graph, options.name)
    named["registration"] += "-topic"
    named["response"] += "-topic"
    extract = functions.of_value(extractor, named["subscribe"])
    join = functions.joiner(joiner, named["resolve"])
    parts = Parts(table, other, named, left, options)
    parts.ask(extract)
    parts.reply()
    return parts.resolve(join)


class Parts:
    def __init__(
        self,
        table: KTable[Any, Any],
        other: KTable[Any, Any],
        named: dict[str, str],
        left: bool,
        options: ForeignOptions,
    ) -> None:
        self.table, self.other, self.named, self.left, self.options = table, other, named, left, options
        self.graph = table.graph
        topic = named["registration"]
        self.write_primary = opened(table.key, "key", f"{topic}-pk")
        self.write_foreign = opened(other.key, "key", f"{topic}-fk")
        self.write_value = opened(table.value, "value", f"{topic}-vh")
        self.subscription = foreign_key.SubscriptionSerde(cast(Any, table.key))
        self.answer = foreign_key.AnswerSerde(cast(Any, other.value))

    def ask(self, extract: Callable[[Any, Any], Any]) -> None:
        """From the left table to the topic of subscriptions."""
        graph, named, table, left = self.graph, self.named, self.table, self.left
        topic = named["registration"]
        graph.repartition_topic(topic)
        graph.add(
            lambda topology: none(
                topology.add_node(
                    named["subscribe"],
                    subscribe(extract, self.write_foreign, self.write_value, left, table.recipe.versioned()),
                    graph.real([table.name]),
                    (),
                    "foreign_key_join",
                )
            )
        )
        partitioner = by_key_alone(self.options.other_partitioner)
        graph.sink(
            named["registration sink"], named["subscribe"], topic, self.other.key, self.subscription, partitioner
        )
        self.source(named["registration source"], topic, self.other.key, self.subscription)
        graph.copartition((*self.other.sources, named["registration source"]))

    def reply(self) -> None:
        """From subscriptions, and from changes of the right table, to the topic of answers."""
        graph, named, other = self.graph, self.named, self.other
        store, topic = named["subscriptions"], named["response"]
        spec = timestamped_key_value(store, BYTES, self.subscription)
        foreign, primary = self.write_foreign, self.write_primary
        keep = lambda: foreign_key.KeepSubscription(store, foreign, primary)  # noqa: E731
        graph.processor(named["keep"], [named["registration source"]], keep, [spec], "foreign_key_join")
        view = other.recipe.view()
        answer = lambda: foreign_key.AnswerSubscription(looking(view))  # noqa: E731
        graph.processor(named["answer"], [named["keep"]], answer, view.stores, "foreign_key_join")
        graph.add(
            lambda topology: none(
                topology.add_node(
                    named["tell"],
                    tell(store, foreign, other.recipe.versioned()),
                    graph.real([other.name]),
                    [store],
                    "foreign_key_join",
                )
            )
        )
        graph.repartition_topic(topic)
        partitioner = by_key_alone(self.options.partitioner) or to_asker
        graph.add(
            lambda topology: none(
                topology.add_sink(
                    named["response sink"],
                    topic,
                    [named["answer"], named["tell"]],
                    key=self.table.key,
                    value=cast(Any, self.answer),
                    partitioner=partitioner,
                )
            )
        )

    def resolve(self, join: Callable[[Any, Any, Any], Any]) -> KTable[Any, Any]:
        """From answers to the table of results."""
        graph, named, table, left = self.graph, self.named, self.table, self.left
        self.source(named["response source"], named["response"], table.key, self.answer)
        graph.copartition((*table.sources, named["response source"]))
        view, write = table.recipe.view(), self.write_value
        take = lambda: foreign_key.TakeAnswer(looking(view), write, join, left=left)  # noqa: E731
        graph.processor(named["resolve"], [named["response source"]], take, view.stores, "foreign_key_result")
        store = materialized(graph, OUTPUT, self.options.store, table.key)
        recipe = Source(store.spec, store.queryable)
        graph.table(named["result"], [named["resolve"]], recipe, "table_source")
        sources = table.sources | {named["response source"]}
        return type(table)(graph, named["result"], sources, store.key, store.value, recipe, store.given)

    def source(self, name: str, topic: str, key: SerdeLike, value: Any) -> None:
        self.graph.add(lambda topology: none(topology.add_source(name, topic, key=key, value=value)))


def subscribe(
    extract: Callable[[Any, Any], Any],
    write_foreign: Callable[[Context], Write],
    write_value: Callable[[Context], Write],
    left: bool,
    versioned: bool,
) -> Callable[[], foreign_key.Subscribe]:
    return lambda: foreign_key.Subscribe(extract, write_foreign, write_value, left=left, versioned=versioned)


def tell(
    store: str, write_foreign: Callable[[Context], Write], versioned: bool
) -> Callable[[], foreign_key.AnswerSubscribers]:
    return lambda: foreign_key.AnswerSubscribers(store, write_foreign, versioned=versioned)


def looking(view: View) -> Callable[[Context], foreign_key.Lookup]:
    return lambda context: view.open(context).get


def partitioned_by(options: ForeignOptions, table: str) -> None:
    for given in (options.partitioner, options.other_partitioner):
        if given is not None:
            functions.checked(given, f"partitioners= of the join of {table}", {4: "topic, key, None, partitions"})


def by_key_alone(partitioner: Any) -> Any:
    """A user's partitioner sees keys; what goes over these topics as values is none of its business."""
    if partitioner is None:
        return None
    return lambda topic, key, value, count: partitioner(topic, key, None, count)


def to_asker(topic: str, key: Any, value: foreign_key.Answer, count: int) -> int | None:
    """An answer goes to the partition from which the subscription came."""
    return value.partition


def none(result: object) -> None:
    """A step returns nothing."""
