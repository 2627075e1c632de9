"""What changes keys, decided on the store: each command returns the records to write and the answer."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from moldau.registry.keys.errors import refuse
from moldau.registry.keys.records import Dek, Kek, Key, Record, answer
from moldau.registry.keys.store import KeyStore
from moldau.registry.store import LATEST
from moldau.serdes.encryption import ciphers
from moldau.serdes.encryption.kms import KmsError, Wrapper

# Types of services that are spelled in several ways, by how they begin.
NORMAL = {"aws": "aws-kms", "azure": "azure-kms", "gcp": "gcp-kms"}
# How the id of a key begins in services that have a form for it.
BEGINNINGS = {
    "aws-kms": ("arn:aws:kms:",),
    "azure-kms": ("https://",),
    "gcp-kms": ("projects/",),
    "hcvault": ("https://", "http://"),
}
MAX_NAME = 256


class Change(NamedTuple):
    """Records to write, and the answer once they are read back. The answer is made then: it has the record's time."""

    records: Sequence[Record]
    answer: Callable[[], Any]


@dataclass(slots=True)
class Keys:
    """The keys, and what their commands are bound by. `settings` are those of the services of shared keys."""

    store: KeyStore
    most: int
    settings: Mapping[str, str]

    def wrapper(self, kek: Kek) -> Wrapper:
        return Wrapper(kek.kms_type, kek.kms_key_id, dict(kek.kms_props or ()), self.settings)

    def material(self, dek: Dek) -> str | None:
        """Return the key itself, which only a shared KEK lets the registry decrypt."""
        kek = self.store.kek(dek.kek, deleted=True)
        if kek is None or not kek.shared:
            return None
        try:
            return _text(self.wrapper(kek).decrypt(base64.b64decode(dek.encrypted or "", validate=True)))
        except (KmsError, binascii.Error) as error:
            raise refuse(50070, error) from None

    def shown(self, dek: Dek) -> Any:
        return answer(dek, self.material(dek))


