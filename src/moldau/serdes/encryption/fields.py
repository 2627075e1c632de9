"""Fields to ciphertexts and back, with keys that the registry keeps: what rules of type ENCRYPT do.

A string becomes base64 of its ciphertext, bytes the ciphertext itself. Where data keys expire
(`encrypt.dek.expiry.days`), the version of the key stands before the ciphertext, behind a zero byte.
"""

from __future__ import annotations

import base64
import binascii
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.serdes.context import SerdeError
from moldau.serdes.encryption import ciphers
from moldau.serdes.encryption.ciphers import Algorithm
from moldau.serdes.encryption.kms import Wrapper
from moldau.serdes.rules import BYTES, READ, STRING, WRITE, Rule

KEK, KMS_TYPE, KMS_KEY = "encrypt.kek.name", "encrypt.kms.type", "encrypt.kms.key.id"
ALGORITHM, EXPIRY = "encrypt.dek.algorithm", "encrypt.dek.expiry.days"
LATEST, FIRST = -1, 1
DAY_MS = 24 * 60 * 60 * 1000
VERSION = struct.Struct(">xi")
NOT_FOUND, CONFLICT = 404, 409
TAKEN: dict[str, tuple[type, ...]] = {STRING: (str,), BYTES: (bytes, bytearray, memoryview)}


