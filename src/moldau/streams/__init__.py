"""Kafka Streams for Python: the DSL of streams and tables, the Processor API, and the test driver."""

from moldau.operators.context import Context, Metadata, TopologyError
from moldau.operators.errors import Failure, Response, StreamsError
from moldau.operators.record import Change, Record, Stamped
from moldau.operators.stores.versioned import VersionedRecord
from moldau.operators.windowed import Window, Windowed
from moldau.operators.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde
from moldau.operators.windows import (
    BufferConfig,
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)

from .branched import BranchedKStream
from .builder import StreamsBuilder
from .cogrouped import CogroupedKStream
from .driver import TopologyTestDriver
from .grouped import KGroupedStream
from .grouped_table import KGroupedTable
from .kafka_streams import KafkaStreams
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
from .table import GlobalKTable, KTable
from .topology import Topology
from .windowed import SessionWindowedKStream, TimeWindowedKStream
from .windowed_cogroup import SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream

__all__ = [
    "UUID", "Avro", "Boolean", "BranchedKStream", "BufferConfig", "Bytes", "Change", "CogroupedKStream", "Context",
    "Double", "EmitStrategy", "Failure", "Float", "GlobalKTable", "Integer", "JoinWindows", "Json", "JsonSchema",
    "KGroupedStream", "KGroupedTable", "KStream", "KTable", "KafkaStreams", "Long", "Metadata", "Protobuf", "Record",
    "Response", "SessionWindowedCogroupedKStream", "SessionWindowedKStream", "SessionWindowedSerde", "SessionWindows",
    "Short", "SlidingWindows", "Stamped", "StreamsBuilder", "StreamsError", "String", "Suppressed",
    "TimeWindowedCogroupedKStream", "TimeWindowedKStream", "TimeWindowedSerde", "TimeWindows", "Topology",
    "TopologyError", "TopologyTestDriver", "UnlimitedWindows", "VersionedRecord", "Void", "Window", "Windowed",
]  # fmt: skip
