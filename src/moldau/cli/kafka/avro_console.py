"""What the Avro consoles share: schemas of keys and values, and encoding from and to Avro's JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from moldau.cli.kafka.flags import Usage
from moldau.rest.avro_json import to_bytes, to_json
from moldau.serdes.context import Context, SerdeError
from moldau.serdes.framing import SchemaRef, unframe
from moldau.serdes.registry import Registry, Schema

URL, DEFAULT_URL = "schema.registry.url", "http://localhost:8081"
PASSED_ON = ("basic.auth.user.info", "schema.registry.ssl.ca.location", "bearer.auth.token")
MOST_BYTES = 1 << 20  # the largest file with a schema
Encode = Callable[[bytes | None], bytes | None]


def connect(properties: Mapping[str, str]) -> Registry:
    """Connect to the registry that the properties name."""
    passed = {name: properties[name] for name in PASSED_ON if name in properties}
    return Registry.connect({URL: properties.get(URL, DEFAULT_URL), **passed})


def encoder(registry: Registry, properties: Mapping[str, str], topic: str, field: str) -> Encode:
    """Return a function that encodes Avro's JSON by the schema of `value.schema` or a property like it."""
    subject = f"{topic}-{field}"
    schema, ref = _schema(registry, properties, subject, field)
    prefix = ref.prefix()

    def encode(text: bytes | None) -> bytes | None:
        if text is None:
            return None
        try:
            return prefix + to_bytes(schema, json.loads(text))
        except ValueError:
            raise SerdeError(f"{text[:60]!r} is not JSON") from None

    return encode


def _schema(registry: Registry, properties: Mapping[str, str], subject: str, field: str) -> tuple[Schema, SchemaRef]:
    if number := properties.get(f"{field}.schema.id"):
        ref = SchemaRef(int(number))
        return registry.schema(ref, subject), ref
    if file := properties.get(f"{field}.schema.file"):
        with Path(file).open() as opened:
            text = opened.read(MOST_BYTES)
    elif not (text := properties.get(f"{field}.schema", "")):
        raise Usage(f"Must provide the Avro schema of the {field} by --property {field}.schema=...")
    schema = Schema("AVRO", text)
    if properties.get("use.latest.version", "").lower() == "true":
        known = registry.latest(subject)
        return known.schema, known.ref
    register = properties.get("auto.register", properties.get("auto.register.schemas", "true")).lower() != "false"
    return schema, registry.register(subject, schema, False) if register else registry.lookup(subject, schema, False)


def decoder(registry: Registry, topic: str, field: Literal["key", "value"]) -> Callable[[bytes], bytes]:
    """Return a function that decodes the bytes of a record to Avro's JSON."""

    def decode(data: bytes) -> bytes:
        ref, payload = unframe(data, Context(topic, field))
        document: Any = to_json(registry.schema(ref), payload)
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()

    return decode