@dataclass(slots=True)
class Encryption:
    """Encrypts and decrypts fields. `keys` is confluent-kafka's client of the registry's keys, which caches them.

    `settings` are those of the key management service. They and keys never stand in a `repr`.
    """

    keys: Any
    ask: Callable[..., Any] = field(repr=False)
    settings: Mapping[str, str] = field(repr=False)
    clock: Callable[[], float] = time.time
    _plain: dict[tuple[str, str, str, int], bytes] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def apply(self, rule: Rule, mode: str, subject: str, kind: str, value: Any) -> Any:
        """Encrypt a value that is written, or decrypt one that is read."""
        if value is None:
            return None
        if not isinstance(value, TAKEN.get(kind, ())):
            raise SerdeError(f"a {kind} as {type(value).__name__} cannot be encrypted, only strings and bytes")
        algorithm = ciphers.algorithm(rule.param(ALGORITHM))
        return (self._encrypted if mode == WRITE else self._decrypted)(rule, subject, algorithm, kind, value)

    def _encrypted(self, rule: Rule, subject: str, algorithm: Algorithm, kind: str, value: Any) -> Any:
        plain = value.encode() if kind == STRING else bytes(value)
        days = _days(rule)
        version, key = self._key(rule, WRITE, subject, algorithm, LATEST if days else FIRST)
        data = ciphers.encrypt(algorithm, key, plain)
        if days:
            data = VERSION.pack(version) + data
        return base64.b64encode(data).decode() if kind == STRING else data

    def _decrypted(self, rule: Rule, subject: str, algorithm: Algorithm, kind: str, value: Any) -> Any:
        try:
            data = base64.b64decode(value, validate=True) if kind == STRING else bytes(value)
        except (binascii.Error, ValueError):
            raise SerdeError("the field is no ciphertext: it is not base64") from None
        version = FIRST
        if _days(rule):
            if len(data) < VERSION.size:
                raise SerdeError("the field is no ciphertext: it is too short")
            (version,), data = VERSION.unpack_from(data), data[VERSION.size :]
        plain = ciphers.decrypt(algorithm, self._key(rule, READ, subject, algorithm, version)[1], data)
        if kind != STRING:
            return plain
        try:
            return plain.decode()
        except UnicodeDecodeError:
            raise SerdeError("the decrypted field is no text") from None

    def _key(self, rule: Rule, mode: str, subject: str, algorithm: Algorithm, version: int) -> tuple[int, bytes]:
        """Return the version of a data key and the key; one that is missing or too old is made, to write with."""
        with self._lock:
            kek = self._kek(rule, mode, subject)
            dek = self._dek(kek, subject, algorithm, version, deleted=mode == READ)
            if mode == WRITE and (dek is None or self._is_old(rule, dek)):
                dek = self._new(kek, subject, algorithm, dek.version + 1 if dek else FIRST, version)
            if dek is None:
                raise SerdeError(f"there is no data key of {kek.name} for {subject}")
            return dek.version, self._material(kek, dek)

    def _kek(self, rule: Rule, mode: str, subject: str) -> Any:
        name, kind, key_id = rule.param(KEK), rule.param(KMS_TYPE), rule.param(KMS_KEY)
        if not name:
            raise SerdeError(f"the rule names no key: {KEK} is missing")
        found = self._found(self.keys.get_kek, name)
        if found is None:
            if mode == READ or not kind or not key_id:
                raise SerdeError(f"there is no key encryption key {name}")
            found = self._stored(self.keys.register_kek, name, kind, key_id) or self._found(self.keys.get_kek, name)
        for wanted, has in ((kind, found.kms_type), (key_id, found.kms_key_id)):
            if wanted and wanted != has:
                raise SerdeError(f"the key encryption key {name} is of {has}, and the rule says {wanted}")
        return found

    def _dek(self, kek: Any, subject: str, algorithm: Algorithm, version: int, *, deleted: bool = False) -> Any:
        found = self._found(self.keys.get_dek, kek.name, subject, _named(algorithm), version, deleted)
        return found if found is not None and found.encrypted_key_material else None

    def _new(self, kek: Any, subject: str, algorithm: Algorithm, version: int, asked: int) -> Any:
        encrypted = None
        if not kek.shared:
            encrypted = base64.b64encode(self._wrapper(kek).encrypt(ciphers.new_key(algorithm))).decode()
        made = self._stored(self.keys.register_dek, kek.name, subject, encrypted, _named(algorithm), version)
        return made or self._dek(kek, subject, algorithm, asked)  # another was quicker

    def _is_old(self, rule: Rule, dek: Any) -> bool:
        days = _days(rule)
        return bool(days) and self.clock() * 1000 - (dek.ts or 0) > days * DAY_MS

    def _material(self, kek: Any, dek: Any) -> bytes:
        if dek.key_material:
            return base64.b64decode(dek.key_material)
        place = (kek.name, dek.subject, str(dek.algorithm), dek.version)
        if place not in self._plain:
            self._plain[place] = self._wrapper(kek).decrypt(base64.b64decode(dek.encrypted_key_material))
        return self._plain[place]

    def _wrapper(self, kek: Any) -> Wrapper:
        props = kek.kms_props.properties if kek.kms_props is not None else {}
        return Wrapper(kek.kms_type, kek.kms_key_id, props, self.settings)

    def _found(self, call: Callable[..., Any], *given: Any) -> Any:
        return self._unless(NOT_FOUND, call, *given)

    def _stored(self, call: Callable[..., Any], *given: Any) -> Any:
        return self._unless(CONFLICT, call, *given)

    def _unless(self, status: int, call: Callable[..., Any], *given: Any) -> Any:
        """Ask the registry; None where it answers with this status."""
        try:
            return self.ask(call, *given)
        except SerdeError as error:
            if getattr(error, "status", 0) == status:
                return None
            raise


def _days(rule: Rule) -> int:
    text = rule.param(EXPIRY) or "0"
    if not text.isdecimal():
        raise SerdeError(f"{EXPIRY} must be a number of days, not {text!r}")
    return int(text)


def _named(algorithm: Algorithm) -> Any:
    from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import DekAlgorithm

    return DekAlgorithm(algorithm.name)


def encryption(registry: Any, settings: Mapping[str, str]) -> Encryption:
    """Return what encrypts with the keys of a registry (`serdes.registry.Registry`)."""
    from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import DekRegistryClient

    return Encryption(DekRegistryClient.new_client(dict(registry.client.config())), registry.ask, settings)
