"""The options of the sink, named as in Spark's Kafka sink; settings of Java's producer may follow `kafka.`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moldau.spark.client_settings import PREFIX, client_settings
from moldau.spark.options import (
    Option,
    OptionError,
    boolean,
    duration_ms,
    one_of,
    parse_option,
    positive,
    resolve,
    under,
    words,
)
from moldau.spark.sink.markers import TOPIC as MARKERS
from moldau.wire.compression import Compression

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once", "at_least_once"
RAW = "raw"
WITH_SCHEMA = ("avro", "json-schema", "protobuf")
FORMATS = (*WITH_SCHEMA, "json", "string", "bytes", RAW)
REGISTRY = "schema.registry."
SERDE_PREFIXES = ("key.serde.", "value.serde.")
MAX_ID = 200

TABLE = (
    Option("topic", words, None, "Topic of all rows; without it the column topic says it for each."),
    Option("checkpointLocation", words, None, "Spark's own; the decision of a batch remembers it."),
    Option("queryName", words, None, "Spark's own."),
    Option("path", words, None, "Refused: a topic has none."),
    Option(
        "processing.guarantee",
        one_of(EXACTLY_ONCE, AT_LEAST_ONCE),
        EXACTLY_ONCE,
        "`at_least_once` writes without transactions: rows of a batch that is replayed are there twice.",
    ),
    Option(
        "application.id",
        words,
        None,
        "A name for the query that outlives its checkpoint, so that a new one doubles nothing. Without it the id in "
        "the checkpoint stands for the query. In a batch job: a second run of the same name writes nothing.",
    ),
    Option("markers.topic", words, MARKERS, "The compacted topic that remembers what was written."),
    Option(
        "transaction.timeout.ms",
        duration_ms,
        900_000,
        "How long a batch may take from its first row to its commit; the broker's transaction.max.timeout.ms limits "
        "it.",
    ),
    Option("compression.type", one_of("none", "gzip", "snappy", "lz4", "zstd"), "none", "Codec of the record batches."),
    Option(
        "batch.size", positive, 1_000_000, "Largest record batch in bytes; the topic's max.message.bytes holds too."
    ),
    Option("max.request.size", positive, 1_048_576, "Bytes of the largest record that is sent."),
    Option("value.format", one_of(*FORMATS), RAW, "What the column value, or all other columns together, become."),
    Option("key.format", one_of(*FORMATS), RAW, "What the column key becomes."),
    Option("value.schema", words, None, "The schema to write with; without it, it is made of the columns."),
    Option("key.schema", words, None, "The schema to write keys with; without it, it is made of the column."),
    Option("value.message", words, None, "Protobuf: the message of the schema; without it the first."),
    Option("key.message", words, None, "Protobuf: the message of the schema; without it the first."),
    Option("includeHeaders", boolean, True, "Whether a column headers is written; Spark's own sink always does."),
)
DEFAULTS = {
    "allow.auto.create.topics": "true",  # as producers do; the broker has the last word
    "default.api.timeout.ms": "300000",  # a broker that is away for minutes is waited for
    "retry.backoff.ms": "20",  # a coordinator that is still busy with the batch before needs no longer
}
OF_PRODUCERS = ("compression.type", "batch.size", "max.request.size", "transaction.timeout.ms")
# Settings of Java's producer that have no effect here.
WITHOUT_EFFECT = {
    "linger.ms",  # a task sends what is full, and the rest at its end
    "buffer.memory",
    "delivery.timeout.ms",
    "enable.idempotence",  # it is always on
    "max.block.ms",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
}
REFUSED = {
    "acks": "a task waits for all replicas in sync",
    "interceptor.classes": "there are no interceptors here",
    "key.serializer": "say key.format, or convert the column",
    "value.serializer": "say value.format, or convert the column",
    "partitioner.class": "rows go by their key as in Java's producer; or say a column partition",
    "partitioner.ignore.keys": "leave the key out, or say a column partition",
    "transactional.id": "it is made of application.id, or of the query's id, and the number of the task",
}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Everything that a task needs; workers get it."""

    client: Mapping[str, str]
    topic: str | None
    checkpoint: str | None
    exactly_once: bool
    application: str | None
    markers: str
    timeout_ms: int
    compression: int
    batch_size: int
    max_request_size: int
    headers: bool
    formats: Mapping[str, str]  # of key and value
    schemas: Mapping[str, str | None]
    messages: Mapping[str, str | None]
    registry: Mapping[str, str]
    serde: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> SinkOptions:
        given = dict(given.items())
        values = resolve(TABLE, given, (PREFIX, REGISTRY, *SERDE_PREFIXES))
        client, producer = _split(given)
        values |= {row.name: parse_option(row, producer[row.name]) for row in TABLE if row.name in producer}
        if values["path"] is not None:
            raise OptionError(f"A topic has no path: write .option('topic', {values['path']!r}).save().")
        made = cls(
            client,
            values["topic"],
            values["checkpointLocation"],
            values["processing.guarantee"] == EXACTLY_ONCE,
            values["application.id"],
            values["markers.topic"],
            values["transaction.timeout.ms"],
            Compression[values["compression.type"].upper()],
            values["batch.size"],
            values["max.request.size"],
            values["includeHeaders"],
            {part: values[f"{part}.format"] for part in ("key", "value")},
            {part: values[f"{part}.schema"] for part in ("key", "value")},
            {part: values[f"{part}.message"] for part in ("key", "value")},
            {f"{REGISTRY}{name}": text for name, text in under(given, REGISTRY).items()},
            {part: under(given, f"{part}.serde.") for part in ("key", "value")},
        )
        made.check()
        return made

    def check(self) -> None:
        if self.application is not None and len(self.application) > MAX_ID:
            raise OptionError(
                f"The option application.id has {len(self.application)} characters; it may have {MAX_ID}."
            )
        for part, format in self.formats.items():
            if self.serde[part].get("schema.id.in", "prefix") != "prefix":
                raise OptionError(
                    f"The option {part}.serde.schema.id.in must be prefix: the sink writes no schema headers."
                )
            if format in WITH_SCHEMA and f"{REGISTRY}url" not in self.registry:
                raise OptionError(
                    f"The option {part}.format={format} needs {REGISTRY}url, such as http://localhost:8081."
                )


def _split(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of the client, and those of a producer, which the sink itself obeys."""
    rest: dict[str, str] = {}
    producer: dict[str, str] = {}
    for name, text in given.items():
        bare = name[len(PREFIX) :].lower() if name.lower().startswith(PREFIX) else ""
        if bare in REFUSED and not (bare == "acks" and text in ("all", "-1")):
            raise OptionError(f"The option {name} is not supported: {REFUSED[bare]}.")
        if bare in OF_PRODUCERS:
            producer[bare] = text
        elif bare not in WITHOUT_EFFECT:
            rest[name] = text
    settings = {**DEFAULTS, **client_settings(rest)}
    settings.pop("client.rack", None)  # a replica nearby may not have the last marker yet
    return settings, producer
