"""Records of the topic `_schemas`, in Confluent's format: JSON keys and values, empty fields left out.

A key says what the record is about, and compaction keeps the last value of each. Keys are compared as bytes by the
cleaner, so fields stand in Confluent's order, and so does `magic`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from moldau import client
from moldau.serdes.schemas import Reference
from moldau.topicstore import Codec

SCHEMA, CONFIG, MODE, CONTEXT = "SCHEMA", "CONFIG", "MODE", "CONTEXT"
DELETE_SUBJECT, CLEAR_SUBJECT, NOOP = "DELETE_SUBJECT", "CLEAR_SUBJECT", "NOOP"
AVRO = "AVRO"
TENANT = "default"

Json = dict[str, Any]


class Record(NamedTuple):
    """A record: the key's fields, and the value's, or None to delete what is there. One that was read has a time."""

    key: Json
    value: Json | None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A schema as a version of a subject. `timestamp` is that of its record."""

    subject: str
    version: int
    id: int
    schema: str
    type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: Json | None = None
    rules: Json | None = None
    deleted: bool = False
    timestamp: int | None = field(default=None, compare=False)
    md5: bytes = field(default=b"", compare=False)

    def __post_init__(self) -> None:
        if not self.md5:
            object.__setattr__(self, "md5", digest(self))

    @property
    def guid(self) -> str:
        return str(UUID(bytes=self.md5))

    def but(self, **changes: Any) -> Version:
        """Copy it with other fields, and compute its digest again."""
        return replace(self, **({"md5": b""} | changes))


def digest(version: Version) -> bytes:
    """Return the GUID of a schema: MD5 over schema, references, metadata and rules, as in Confluent's registry."""
    md5 = hashlib.md5(version.schema.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in version.references:
        md5.update(f"{reference.name}{reference.subject}".encode() + struct.pack(">i", reference.version))
    if version.metadata is not None:
        md5.update(b"\1" + _metadata_bytes(version.metadata))
    if version.rules is not None:
        md5.update(b"\1" + _rules_bytes(version.rules))
    return md5.digest()


def _metadata_bytes(metadata: Json) -> bytes:
    tags = "".join(key + "".join(sorted(values)) for key, values in sorted((metadata.get("tags") or {}).items()))
    pairs = "".join(f"{key}{value}" for key, value in sorted((metadata.get("properties") or {}).items()))
    return f"{tags}{pairs}{''.join(sorted(metadata.get('sensitive') or ()))}".encode("utf-8", "surrogatepass")


def _rules_bytes(rules: Json) -> bytes:
    every = [rule for kind in ("migrationRules", "domainRules", "encodingRules") for rule in rules.get(kind) or ()]
    return b"".join(map(_rule_bytes, every)) + (rules.get("enableAt") or "").encode()


def _rule_bytes(rule: Json) -> bytes:
    head = "".join(rule.get(name) or "" for name in ("name", "doc", "kind", "mode", "type"))
    tags = "".join(sorted(rule.get("tags") or ()))
    params = "".join(f"{key}{value}" for key, value in sorted((rule.get("params") or {}).items()))
    tail = "".join(rule.get(name) or "" for name in ("expr", "onSuccess", "onFailure"))
    return f"{head}{tags}{params}{tail}".encode("utf-8", "surrogatepass") + (b"\1" if rule.get("disabled") else b"")


def schema_key(subject: str, version: int) -> Json:
    return {"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1}


def subject_key(kind: str, subject: str | None) -> Json:
    """Return the key of a CONFIG, MODE, DELETE_SUBJECT or CLEAR_SUBJECT; no subject means the default context."""
    return {"keytype": kind, "subject": subject, "magic": 0}


def schema_record(version: Version) -> Record:
    return Record(schema_key(version.subject, version.version), _schema_value(version))


def schema_tombstone(version: Version) -> Record:
    return Record(schema_key(version.subject, version.version), None)


def config_record(subject: str | None, config: Json | None) -> Record:
    return Record(subject_key(CONFIG, subject), config if config is None else {"subject": subject, **config})


def mode_record(subject: str | None, mode: str | None) -> Record:
    return Record(subject_key(MODE, subject), mode if mode is None else {"subject": subject, "mode": mode})


def context_record(context: str, *, present: bool = True) -> Record:
    fields = {"tenant": TENANT, "context": context}
    return Record({"keytype": CONTEXT, **fields, "magic": 0}, fields if present else None)


def delete_subject_record(subject: str, version: int) -> Record:
    return Record(subject_key(DELETE_SUBJECT, subject), {"subject": subject, "version": version})


def clear_subject_record(subject: str | None) -> Record:
    return Record(subject_key(CLEAR_SUBJECT, subject), {"subject": subject})


NOOP_RECORD = Record({"keytype": NOOP, "magic": 0}, None)


def _schema_value(version: Version) -> Json:
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "schemaType": None if version.type == AVRO else version.type,
        "references": [reference_json(reference) for reference in version.references],
        "metadata": version.metadata,
        "ruleSet": version.rules,
        "schema": version.schema,
        "deleted": version.deleted,
    }


def reference_json(reference: Reference) -> Json:
    return {"name": reference.name, "subject": reference.subject, "version": reference.version}


def encode(fields: Mapping[str, Any]) -> bytes:
    """Write JSON without empty fields; `deleted` and numbers stay whatever they are."""
    kept = {name: value for name, value in fields.items() if value is not None and value != [] and value != ""}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode(data: bytes) -> Json:
    """Read the fields of a key or value; ValueError if it is not a JSON object."""
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("a record of the registry is a JSON object")
    return fields


def to_bytes(record: Record) -> tuple[bytes, bytes | None]:
    return encode(record.key), None if record.value is None else encode(record.value)


def of_bytes(record: client.Record) -> Record:
    value = None if record.value is None else decode(record.value)
    return Record(decode(record.key or b""), value, record.timestamp)


CODEC = Codec(to_bytes, of_bytes)


def version_of(value: Json, timestamp: int | None = None) -> Version:
    """Read the value of a SCHEMA record; KeyError or TypeError if it is not one."""
    rows = value.get("references") or ()
    return Version(
        subject=value["subject"],
        version=int(value["version"]),
        id=int(value["id"]),
        schema=value["schema"],
        type=value.get("schemaType") or AVRO,
        references=tuple(Reference(row["name"], row["subject"], int(row["version"])) for row in rows),
        metadata=value.get("metadata"),
        rules=value.get("ruleSet"),
        deleted=bool(value.get("deleted")),
        timestamp=timestamp,
        md5=base64.b64decode(value["md5"]) if value.get("md5") else b"",
    )
