"""The rows of the converters with a schema registry; their code, and what it needs, is imported when one is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, between, non_empty_list, one_of_any_case
from moldau.connect.converters.kinds import TYPE, Converter, ConverterClass
from moldau.connect.errors import ConfigError

STRATEGY = "io.confluent.kafka.serializers.subject."
STRATEGY_NAMES = {
    STRATEGY + "TopicNameStrategy": "TOPIC",
    STRATEGY + "RecordNameStrategy": "RECORD",
    STRATEGY + "TopicRecordNameStrategy": "TOPIC_RECORD",
}


def _check_strategy(name: str, value: Any) -> None:
    if value not in STRATEGY_NAMES and value not in STRATEGY_NAMES.values():
        raise ConfigError(f"{name} must be one of {', '.join(STRATEGY_NAMES)}, not {value}")


REGISTRY = (
    Key(
        "schema.registry.url",
        Kind.LIST,
        importance=Importance.HIGH,
        validator=non_empty_list,
        doc="The addresses of the schema registry.",
    ),
    Key(
        "basic.auth.user.info",
        Kind.PASSWORD,
        "",
        Importance.MEDIUM,
        "User and password for the registry, user:password.",
    ),
    Key(
        "schema.registry.ssl.truststore.location",
        Kind.STRING,
        "",
        Importance.MEDIUM,
        "PEM file with the authorities of the registry's certificate.",
    ),
    Key(
        "auto.register.schemas",
        Kind.BOOLEAN,
        True,
        Importance.MEDIUM,
        "Whether a schema that the registry does not know is registered.",
    ),
    Key(
        "use.latest.version",
        Kind.BOOLEAN,
        False,
        Importance.LOW,
        "Whether to write with the latest schema of the subject.",
    ),
    Key("normalize.schemas", Kind.BOOLEAN, False, Importance.MEDIUM, "Whether schemas are normalized on registration."),
    Key(
        "key.subject.name.strategy",
        default=STRATEGY + "TopicNameStrategy",
        validator=_check_strategy,
        doc="How the subject of a key's schema is named.",
    ),
    Key(
        "value.subject.name.strategy",
        default=STRATEGY + "TopicNameStrategy",
        validator=_check_strategy,
        doc="How the subject of a value's schema is named.",
    ),
    Key(
        "schemas.cache.config", Kind.INT, 1000, Importance.LOW, "How many schemas are remembered.", validator=between(1)
    ),
)


def _make_avro(settings: Mapping[str, Any]) -> Converter:
    from moldau.connect.converters.avro import make_avro

    return make_avro(settings)


def _make_json_schema(settings: Mapping[str, Any]) -> Converter:
    from moldau.connect.converters.json_schema import make_json_schema

    return make_json_schema(settings)


def _make_protobuf(settings: Mapping[str, Any]) -> Converter:
    from moldau.connect.converters.protobuf import make_protobuf

    return make_protobuf(settings)


AVRO = ConverterClass(
    "io.confluent.connect.avro.AvroConverter",
    "Writes values as Avro, with their schemas in the registry.",
    ConfigDef(
        [
            TYPE,
            *REGISTRY,
            Key(
                "connect.meta.data",
                Kind.BOOLEAN,
                True,
                Importance.LOW,
                "Whether names, versions and parameters of Connect's schemas are kept as properties.",
            ),
            Key(
                "enhanced.avro.schema.support",
                Kind.BOOLEAN,
                False,
                Importance.MEDIUM,
                "Whether enums stay enums, and branches of unions have full names.",
            ),
        ]
    ),
    _make_avro,
)
JSON_SCHEMA = ConverterClass(
    "io.confluent.connect.json.JsonSchemaConverter",
    "Writes values as JSON, with their schemas in the registry.",
    ConfigDef(
        [
            TYPE,
            *REGISTRY,
            Key(
                "decimal.format",
                Kind.STRING,
                "BASE64",
                Importance.LOW,
                "How decimals are written: BASE64 or NUMERIC. Both are read.",
                validator=one_of_any_case("BASE64", "NUMERIC"),
            ),
        ]
    ),
    _make_json_schema,
)
PROTOBUF = ConverterClass(
    "io.confluent.connect.protobuf.ProtobufConverter",
    "Writes structs as Protobuf, with their schemas in the registry.",
    ConfigDef(
        [
            TYPE,
            *REGISTRY,
            *(
                Key(name, Kind.BOOLEAN, default, Importance.MEDIUM, doc)
                for name, default, doc in (
                    ("enhanced.protobuf.schema.support", False, "Whether structs have the full names of messages."),
                    ("scrub.invalid.names", False, "Whether names that Protobuf does not take are changed."),
                    ("wrapper.for.nullables", False, "Whether optional fields are wrapped, so that null is kept."),
                    ("optional.for.nullables", False, "Whether optional fields are marked so, and null is kept."),
                    ("generate.index.for.unions", True, "Whether the field of a oneof ends with its index."),
                )
            ),
        ]
    ),
    _make_protobuf,
)
