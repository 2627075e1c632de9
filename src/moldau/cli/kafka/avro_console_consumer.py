"""kafka-avro-console-consumer: prints records with a schema as Avro's JSON."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.cli.kafka import clients, message_formatter
from moldau.cli.kafka import console_consumer as plain
from moldau.cli.kafka.deserializers import Undecodable
from moldau.cli.kafka.flags import Flag, Options, Tool
from moldau.cli.kafka.message_formatter import Formatter, Shown
from moldau.cli.kafka.running import complain, tell_usage
from moldau.serdes.context import SerdeError

NAME = "io.confluent.kafka.formatter.AvroMessageFormatter"
MAGIC, ID_SIZE = 0, 5


def run(options: Options) -> int:
    plain.check(options)
    try:
        given = plain.consumer_properties(options)
        line = typed(plain.formatter_properties(options), options["topic"] or "")
        return plain.consume(options, clients.librdkafka(given, "Consumer"), line)
    except plain.Failed as error:
        return complain(str(error))


def typed(properties: Mapping[str, str], topic: str) -> plain.Line:
    """Return the function that prints a record by the schemas of its key and value, unless a deserializer is given."""
    from moldau.cli.kafka.avro_console import connect, decoder

    base = message_formatter.formatter(properties)
    registry = connect(properties)
    decoders = {"key": decoder(registry, topic, "key"), "value": decoder(registry, topic, "value")}
    form = Formatter(base.printed, base.separators, {**decoders, **base.deserializers})
    null = base.separators["null.literal"]

    def line(record: Shown) -> bytes:
        try:
            return form.line(record)
        except SerdeError as error:
            raise Undecodable(str(error)) from None

    return _with_ids(line, properties, null)


def _with_ids(line: plain.Line, properties: Mapping[str, str], null: bytes) -> plain.Line:
    """Print the id of a value's schema after it, if print.schema.ids is true."""
    if properties.get("print.schema.ids", "").strip().lower() != "true":
        return line
    separator = properties.get("schema.id.separator", "\t").encode()

    def extended(record: Shown) -> bytes:
        value = record.value
        known = value is not None and len(value) > ID_SIZE and value[0] == MAGIC
        number = str(int.from_bytes(value[1:ID_SIZE], "big")).encode() if known and value is not None else null
        return line(record).removesuffix(b"\n") + separator + number + b"\n"

    return extended


TOOL = Tool(
    "kafka-avro-console-consumer",
    "This tool helps to read Avro data from Kafka topics and outputs it to standard output as JSON.",
    (
        *(flag for flag in plain.FLAGS if flag.name != "formatter"),
        Flag("formatter", "class", "Print records with this class: as Avro's JSON.", default=NAME),
    ),
    run,
    tell_usage,
)
