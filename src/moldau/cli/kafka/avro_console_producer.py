"""kafka-avro-console-producer: writes lines of Avro's JSON as records with a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from moldau.cli.kafka import console_producer as plain
from moldau.cli.kafka.flags import Flag, Options, Tool, require
from moldau.cli.kafka.line_reader import BadLine, Line, LineReader, line_reader
from moldau.cli.kafka.running import complain, tell_usage
from moldau.serdes.context import SerdeError

if TYPE_CHECKING:
    from moldau.cli.kafka.avro_console import Encode
    from moldau.serdes.registry import Registry

READERS = ("io.confluent.kafka.formatter.AvroMessageReader", *plain.LINE_READERS)


def run(options: Options) -> int:
    from moldau.cli.kafka.avro_console import connect

    require(options, "topic", "bootstrap-server")
    try:
        given = plain.reader_properties(options, READERS)
        reader = line_reader(given)
        registry = connect(given)
        encode = encoders(registry, given, options["topic"], reader)
    except (BadLine, SerdeError) as error:
        return complain(f"{plain.EXCEPTION}: {error}")

    def typed(record: Line) -> Line:
        return Line(encode["key"](record.key), encode["value"](record.value), record.headers)

    try:
        return plain.send_all(options, reader, typed)
    except SerdeError as error:
        return complain(f"org.apache.kafka.common.errors.SerializationException: {error}")
    finally:
        registry.close()


def encoders(registry: Registry, given: Mapping[str, str], topic: str, reader: LineReader) -> dict[str, Encode]:
    """Return the encoders of keys and values; without --property parse.key there are no keys."""
    from moldau.cli.kafka.avro_console import encoder

    strings = given.get("key.serializer", "").endswith("StringSerializer")
    key = (lambda data: data) if strings or not reader.parse_key else encoder(registry, given, topic, "key")
    return {"key": key, "value": encoder(registry, given, topic, "value")}


TOOL = Tool(
    "kafka-avro-console-producer",
    "This tool helps to read Avro data as JSON from standard input and publish it to Kafka.",
    (
        *(flag for flag in plain.FLAGS if flag.name not in ("line-reader", "bootstrap-server")),
        Flag("bootstrap-server", "server to connect to", "Connect to these brokers, HOST:PORT,..."),
        Flag("line-reader", "class", "Read lines with this class: as Avro's JSON.", default=READERS[0]),
    ),
    run,
    tell_usage,
    plain.WARNING,
)
