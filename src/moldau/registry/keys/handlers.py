"""Requests about keys, as handlers: each makes a query or a command of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moldau.http import HttpError
from moldau.registry import names
from moldau.registry.calls import Call as RegistryCall
from moldau.registry.calls import field_of
from moldau.registry.errors import refuse as refuse_version
from moldau.registry.errors import unprocessable
from moldau.registry.keys import commands
from moldau.registry.keys.commands import Change, Keys
from moldau.registry.keys.errors import refuse
from moldau.registry.keys.records import Dek, Kek, Record, answer
from moldau.serdes.encryption.ciphers import ALGORITHMS, DEFAULT
from moldau.topicstore import Store as TopicStore

FIRST = 1  # version


@dataclass(slots=True, kw_only=True)
class Call(RegistryCall):
    """A request to an endpoint about keys."""

    keys: Keys
    topic: TopicStore[Record]  # where changes are written

    @property
    def name(self) -> str:
        return self.path["name"]

    @property
    def deleted(self) -> bool:
        return self.flag("deleted")

    @property
    def algorithm(self) -> str:
        return _algorithm(self.text("algorithm") or None)

    def found(self, *, deleted: bool) -> list[Dek]:
        """Return the data keys that the path names: a version, or all that its subject has."""
        version = self.version if "version" in self.path else None
        place = (self.name, names.normal(self.path["subject"]), self.algorithm, version)
        return list(commands.find_deks(self.keys, *place, deleted=deleted))


def _algorithm(name: Any) -> str:
    if name is not None and name not in ALGORITHMS:
        raise HttpError(404)  # what a parameter that cannot be read is answered with
    return name or DEFAULT


def list_keks(call: Call) -> list[str]:
    prefixes = tuple(call.query.getlist("subjectPrefix"))
    if not prefixes:
        found = [kek.name for kek in call.keys.store.keks(deleted=call.deleted)]
    else:
        deks = call.keys.store.deks(deleted=call.deleted)
        found = sorted({dek.kek for dek in deks if dek.subject.startswith(prefixes)})
    return call.page(found, "kek")


def show_kek(call: Call) -> Any:
    return answer(commands.known_kek(call.keys, call.name, deleted=call.deleted))


def list_subjects(call: Call) -> list[str]:
    commands.known_kek(call.keys, call.name, deleted=call.deleted)
    found = sorted({dek.subject for dek in call.keys.store.deks(call.name, deleted=call.deleted)})
    return call.page(found, "dek.subject")


def show_dek(call: Call) -> Any:
    """Show a version, the last one unless the path names another."""
    return call.keys.shown(call.found(deleted=call.deleted)[-1])


def list_versions(call: Call) -> list[int]:
    commands.known_kek(call.keys, call.name, deleted=call.deleted)
    place = (call.name, names.normal(call.path["subject"]), call.algorithm)
    found = call.keys.store.versions(*place, deleted=call.deleted)
    return call.page([dek.version for dek in found], "dek.version")


def try_kek(call: Call) -> Any:
    return commands.try_kek(call.keys, call.name)


def create_kek(call: Call) -> Change:
    body = call.object()
    commands.check_name(body.get("name"))
    if not field_of(body, "kmsKeyId", str):
        raise refuse(42271, "kmsKeyId")
    if field_of(body, "kmsType", str) is None:
        raise refuse(42271, "kmsType")
    given = Kek(
        body["name"],
        body["kmsType"],
        body["kmsKeyId"],
        _props(body) or (),
        field_of(body, "doc", str),
        _flag(body, "shared"),
        _flag(body, "deleted"),
    )
    return commands.create_kek(call.keys, given, test=call.flag("testSharing"))


def update_kek(call: Call) -> Change:
    body, changed = call.object(), dict[str, Any]()
    if "kmsProps" in body:
        changed["kms_props"] = _props(body)
    if "doc" in body:
        changed["doc"] = field_of(body, "doc", str)
    if "shared" in body:
        changed["shared"] = _flag(body, "shared")
    commands.check_name(call.name)
    return commands.update_kek(call.keys, call.name, changed, test=call.flag("testSharing"))


def delete_kek(call: Call) -> Change:
    return commands.delete_kek(call.keys, call.name, permanent=call.flag("permanent"))


def undelete_kek(call: Call) -> Change:
    return commands.undelete_kek(call.keys, call.name)


def create_dek(call: Call) -> Change:
    """Store a data key; its subject stands in the path, or with older clients in the body."""
    body = call.object()
    commands.check_name(call.name)
    subject = commands.check_subject(call.path.get("subject") or body.get("subject"))
    version = body.get("version")
    if version is not None and (not isinstance(version, int) or isinstance(version, bool) or version < FIRST):
        raise refuse_version(42202, version)
    given = Dek(
        call.name,
        names.normal(subject),
        _algorithm(field_of(body, "algorithm", str)),
        version or FIRST,
        field_of(body, "encryptedKeyMaterial", str),
        _flag(body, "deleted"),
    )
    return commands.create_dek(call.keys, given, rewrap=call.flag("rewrap"))


def delete_deks(call: Call) -> Change:
    return commands.delete_deks(call.keys, call.found(deleted=True), permanent=call.flag("permanent"))


def undelete_deks(call: Call) -> Change:
    return commands.undelete_deks(call.keys, call.name, call.found(deleted=True))


def _flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name)
    if value is not None and not isinstance(value, bool):
        raise unprocessable(f"{name} cannot be {value!r}.")
    return bool(value)


def _props(body: dict[str, Any]) -> tuple[tuple[str, str], ...] | None:
    value = body.get("kmsProps")
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise unprocessable("kmsProps has texts by name.")
    return tuple(sorted(value.items()))
