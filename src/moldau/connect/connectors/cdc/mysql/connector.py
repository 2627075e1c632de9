"""MariaDB and MySQL source: rows of tables, then every change of them, by the binlog, in Debezium's format.

The settings are Debezium's. The binlog itself says what tables look like (`binlog_row_metadata=FULL`), so there is no
history of schemas to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, one_of
from moldau.connect.connector import SOURCE, Config, SourceContext
from moldau.connect.connectors.cdc.mysql.capture import BATCH, Capture
from moldau.connect.connectors.cdc.mysql.tls import MODES as MODES_OF_TLS
from moldau.connect.connectors.cdc.mysql.tls import tls_of
from moldau.connect.connectors.cdc.settings import SHARED, Filters, overrides, patterns, setting
from moldau.connect.connectors.live import Feed
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.offset_topic import SourceOffset, SourcePartition

MODES = ("initial", "initial_only", "always", "no_data", "never", "when_needed")
CONFIG = ConfigDef(
    [
        *SHARED,
        Key("database.hostname", importance=Importance.HIGH, doc="The server, or the path of its socket."),
        setting("database.port", 3306, "The server's port.", Kind.INT, validator=between(1, 65535)),
        Key("database.user", importance=Importance.HIGH, doc="The user, who must be allowed to replicate."),
        Key("database.password", Kind.PASSWORD, None, Importance.HIGH, "The user's password."),
        Key(
            "database.server.id",
            Kind.LONG,
            importance=Importance.HIGH,
            doc="The id that the connector has as a replica; each replica of the server needs another one.",
            validator=between(1, 4_294_967_295),
        ),
        setting("database.ssl.mode", "preferred", "Whether to use TLS.", validator=one_of(*MODES_OF_TLS)),
        setting("database.ssl.keystore", None, "The file with the client's key and certificate: PEM, PKCS12 or JKS."),
        Key("database.ssl.keystore.password", Kind.PASSWORD, None, Importance.MEDIUM, "The password of that file."),
        setting("database.ssl.truststore", None, "The file with the authorities to trust, likewise."),
        Key("database.ssl.truststore.password", Kind.PASSWORD, None, Importance.MEDIUM, "The password of that file."),
        setting("database.include.list", [], "Databases to capture.", Kind.LIST, validator=patterns),
        setting("database.exclude.list", [], "Databases not to capture.", Kind.LIST, validator=patterns),
        setting("snapshot.mode", "initial", "When to read the tables first.", validator=one_of(*MODES)),
        setting(
            "time.precision.mode",
            "adaptive_time_microseconds",
            "Type of dates and times.",
            validator=one_of("adaptive_time_microseconds", "connect"),
        ),
        setting(
            "bigint.unsigned.handling.mode", "long", "Type of unsigned BIGINT.", validator=one_of("long", "precise")
        ),
        setting("include.schema.changes", True, "Write changes of schemas to the topic topic.prefix.", Kind.BOOLEAN),
        setting("include.schema.comments", False, "Take MySQL's comments too; MariaDB's always come.", Kind.BOOLEAN),
    ]
)


def check(parsed: dict[str, Any]) -> dict[str, Any]:
    """Refuse settings that do not go together or are not supported; ConfigError."""
    Filters(parsed, "database")
    tls_of(parsed)
    if parsed["snapshot.max.threads"] > 1:
        raise ConfigError("A snapshot of MariaDB or MySQL is read by one connection: snapshot.max.threads must be 1.")
    return parsed


class BinlogSource:
    """Tables of a MariaDB or MySQL server; `name` is that of Debezium's connector."""

    kind = SOURCE
    exactly_once = True
    config = CONFIG

    def __init__(self, name: str, task_class: str) -> None:
        self._name, self.task_class = name, task_class

    def task_configs(self, config: Config, most: int) -> list[dict[str, str]]:
        """Return one task: the binlog is one."""
        check(self.config.parse(config))
        return [dict(config)]

    def check_offset(self, config: Config, partition: SourcePartition, offset: SourceOffset | None) -> None:
        if "server" not in partition:
            raise ConnectError("Partition objects should contain the key 'server'")
        if offset is not None and not (isinstance(offset.get("file"), str) and isinstance(offset.get("pos"), int)):
            raise ConnectError("Offset objects should either be null or contain the keys 'file' and 'pos'")

    def open(self, context: SourceContext) -> Capturing:
        return Capturing(self._name, context)


class Capturing:
    """The task: it hands on what the thread of its capture has made."""

    def __init__(self, name: str, context: SourceContext) -> None:
        config = check(CONFIG.parse(context.config))
        offset = context.offset({"server": config["topic.prefix"]})
        capture = Capture(config, overrides(context.config), name, offset)
        self._most = max(1, config["max.batch.size"] // BATCH)
        again_s = config["retriable.restart.connector.wait.ms"] / 1000
        self._feed = Feed(max(2, config["max.queue.size"] // BATCH), capture.run, again_s)

    def poll(self) -> Sequence[Record]:
        return [record for batch in self._feed.take(self._most) for record in batch]

    def committed(self) -> None:
        """The offsets are all there is to keep."""

    def close(self) -> None:
        self._feed.close(30.0)


MARIADB = BinlogSource("mariadb", "io.debezium.connector.mariadb.MariaDbConnectorTask")
MYSQL = BinlogSource("mysql", "io.debezium.connector.mysql.MySqlConnectorTask")
