"""Joins of tables by a foreign key: the nodes, topics and stores that they consist of, under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from moldau.operators import foreign_key
from moldau.operators.coders import Field, Write, writer
from moldau.operators.context import Context, Operator
from moldau.operators.stores.key_value import timestamped_key_value
from moldau.operators.views import View
from moldau.serdes.primitive import BYTES

from . import functions
from .graph import Graph
from .joins import check_tables
from .materialized import StoreOptions, materialized
from .recipes import Factory, Recipe, Source, Uses
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
    """The options of a join. The partitioners are those of the left and of the right table's keys."""

    name: str | None
    partitioner: Any
    other_partitioner: Any
    store: StoreOptions


def open_writer(serde: SerdeLike, field: Field, topic: str) -> Callable[[Context], Write]:
    """Return what makes a writer of keys or values in a task: only there are the settings known that name a serde."""
    return lambda context: writer(settled(serde, field, context.settings, context.name), topic, field)


def names(graph: Graph, given: str | None) -> dict[str, str]:
    """Return all names in the order in which Kafka numbers them."""
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
    check_tables(table, other)
    check_partitioners(options, table.name)
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
    """The three parts of a join: ask, reply, resolve."""

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
        self.write_primary = open_writer(table.key, "key", f"{topic}-pk")
        self.write_foreign = open_writer(other.key, "key", f"{topic}-fk")
        self.write_value = open_writer(table.value, "value", f"{topic}-vh")
        self.subscription = foreign_key.SubscriptionSerde(cast(Any, table.key))
        self.answer = foreign_key.AnswerSerde(cast(Any, other.value))

    def ask(self, extract: Callable[[Any, Any], Any]) -> None:
        """Add what leads from the left table to the topic of subscriptions."""
        graph, named, key = self.graph, self.named, self.other.key
        topic, source = named["registration"], named["registration source"]
        graph.repartition_topic(topic)
        subscribe = partial(foreign_key.Subscribe, extract, self.write_foreign, self.write_value, left=self.left)
        graph.table(named["subscribe"], [self.table.name], Below(self.table.recipe, subscribe), "foreign_key_join")
        partitioner = by_key_alone(self.options.other_partitioner)
        written: dict[str, Any] = {"key": key, "value": self.subscription}
        graph.sink(named["registration sink"], [named["subscribe"]], topic, partitioner=partitioner, **written)
        graph.source(source, topic, **written)
        graph.copartition((*self.other.sources, source))

    def reply(self) -> None:
        """Add what leads from subscriptions, and from changes of the right table, to the topic of answers."""
        graph, named, other = self.graph, self.named, self.other
        store, topic = named["subscriptions"], named["response"]
        spec = timestamped_key_value(store, BYTES, self.subscription)
        keep = partial(foreign_key.KeepSubscription, store, self.write_foreign, self.write_primary)
        graph.processor(named["keep"], [named["registration source"]], keep, [spec], "foreign_key_join")
        view = other.recipe.view()
        answer = partial(foreign_key.AnswerSubscription, lookup_of(view))
        graph.processor(named["answer"], [named["keep"]], answer, view.stores, "foreign_key_join")
        tell = partial(foreign_key.AnswerSubscribers, store, self.write_foreign)
        graph.table(named["tell"], [other.name], Below(other.recipe, tell, (store,)), "foreign_key_join")
        graph.repartition_topic(topic)
        partitioner = by_key_alone(self.options.partitioner) or to_asker
        parents, key = [named["answer"], named["tell"]], self.table.key
        graph.sink(named["response sink"], parents, topic, key=key, value=self.answer, partitioner=partitioner)

    def resolve(self, join: Callable[[Any, Any, Any], Any]) -> KTable[Any, Any]:
        """Add what leads from answers to the table of results."""
        graph, named, table, source = self.graph, self.named, self.table, self.named["response source"]
        graph.source(source, named["response"], key=table.key, value=self.answer)
        graph.copartition((*table.sources, source))
        view = table.recipe.view()
        take = partial(foreign_key.TakeAnswer, lookup_of(view), self.write_value, join, left=self.left)
        graph.processor(named["resolve"], [source], take, view.stores, "foreign_key_result")
        store = materialized(graph, OUTPUT, self.options.store, table.key)
        recipe = Source(store.spec, store.queryable)
        graph.table(named["result"], [named["resolve"]], recipe, "table_source")
        return type(table)(
            graph, named["result"], table.sources | {source}, store.key, store.value, recipe, store.given
        )


@dataclass(frozen=True, slots=True)
class Below:
    """A node below a table, whose operator must know whether the table is versioned."""

    parent: Recipe
    operator: Callable[..., Operator]
    uses: Uses = ()

    def factory(self) -> Factory:
        return partial(self.operator, versioned=self.parent.versioned())

    def stores(self) -> Uses:
        return self.uses


def lookup_of(view: View) -> Callable[[Context], foreign_key.Lookup]:
    return lambda context: view.open(context).get


def check_partitioners(options: ForeignOptions, table: str) -> None:
    for given in (options.partitioner, options.other_partitioner):
        if given is not None:
            functions.checked(given, f"partitioners= of the join of {table}", {4: "topic, key, None, partitions"})


def by_key_alone(partitioner: Any) -> Any:
    """Hide the values from a user's partitioner: those of these topics are internal."""
    if partitioner is None:
        return None
    return lambda topic, key, value, count: partitioner(topic, key, None, count)


def to_asker(topic: str, key: Any, value: foreign_key.Answer, count: int) -> int | None:
    """Send an answer to the partition from which the subscription came."""
    return value.partition
