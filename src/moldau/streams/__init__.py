"""Kafka Streams for Python: the DSL of streams and tables, the Processor API, and the test driver."""

from moldau.operators.context import TopologyError
from moldau.operators.errors import Failure, Response, StreamsError
from moldau.operators.record import Change, Record, Stamped

from .builder import StreamsBuilder
from .driver import TopologyTestDriver
from .serdes import (
    UUID,
    Avro,
    Boolean,
    Bytes,
    Double,
    Float,
    Integer,
    Json,
    JsonSchema,
    Long,
    Protobuf,
    Short,
    String,
    Void,
)
from .stream import KStream
from .table import KTable
from .topology import Topology

__all__ = [
    "UUID",
    "Avro",
    "Boolean",
    "Bytes",
    "Change",
    "Double",
    "Failure",
    "Float",
    "Integer",
    "Json",
    "JsonSchema",
    "KStream",
    "KTable",
    "Long",
    "Protobuf",
    "Record",
    "Response",
    "Short",
    "Stamped",
    "StreamsBuilder",
    "StreamsError",
    "String",
    "Topology",
    "TopologyError",
    "TopologyTestDriver",
    "Void",
]
