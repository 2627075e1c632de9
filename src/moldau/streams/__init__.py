"""Kafka Streams for Python: the DSL of streams and tables, the Processor API, and the test driver."""

from moldau.operators.context import TopologyError
from moldau.operators.errors import Failure, Response, StreamsError
from moldau.operators.record import Change, Record, Stamped

from .branched import BranchedKStream
from .builder import StreamsBuilder
from .cogrouped import CogroupedKStream
from .driver import TopologyTestDriver
from .global_table import GlobalKTable
from .grouped import KGroupedStream
from .grouped_table import KGroupedTable
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
    "BranchedKStream",
    "Bytes",
    "Change",
    "CogroupedKStream",
    "Double",
    "Failure",
    "Float",
    "GlobalKTable",
    "Integer",
    "Json",
    "JsonSchema",
    "KGroupedStream",
    "KGroupedTable",
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
