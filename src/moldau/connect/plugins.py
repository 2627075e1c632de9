"""The table of plugins: under which names a connector, converter, transform or predicate is known, and where it is."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, NamedTuple, cast

from moldau.connect.config_def import ConfigDef
from moldau.connect.connector import SINK, SOURCE, Connector
from moldau.connect.errors import ConfigError
from moldau.connect.jvm import catalogue
from moldau.connect.jvm.host import Host

if TYPE_CHECKING:
    from moldau.connect.sdk import Sink, Source

log = logging.getLogger(__name__)

VERSION = "4.3.1"  # of the Connect whose plugins these are, where they are Connect's


class Plugin(NamedTuple):
    """A connector: the class that configs name, and the one of ours, as `module:class`."""

    class_name: str
    kind: str
    made_by: str
    version: str = VERSION

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that it goes by: that of the class, without its package, and without `Connector`."""
        simple = self.class_name.rpartition(".")[2]
        return self.class_name, simple, simple.removesuffix("Connector")

    def load(self) -> Connector:
        if self.made_by == JAVA:
            return _of_jar(self.class_name)
        return _loaded_here.get(self.made_by) or _loaded(self.made_by)


@cache
def _loaded(made_by: str) -> Connector:
    module, _, name = made_by.partition(":")
    found = getattr(import_module(module), name)
    return found() if isinstance(found, type) else found


HERE = "moldau.connect.connectors."
CONNECTORS = (
    Plugin("org.apache.kafka.connect.file.FileStreamSinkConnector", SINK, HERE + "file_stream:FileStreamSink"),
    Plugin("org.apache.kafka.connect.file.FileStreamSourceConnector", SOURCE, HERE + "file_stream:FileStreamSource"),
    Plugin("io.confluent.connect.jdbc.JdbcSinkConnector", SINK, HERE + "jdbc_sink:JdbcSink"),
    Plugin("io.confluent.connect.jdbc.JdbcSourceConnector", SOURCE, HERE + "jdbc_source:JdbcSource"),
    Plugin("io.debezium.connector.mariadb.MariaDbConnector", SOURCE, HERE + "cdc.mysql.connector:MARIADB"),
    Plugin("io.debezium.connector.mysql.MySqlConnector", SOURCE, HERE + "cdc.mysql.connector:MYSQL"),
    Plugin(
        "io.debezium.connector.postgresql.PostgresConnector", SOURCE, HERE + "cdc.postgres.connector:PostgresSource"
    ),
    Plugin("io.confluent.connect.http.HttpSinkConnector", SINK, HERE + "http_sink:HttpSink"),
    Plugin("io.confluent.connect.http.HttpSourceConnector", SOURCE, HERE + "http_source:HttpSource"),
    Plugin("io.confluent.connect.s3.S3SinkConnector", SINK, HERE + "files_sink:S3"),
    Plugin("moldau.connect.FolderSinkConnector", SINK, HERE + "files_sink:FOLDER"),
    Plugin("com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector", SINK, HERE + "redis:RedisSink"),
    Plugin("com.redis.kafka.connect.RedisStreamSourceConnector", SOURCE, HERE + "redis:RedisStreamSource"),
    Plugin("io.confluent.connect.mqtt.MqttSinkConnector", SINK, HERE + "mqtt:MqttSink"),
    Plugin("io.confluent.connect.mqtt.MqttSourceConnector", SOURCE, HERE + "mqtt:MqttSource"),
    Plugin(
        "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector", SINK, HERE + "elasticsearch:ElasticsearchSink"
    ),
    Plugin("moldau.connect.StreamingHttpSourceConnector", SOURCE, HERE + "streaming:StreamingHttpSource"),
    Plugin("moldau.connect.WebSocketSourceConnector", SOURCE, HERE + "streaming:WebSocketSource"),
    Plugin("io.confluent.connect.syslog.SyslogSourceConnector", SOURCE, HERE + "syslog:SyslogSource"),
    Plugin("moldau.connect.SocketSourceConnector", SOURCE, HERE + "syslog:SocketSource"),
    *(
        Plugin(f"com.github.jcustenborder.kafka.connect.spooldir.SpoolDir{kind}SourceConnector", SOURCE, HERE + made)
        for kind, made in (
            ("Csv", "spool_dir:CSV"),
            ("Json", "spool_dir:JSON"),
            ("SchemaLessJson", "spool_dir:SCHEMALESS_JSON"),
            ("BinaryFile", "spool_dir:BINARY"),
            ("LineDelimited", "spool_dir:LINES"),
            ("Avro", "spool_dir:AVRO"),
            ("Parquet", "spool_dir:PARQUET"),
        )
    ),
    *(
        Plugin(f"io.confluent.connect.sftp.Sftp{kind}SourceConnector", SOURCE, HERE + f"spool_dir:SFTP_{name}")
        for kind, name in (("Csv", "CSV"), ("Json", "JSON"), ("LineDelimited", "LINES"))
    ),
    Plugin("io.confluent.connect.sftp.SftpSinkConnector", SINK, HERE + "files_sink:SFTP"),
    Plugin("io.confluent.connect.hdfs3.Hdfs3SinkConnector", SINK, HERE + "files_sink:HDFS"),
    Plugin("io.confluent.connect.hdfs.HdfsSinkConnector", SINK, HERE + "files_sink:HDFS"),
    Plugin("org.apache.iceberg.connect.IcebergSinkConnector", SINK, HERE + "lake_iceberg:ICEBERG"),
    Plugin("moldau.connect.DeltaSinkConnector", SINK, HERE + "lake_delta:DELTA"),
    Plugin("moldau.connect.AirbyteSourceConnector", SOURCE, HERE + "airbyte_source:AIRBYTE"),
    Plugin("moldau.connect.DltSourceConnector", SOURCE, HERE + "dlt_source:DLT"),
    Plugin("moldau.connect.SingerSourceConnector", SOURCE, HERE + "singer_source:SINGER"),
    Plugin("moldau.connect.SingerSinkConnector", SINK, HERE + "singer_target:SingerSink"),
    Plugin("io.confluent.kafka.connect.datagen.DatagenConnector", SOURCE, HERE + "datagen:Datagen"),
)


