"""Settings under Kafka's own names: the table, typed values, layers, DescribeConfigs and changes.

The facts are rows of `table.txt`. Everything is pure, except that the table is read once and `read_properties` reads
a file. Values are kept as text, as in a properties file or a request, and become typed when they are looked up.
"""

from moldau.settings.entries import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_LOGGER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    TYPE_CODES,
    Entry,
    Synonym,
    describe,
)
from moldau.settings.layers import Endpoint, Settings, endpoints, protocol_of
from moldau.settings.properties import assignment, properties, read_properties, write_properties
from moldau.settings.resources import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    alter,
    client_metrics_settings,
    group_settings,
    replace,
    topic_settings,
    understood,
    validate,
    validate_quota,
    validate_topic,
)
from moldau.settings.services import ServiceSettings
from moldau.settings.table import (
    BROKER,
    CLIENT,
    CLIENT_METRICS,
    CLUSTER,
    CONNECT,
    GROUP,
    HTTP,
    IP,
    QUOTA,
    REGISTRY,
    REST,
    SQL,
    TOPIC,
    Row,
    client_inert_names,
    inert_names,
    is_inert,
    rows,
    table,
)
from moldau.settings.values import SettingError, duration_ms, format_value

__all__ = [
    "APPEND", "BROKER", "CLIENT", "CLIENT_METRICS", "CLUSTER", "CONNECT", "DEFAULT_CONFIG", "DELETE",
    "DYNAMIC_BROKER_LOGGER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG", "GROUP", "HTTP", "IP",
    "QUOTA", "REGISTRY", "REST", "SET", "SQL", "STATIC_BROKER_CONFIG", "SUBTRACT", "TOPIC", "TYPE_CODES", "Endpoint",
    "Entry", "Row", "ServiceSettings", "SettingError", "Settings", "Synonym", "alter", "assignment",
    "client_inert_names", "client_metrics_settings", "describe", "duration_ms", "endpoints", "format_value",
    "group_settings", "inert_names", "is_inert", "properties", "protocol_of", "read_properties", "replace", "rows",
    "table", "topic_settings", "understood", "validate", "validate_quota", "validate_topic",
    "write_properties",
]  # fmt: skip