def check_name(name: Any) -> str:
    """Refuse names that are not letters, digits, _ and -, beginning with a letter or _."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not (name[0].isalpha() or name[0] == "_"):
        raise refuse(42271, "name")
    if not all(each.isalnum() or each in "_-" for each in name):
        raise refuse(42271, "name")
    return name


def check_subject(subject: Any) -> str:
    if not isinstance(subject, str) or not subject or any(ord(each) < 32 or 127 <= ord(each) < 160 for each in subject):
        raise refuse(42271, "subject")
    return subject


def known_kek(keys: Keys, name: str, *, deleted: bool = False) -> Kek:
    found = keys.store.kek(name, deleted=deleted)
    if found is None:
        raise refuse(40470, name)
    return found


def create_kek(keys: Keys, given: Kek, *, test: bool = False) -> Change:
    """Store a KEK; one that is there and deleted comes back if it is the same."""
    for kind, starts in BEGINNINGS.items():
        if given.kms_type == kind and not given.kms_key_id.startswith(starts):
            raise refuse(42271, "kmsKeyId")
    kinds = (kind for start, kind in NORMAL.items() if given.kms_type.lower().startswith(start))
    wanted = replace(given, kms_type=next(kinds, given.kms_type))
    if wanted.shared and test:
        _try(keys, wanted)
    if keys.store.count(Kek) > keys.most:
        raise refuse(40972, keys.most)
    old = keys.store.kek(wanted.name, deleted=True)
    if old is not None and (old.deleted == wanted.deleted or not old.is_like(wanted)):
        raise refuse(40971, wanted.name)
    return _put(keys, wanted)


def update_kek(keys: Keys, name: str, changed: Mapping[str, Any], *, test: bool = False) -> Change:
    old = known_kek(keys, name)
    wanted = replace(old, **changed)
    if wanted.shared and test:
        _try(keys, wanted)
    return _nothing(answer(old)) if wanted == old else _put(keys, wanted)


def try_kek(keys: Keys, name: str) -> Any:
    """Say whether the registry can use the key of a shared KEK."""
    kek = known_kek(keys, name)
    if not kek.shared:
        raise refuse(42271, "shared")
    _try(keys, kek)
    return answer(kek)


def delete_kek(keys: Keys, name: str, *, permanent: bool) -> Change:
    old = known_kek(keys, name, deleted=True)
    if keys.store.deks(name, deleted=permanent):
        raise refuse(42272, name)
    return _delete([old], name, permanent=permanent)


def undelete_kek(keys: Keys, name: str) -> Change:
    return _undelete([known_kek(keys, name, deleted=True)])


def create_dek(keys: Keys, given: Dek, *, rewrap: bool = False) -> Change:
    """Store a data key that its writer has encrypted; of a shared KEK the registry makes it itself."""
    kek = known_kek(keys, given.kek, deleted=given.deleted)
    if keys.store.count(Dek) > keys.most:
        raise refuse(40972, keys.most)
    old = keys.store.dek(given.kek, given.subject, given.algorithm, given.version, deleted=True)
    if old is not None and not rewrap and (old.deleted == given.deleted or not old.is_like(given)):
        raise refuse(40971, given.subject)
    if given.encrypted is not None:
        if kek.shared and old is not None:
            raise refuse(40971, given.subject)
    elif kek.shared:
        material = keys.material(old) if old else None
        given = replace(given, encrypted=_encrypted(keys, kek, given.algorithm, material))
        keys.material(given)  # a key that cannot be decrypted again is not stored
    else:
        raise refuse(42271, "encryptedKeyMaterial")
    return _put(keys, given)


def delete_deks(keys: Keys, found: Sequence[Dek], *, permanent: bool) -> Change:
    return _delete(found, found[0].subject, permanent=permanent)


def undelete_deks(keys: Keys, kek: str, found: Sequence[Dek]) -> Change:
    if known_kek(keys, kek, deleted=True).deleted:
        raise refuse(40472, kek)
    return _undelete(found)


def find_deks(
    keys: Keys, kek: str, subject: str, algorithm: str, version: int | None, *, deleted: bool
) -> Sequence[Dek]:
    """Return a version, the latest, or all of them (None); 40470 if there is none."""
    known_kek(keys, kek, deleted=deleted)
    if version is None or version == LATEST:
        found = keys.store.versions(kek, subject, algorithm, deleted=deleted)
        found = found if version is None else found[-1:]
    else:
        one = keys.store.dek(kek, subject, algorithm, version, deleted=deleted)
        found = [one] if one else []
    if not found:
        raise refuse(40470, subject)
    return found


def _put(keys: Keys, wanted: Key) -> Change:
    def stored() -> Any:
        if isinstance(wanted, Kek):
            return answer(keys.store.kek(wanted.name, deleted=True) or wanted)
        place = (wanted.kek, wanted.subject, wanted.algorithm, wanted.version)
        return keys.shown(keys.store.dek(*place, deleted=True) or wanted)

    return Change([Record(wanted)], stored)


def _nothing(said: Any = None) -> Change:
    return Change([], lambda: said)


def _delete(found: Sequence[Key], name: str, *, permanent: bool) -> Change:
    if permanent:
        if not all(key.deleted for key in found):
            raise refuse(40471, name)
        return Change([Record(key, gone=True) for key in found], lambda: None)
    return Change([Record(key.but_deleted(True)) for key in found if not key.deleted], lambda: None)


def _undelete(found: Sequence[Key]) -> Change:
    return Change([Record(key.but_deleted(False)) for key in found if key.deleted], lambda: None)


def _encrypted(keys: Keys, kek: Kek, algorithm: str, material: str | None = None) -> str:
    plain = base64.b64decode(material) if material else ciphers.new_key(ciphers.algorithm(algorithm))
    try:
        return _text(keys.wrapper(kek).encrypt(plain))
    except KmsError as error:
        raise refuse(50070, error) from None


def _try(keys: Keys, kek: Kek) -> None:
    """Make a key and decrypt it again: HttpError where the service of the KEK does not let the registry do so."""
    sample = ciphers.new_key(ciphers.algorithm(None))
    try:
        wrapper = keys.wrapper(kek)
        if wrapper.decrypt(wrapper.encrypt(sample)) != sample:
            raise KmsError("what it encrypts comes back as something else")
    except KmsError as error:
        raise refuse(50070, error) from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