def connectors() -> Iterator[Plugin]:
    """Yield the connectors in the order in which Connect lists them: sinks first, then by name."""
    others = [one for one in map(_offered, installed().values()) if isinstance(one, Plugin)]
    jars = of_jars()
    names = {one.class_name for one in jars}
    known = [*jars, *(one for one in (*CONNECTORS, *registered.values(), *others) if one.class_name not in names)]
    return iter(sorted(known, key=lambda one: (one.kind != SINK, one.class_name)))


def find(name: str) -> Plugin | None:
    """Return the connector of a name, as configs have it."""
    known = next((one for one in (*of_jars(), *CONNECTORS, *registered.values()) if name in one.names), None)
    if known is None and (entry := _entry(name)) is not None:
        offered = _offered(entry)
        return offered if isinstance(offered, Plugin) else None
    return known


# Connectors of jars. Somebody has installed them, so they come before those of ours that have the same name.

JAVA = "java"


def of_jars() -> list[Plugin]:
    return [Plugin(one.class_name, one.kind, JAVA, one.version) for one, _ in catalogue.found(SOURCE, SINK)]


def _of_jar(class_name: str) -> Connector:
    return _made_of(*next(pair for pair in catalogue.found(SOURCE, SINK) if pair[0].class_name == class_name))


@lru_cache(maxsize=256)
def _made_of(entry: catalogue.Entry, host: Host) -> Connector:
    from moldau.connect.jvm.connector import JavaConnector

    return cast(Connector, JavaConnector(host, entry))  # it asks the plugin for its attributes, when they are needed


# Connectors of other packages: entry points of a group, written with `moldau.connect.sdk`.

GROUP = "moldau.connectors"
registered: dict[str, Plugin] = {}  # what a program has added to its own worker


