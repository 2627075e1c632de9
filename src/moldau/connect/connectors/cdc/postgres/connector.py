"""PostgreSQL source: rows of tables, then every change of them, by logical replication, in Debezium's format.

The settings are Debezium's. The task has one thread that owns the replication connection: it reads, makes events and
puts them into a bounded buffer, so a transaction of any size is never in memory as a whole. Whatever was committed to
Kafka is acknowledged to the slot after that, and the database keeps the log until then. Where no captured table
changes, the position that the server reports is acknowledged, so that a quiet table does not fill the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors.cdc.postgres.capture import Batch, Capture
from moldau.connect.connectors.cdc.settings import SHARED, Filters, number, overrides, patterns, setting
from moldau.connect.connectors.live import Feed
from moldau.connect.data import Record
from moldau.connect.errors import ConnectError, invalid
from moldau.connect.offset_topic import SourceOffset, SourcePartition

MODES = ("initial", "initial_only", "always", "no_data", "never", "when_needed")
TIMES = ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
SSL = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _slot_name(name: str, value: Any) -> None:
    if not value or not set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_") or len(value) > 63:
        raise invalid(name, value, "it may have small letters, digits and underscores, at most 63")


CONFIG = ConfigDef(
    [
        *SHARED,
        Key("database.hostname", importance=Importance.HIGH, doc="The server, or the folder of its socket."),
        setting("database.port", 5432, "The server's port.", Kind.INT, validator=between(1, 65535)),
        Key("database.user", importance=Importance.HIGH, doc="The user, who must be allowed to replicate."),
        Key("database.password", Kind.PASSWORD, None, Importance.HIGH, "The user's password."),
        Key("database.dbname", importance=Importance.HIGH, doc="The database to capture."),
        setting("database.sslmode", "prefer", "Whether to use TLS.", validator=one_of(*SSL)),
        setting("database.sslcert", None, "The file of the client's certificate."),
        setting("database.sslkey", None, "The file of the client's key."),
        setting("database.sslrootcert", None, "The file of the authorities to trust."),
        setting("plugin.name", "pgoutput", "The plugin that decodes the log.", validator=one_of("pgoutput")),
        setting("slot.name", "debezium", "The replication slot.", validator=_slot_name),
        setting("slot.drop.on.stop", False, "Drop the slot when the task ends.", Kind.BOOLEAN),
        setting("publication.name", "dbz_publication", "The publication."),
        setting(
            "publication.autocreate.mode",
            "all_tables",
            "How the publication is created if there is none.",
            validator=one_of("all_tables", "filtered", "disabled", "no_tables"),
        ),
        setting("publish.via.partition.root", False, "Capture partitions as their root.", Kind.BOOLEAN),
        setting("schema.include.list", [], "Schemas to capture.", Kind.LIST, validator=patterns),
        setting("schema.exclude.list", [], "Schemas not to capture.", Kind.LIST, validator=patterns),
        setting("snapshot.mode", "initial", "When to read the tables first.", validator=one_of(*MODES)),
        setting("time.precision.mode", "adaptive", "Type of dates and times.", validator=one_of(*TIMES)),
        setting("hstore.handling.mode", "json", "Type of hstore.", validator=one_of("json", "map")),
        setting("interval.handling.mode", "numeric", "Type of intervals.", validator=one_of("numeric", "string")),
        setting("money.fraction.digits", 2, "Digits after the point of money.", Kind.SHORT, validator=between(0)),
        setting("include.unknown.datatypes", False, "Keep columns of types that no event knows.", Kind.BOOLEAN),
        setting(
            "unknown.datatypes.handling.mode",
            "bytes",
            "How to keep them: as binary.handling.mode says, or as texts.",
            validator=one_of("bytes", "text"),
        ),
        setting(
            "unavailable.value.placeholder", "__debezium_unavailable_value", "Stands for a large value without change."
        ),
        setting("message.prefix.include.list", [], "Logical messages to capture.", Kind.LIST, validator=patterns),
        setting("message.prefix.exclude.list", [], "Logical messages not to capture.", Kind.LIST, validator=patterns),
        number("status.update.interval.ms", 10_000, "How often to tell the server how far we are.", 1),
    ]
)


class PostgresSource:
    """Tables of a PostgreSQL database."""

    kind = SOURCE
    task_class = "io.debezium.connector.postgresql.PostgresConnectorTask"
    exactly_once = True
    config = CONFIG

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Return one task: the log is one."""
        check(self.config.parse(config))
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if "server" not in partition:
            raise ConnectError("Partition objects should contain the key 'server'")
        if offset is not None and not isinstance(offset.get("lsn"), int):
            raise ConnectError("Offset objects should either be null or contain the key 'lsn' with a number")

    def open(self, context: SourceContext) -> Capturing:
        return Capturing(context)


def check(parsed: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that do not go together; ConfigError."""
    Filters(parsed, "schema")
    return parsed


class Capturing:
    """The task: it hands on what the thread of its capture has made."""

    def __init__(self, context: SourceContext) -> None:
        config = check(CONFIG.parse(context.config))
        self._most = max(1, config["max.batch.size"] // Batch.MOST)
        self._capture = Capture(config, overrides(context.config), context.offset({"server": config["topic.prefix"]}))
        buffered = max(2, config["max.queue.size"] // Batch.MOST)
        again_s = config["retriable.restart.connector.wait.ms"] / 1000
        self._polled, self._has_open = 0, False
        self._feed = Feed(buffered, self._capture.run, again_s)

    def poll(self) -> Sequence[Record]:
        records: list[Record] = []
        for batch in self._feed.take(self._most):
            records += batch.records
            self._polled = max(self._polled, batch.position)
        self._has_open = self._has_open or bool(records)
        if not self._has_open:
            self._capture.acknowledged = self._polled  # nothing of it had to go to Kafka
        return records

    def committed(self) -> None:
        self._has_open = False
        self._capture.acknowledged = self._polled

    def close(self) -> None:
        """End the thread, which tells the server once more how far everything was committed."""
        self._feed.close(30.0)
