"""Metadata and rules that go with schemas: read, merged, compared.

They are kept in one form, whatever a request leaves out or in which order it names things, so that equal ones have one
GUID, that of Confluent's registry.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from moldau.registry.errors import refuse, unprocessable
from moldau.registry.records import Json

VERSION = "confluent:version"
KINDS = ("migrationRules", "domainRules", "encodingRules")
MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
DOMAIN = ("WRITE", "READ", "WRITEREAD")
MANY_ACTIONS = ("UPDOWN", "WRITEREAD")
LONGEST_NAME = 256
TEXTS = ("name", "doc", "kind", "mode", "type", "expr", "onSuccess", "onFailure")


def checked_metadata(given: Any) -> Json | None:
    """Check metadata: tags (lists by path), properties (texts) and names of sensitive properties."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise unprocessable("metadata must be an object.")
    tags, properties = _mapping(given, "tags"), _mapping(given, "properties")
    every = [*tags.values(), list(properties.values()), given.get("sensitive") or []]
    if not all(map(_is_texts, every)):
        raise unprocessable("metadata has tags (lists of texts), properties (texts) and sensitive (a list of texts).")
    found = {
        "tags": {path: sorted(set(words)) for path, words in sorted(tags.items())},
        "properties": dict(sorted(properties.items())),
        "sensitive": sorted(set(given.get("sensitive") or ())),
    }
    return {name: part for name, part in found.items() if part}


def _mapping(holder: Json, name: str) -> Json:
    found = {} if holder.get(name) is None else holder[name]
    if not isinstance(found, dict):
        raise unprocessable(f"{name} must be an object.")
    return found


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def checked_rules(given: Any) -> Json | None:
    """Check rules; 42210 where a rule has no name or type, or stands among the wrong ones."""
    if given is None:
        return None
    if not isinstance(given, dict) or any(not isinstance(given.get(kind) or [], list) for kind in KINDS):
        raise refuse(42210, f"A rule set has lists of rules: {', '.join(KINDS)}.")
    found = {kind: [_rule(rule, kind) for rule in given.get(kind) or ()] for kind in KINDS}
    for name, count in Counter(rule["name"] for rules in found.values() for rule in rules).items():
        if count > 1:
            raise refuse(42210, f"Two rules have the name '{name}'.")
    enable = {"enableAt": given["enableAt"]} if isinstance(given.get("enableAt"), str) else {}
    return {kind: rules for kind, rules in found.items() if rules} | enable


def _rule(given: Any, kind: str) -> Json:
    if not isinstance(given, dict) or any(not isinstance(given.get(name) or "", str) for name in TEXTS):
        raise refuse(42210, f"A rule is an object whose fields {', '.join(TEXTS)} are texts.")
    tags, params = given.get("tags") or [], _mapping(given, "params")
    if not _is_texts(tags) or not _is_texts(list(params.values())):
        raise refuse(42210, "The tags of a rule are a list of texts, its params an object of texts.")
    rule = {
        "name": given.get("name"),
        "doc": given.get("doc"),
        "kind": given.get("kind") or "TRANSFORM",
        "mode": given.get("mode") or "WRITEREAD",
        "type": given.get("type"),
        "tags": sorted(set(tags)),
        "params": dict(sorted(params.items())),
        "expr": given.get("expr"),
        "onSuccess": given.get("onSuccess"),
        "onFailure": given.get("onFailure"),
        "disabled": given.get("disabled") is True,
    }
    _check_rule(rule, MIGRATION if kind == "migrationRules" else DOMAIN, kind)
    return {name: part for name, part in rule.items() if part or part is False}


def _check_rule(rule: Json, modes: tuple[str, ...], kind: str) -> None:
    name, mode = rule["name"], rule["mode"]
    if not name:
        raise refuse(42210, "A rule has no name.")
    if len(name) > LONGEST_NAME or not (name[0].isalpha() or name[0] == "_"):
        raise refuse(42210, f"A rule's name has 1 to {LONGEST_NAME} characters and begins with a letter: '{name}'")
    if not all(sign.isalnum() or sign in "_-" for sign in name):
        raise refuse(42210, f"A rule's name has letters, digits, _ and -: '{name}'.")
    if not rule["type"]:
        raise refuse(42210, f"Rule '{name}' has no type.")
    if rule["kind"] not in ("TRANSFORM", "CONDITION"):
        raise refuse(42210, f"Rule '{name}' is of kind {rule['kind']}, which must be TRANSFORM or CONDITION")
    if mode not in modes:
        raise refuse(42210, f"Rule '{name}' of {kind} has mode {mode}, which must be one of {', '.join(modes)}")
    if mode not in MANY_ACTIONS and any("," in (rule[on] or "") for on in ("onSuccess", "onFailure")):
        raise refuse(42210, f"Rule '{name}' has many actions, which only {' and '.join(MANY_ACTIONS)} may have")


def merged_metadata(*layers: Json | None) -> Json | None:
    """Merge metadata, of which the later wins; None if there is none at all."""
    given = [layer for layer in layers if layer is not None]
    if len(given) < 2:
        return given[0] if given else None
    tags = {key: value for layer in given for key, value in (layer.get("tags") or {}).items()}
    pairs = {key: value for layer in given for key, value in (layer.get("properties") or {}).items()}
    sensitive = sorted({name for layer in given for name in layer.get("sensitive") or ()})
    return {name: value for name, value in (("tags", tags), ("properties", pairs), ("sensitive", sensitive)) if value}


def merged_rules(*layers: Json | None) -> Json | None:
    """Merge rule sets: a later rule replaces one of its name."""
    given = [layer for layer in layers if layer is not None]
    if len(given) < 2:
        return given[0] if given else None
    merged: Json = {}
    for kind in KINDS:
        rules: dict[str, Json] = {}
        for rule in (rule for layer in given for rule in layer.get(kind) or ()):
            rules.pop(rule["name"], None)  # it stands where the later layer has it
            rules[rule["name"]] = rule
        if rules:
            merged[kind] = list(rules.values())
    enable = [layer["enableAt"] for layer in given if layer.get("enableAt")]
    return merged | ({"enableAt": enable[-1]} if enable else {})


def with_version(metadata: Json | None, version: int) -> Json:
    """Return metadata that say which version they belong to."""
    properties = {**((metadata or {}).get("properties") or {}), VERSION: str(version)}
    return {**(metadata or {}), "properties": properties}


def same_but_version(wanted: Json | None, known: Json | None, number: int) -> bool:
    """Say whether metadata are the same, where one of them need not say its version: that of the known is `number`."""
    own, other = _version(wanted), _version(known)
    if (own is None) == (other is None):
        return wanted == known
    return own in (None, number) and _bare(wanted) == _bare(known)


def _version(metadata: Json | None) -> int | None:
    text = ((metadata or {}).get("properties") or {}).get(VERSION, "")
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else None


def _bare(metadata: Json | None) -> Json:
    """Leave out the version, and what is empty."""
    found = metadata or {}
    properties = {name: value for name, value in (found.get("properties") or {}).items() if name != VERSION}
    return {name: value for name, value in {**found, "properties": properties}.items() if value}