def register(connector: Source | Sink) -> Plugin:
    """Let configs of this process name a connector that no installed package offers."""
    made = Plugin(connector.task_class, connector.kind, f"{connector.__module__}:{connector.__name__}", "0")
    registered[made.class_name] = made
    _loaded_here[made.made_by] = connector
    return made


_loaded_here: dict[str, Connector] = {}


@cache
def installed() -> dict[str, EntryPoint]:
    """Return what installed packages offer, by name, without importing it."""
    return {one.name: one for one in entry_points(group=GROUP)}


@cache
def _offered(entry: EntryPoint) -> Plugin | str:
    """Return a connector of another package, or the reason why it cannot be loaded."""
    from moldau.connect.sdk import loaded

    try:
        connector = loaded(entry.load(), entry.value)
    except (ImportError, AttributeError, TypeError, ConfigError) as error:
        log.warning("the connector %s cannot be loaded from %s: %s", entry.name, entry.value, error)
        return f"The connector {entry.name} cannot be loaded from {entry.value}: {error}"
    version = entry.dist.version if entry.dist else "0"
    return Plugin(_class_of(entry), connector.kind, entry.value, version)


def _class_of(entry: EntryPoint) -> str:
    return entry.value.replace(":", ".")


def _entry(name: str) -> EntryPoint | None:
    entries = installed()
    return entries.get(name) or next((one for one in entries.values() if _class_of(one) == name), None)


def version_of(config: Mapping[str, str | None]) -> str | None:
    found = find(config.get("connector.class") or "")
    return found.version if found else None


def not_found(name: str) -> str:
    """Say that there is no such connector, in Connect's words, or why an installed one cannot be had."""
    if (entry := _entry(name)) is not None and isinstance(why := _offered(entry), str):
        return why
    shown = ", ".join(
        f"PluginDesc{{klass=class {one.class_name}, name='{one.class_name}', version='{one.version}', "
        f"encodedVersion={one.version}, type={one.kind}, typeName='{one.kind}', location='classpath'}}"
        for one in connectors()
    )
    return (
        f"Failed to find any class that implements Connector and which name matches {name}, available connectors are: "
        f"{shown}"
    )


# Converters, transforms and predicates.


def converter_names(role: str) -> list[str]:
    """Return the classes of converters for `key`, `value` or `header`."""
    from moldau.connect.converters import CONVERTERS

    ours = {one.class_name for one in CONVERTERS if role == "header" or not one.only_headers}
    kind = "header_converter" if role == "header" else "converter"
    return sorted(ours | {one.class_name for one, _ in catalogue.found(kind)})


def definition_of(name: str) -> ConfigDef | None:
    """Return the settings of a converter, transform or predicate; None if there is none of the name."""
    from moldau.connect.chain import predicate_class, transform_class
    from moldau.connect.converters import converter_class

    if (converter := converter_class(name)) is not None:
        return converter.settings
    found = transform_class(name) or predicate_class(name)
    return found[1].settings if found else None


OTHERS = ("transformation", "predicate", "converter", "header_converter")


def listed(*, connectors_only: bool) -> list[dict[str, str]]:
    """Return the plugins as Connect lists them."""
    rows = [(one.class_name, one.kind, one.version) for one in connectors()]
    if not connectors_only:
        from moldau.connect.predicates import PREDICATES
        from moldau.connect.transforms import TRANSFORMS

        rows += [(name, "transformation", VERSION) for one in TRANSFORMS for name in one.class_names]
        rows += [(name, "predicate", VERSION) for one in PREDICATES for name in one.class_names]
        of_jars = {one.class_name: one for one, _ in catalogue.found(*OTHERS)}
        rows += [(one.class_name, one.kind, one.version) for one in of_jars.values() if one.kind in OTHERS[:2]]
        for kind, role in (("converter", "value"), ("header_converter", "header")):
            rows += [
                (name, kind, of_jars[name].version if name in of_jars else VERSION) for name in converter_names(role)
            ]
    return [{"class": name, "type": kind, "version": version} for name, kind, version in rows]
