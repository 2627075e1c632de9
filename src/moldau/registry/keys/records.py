"""Records of the topic `_dek_registry_keys`, in Confluent's format: JSON keys and values, as its classes write them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from moldau import client
from moldau.registry.records import NOOP, TENANT, Json
from moldau.topicstore import Codec

KEK, DEK = "KEK", "DEK"


@dataclass(frozen=True, slots=True)
class Kek:
    """A key encryption key: which key of which service. `ts` is the time of its record."""

    name: str
    kms_type: str
    kms_key_id: str
    kms_props: tuple[tuple[str, str], ...] | None = ()
    doc: str | None = None
    shared: bool = False
    deleted: bool = False
    ts: int | None = field(default=None, compare=False)

    @property
    def id(self) -> Json:
        return {"tenant": TENANT, "name": self.name, "type": KEK}

    def but_deleted(self, deleted: bool) -> Kek:
        return replace(self, deleted=deleted)

    def is_like(self, other: Kek) -> bool:
        return replace(self, deleted=other.deleted) == other

    def fields(self) -> Json:
        return {
            "name": self.name,
            "kmsType": self.kms_type,
            "kmsKeyId": self.kms_key_id,
            "kmsProps": None if self.kms_props is None else dict(self.kms_props),
            "doc": self.doc,
            "shared": self.shared,
        }


@dataclass(frozen=True, slots=True)
class Dek:
    """A data encryption key, as its KEK's service has encrypted it."""

    kek: str
    subject: str
    algorithm: str
    version: int
    encrypted: str | None
    deleted: bool = False
    ts: int | None = field(default=None, compare=False)

    @property
    def id(self) -> Json:
        place = {"kekName": self.kek, "subject": self.subject, "algorithm": self.algorithm, "version": self.version}
        return {"tenant": TENANT, **place, "type": DEK}

    def but_deleted(self, deleted: bool) -> Dek:
        return replace(self, deleted=deleted)

    def is_like(self, other: Dek) -> bool:
        return replace(self, deleted=other.deleted) == other

    def fields(self) -> Json:
        return {
            "kekName": self.kek,
            "subject": self.subject,
            "version": self.version,
            "algorithm": self.algorithm,
            "encryptedKeyMaterial": self.encrypted,
        }


Key = Kek | Dek


@dataclass(frozen=True, slots=True)
class Record:
    """A key that is stored, or with `gone` no longer; None is a record that changes nothing."""

    key: Key | None
    gone: bool = False


NOOP_RECORD = Record(None)
KINDS = {Kek: KEK, Dek: DEK}


def answer(key: Key, material: str | None = None) -> Json:
    """Return a key as clients see it; `material` is the key itself, of a shared KEK alone."""
    more = {"keyMaterial": material, "ts": key.ts, "deleted": key.deleted or None}
    return _full({**key.fields(), **more})


def _full(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _text(fields: Json) -> bytes:
    return json.dumps(_full(fields), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def encode(record: Record) -> tuple[bytes, bytes | None]:
    key = record.key
    if key is None:
        return _text({"tenant": TENANT, "type": NOOP}), None
    value = None if record.gone else _text({**key.fields(), "deleted": key.deleted, "type": KINDS[type(key)]})
    return _text(key.id), value


def decode(record: client.Record) -> Record:
    """Read a record; ValueError, KeyError or TypeError if it is none."""
    place = json.loads(record.key or b"")
    if place.get("type") == NOOP:
        return NOOP_RECORD
    gone = record.value is None
    read = {KEK: _kek, DEK: _dek}[place["type"]]
    return Record(read({**place, **({} if gone else json.loads(record.value or b""))}, record.timestamp), gone)


def _kek(fields: Json, ts: int | None) -> Kek:
    props = fields.get("kmsProps")
    return Kek(
        fields["name"],
        fields.get("kmsType") or "",
        fields.get("kmsKeyId") or "",
        None if props is None else tuple(sorted(props.items())),
        fields.get("doc"),
        bool(fields.get("shared")),
        bool(fields.get("deleted")),
        ts,
    )


def _dek(fields: Json, ts: int | None) -> Dek:
    material, deleted = fields.get("encryptedKeyMaterial"), bool(fields.get("deleted"))
    place = (fields["kekName"], fields["subject"], fields["algorithm"], int(fields["version"]))
    return Dek(*place, material, deleted, ts)


CODEC = Codec(encode, decode)
