"""Settings of subjects (CONFIG and MODE records): what holds for a subject, how a change is merged, what may be."""

from __future__ import annotations

from typing import Any

from moldau.registry.compatibility import LEVELS
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.records import Json
from moldau.registry.store import Store

READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD = (
    "READWRITE",
    "READONLY",
    "READONLY_OVERRIDE",
    "IMPORT",
    "FORWARD",
)
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD)
READ_ONLY = (READONLY, READONLY_OVERRIDE)
IMPORTING = (IMPORT, FORWARD)
LEVEL = "compatibilityLevel"
VERSION = "confluent:version"
POLICIES = ("STRICT", "LENIENT")

# What a CONFIG may have, and of which type. A request calls the level `compatibility`.
FIELDS: dict[str, type] = {
    "alias": str,
    "normalize": bool,
    "validateFields": bool,
    "validateNewSchemas": bool,
    "validateRules": bool,
    LEVEL: str,
    "compatibilityPolicy": str,
    "compatibilityGroup": str,
    "defaultMetadata": dict,
    "overrideMetadata": dict,
    "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}
KINDS = ("migrationRules", "domainRules", "encodingRules")
MIGRATION = ("UPGRADE", "DOWNGRADE", "UPDOWN")
DOMAIN = ("WRITE", "READ", "WRITEREAD")
MANY_ACTIONS = ("UPDOWN", "WRITEREAD")
LONGEST_NAME = 64


def config_in_scope(store: Store, subject: str | None, level: str) -> Json:
    """What holds for a subject: its own settings over those of its context, over the global ones."""
    merged: Json = {LEVEL: level}
    for place in reversed(list(store.scope(subject))):
        merged.update(store.configs.get(place, {}))
    return merged


def own_config(store: Store, subject: str | None, level: str) -> Json | None:
    """What is set for a subject itself. The default context always has a level."""
    found = store.configs.get(subject)
    return {LEVEL: level, **(found or {})} if found is not None or subject is None else None


def mode_in_scope(store: Store, subject: str | None) -> str:
    """The mode of a subject, or of its context, or of all; READONLY_OVERRIDE wins wherever it stands."""
    found = [store.modes[place] for place in store.scope(subject) if place in store.modes]
    return READONLY_OVERRIDE if READONLY_OVERRIDE in found else (found or [READWRITE])[0]


def config_change(request: Json) -> Json:
    """The fields of a request, checked; None takes one away."""
    change: Json = {}
    for name, value in request.items():
        name = LEVEL if name in ("compatibility", LEVEL) else name
        if name not in FIELDS:
            continue  # as Confluent does: a later registry may know it
        if value is not None and not isinstance(value, FIELDS[name]):
            raise refuse(42203) if name == LEVEL else unprocessable(f"{name} cannot be {value!r}.")
        change[name] = value
    if change.get(LEVEL) is not None:
        change[LEVEL] = change[LEVEL].upper()
        if change[LEVEL] not in LEVELS:
            raise refuse(42203)
    if change.get("compatibilityPolicy") is not None and change["compatibilityPolicy"] not in POLICIES:
        raise unprocessable(f"compatibilityPolicy must be one of {', '.join(POLICIES)}.")
    for name in ("defaultRuleSet", "overrideRuleSet"):
        check_rules(change.get(name))
    for name in ("defaultMetadata", "overrideMetadata"):
        check_metadata(change.get(name))
    return change


def merged_config(before: Json | None, change: Json) -> Json:
    """Settings after a change: what is not named stays."""
    return {name: value for name, value in {**(before or {}), **change}.items() if value is not None}


def check_metadata(metadata: Any) -> None:
    """Metadata are tags (lists by path), properties (texts) and names of sensitive properties."""
    if metadata is None:
        return
    good = isinstance(metadata, dict)
    good = good and all(_is_texts(values) for values in _mapping(metadata, "tags").values())
    good = good and all(isinstance(value, str) for value in _mapping(metadata, "properties").values())
    if not good or not _is_texts(metadata.get("sensitive") or []):
        raise unprocessable("metadata has tags (lists of texts), properties (texts) and sensitive (a list of texts).")


def _mapping(holder: Json, name: str) -> Json:
    found = {} if holder.get(name) is None else holder[name]
    if not isinstance(found, dict):
        raise unprocessable(f"{name} must be an object.")
    return found


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def check_rules(rules: Any) -> None:
    """42210 where a rule has no name or type, or stands among the wrong ones."""
    if rules is None:
        return
    if not isinstance(rules, dict) or any(not isinstance(rules.get(kind) or [], list) for kind in KINDS):
        raise refuse(42210, f"A rule set has lists of rules: {', '.join(KINDS)}.")
    seen: set[str] = set()
    for kind in KINDS:
        for rule in rules.get(kind) or ():
            _check_rule(rule, MIGRATION if kind == "migrationRules" else DOMAIN, kind)
            if rule["name"] in seen:
                raise refuse(42210, f"Two rules have the name '{rule['name']}'.")
            seen.add(rule["name"])


def _check_rule(rule: Any, modes: tuple[str, ...], kind: str) -> None:
    if not isinstance(rule, dict) or not isinstance(rule.get("name"), str):
        raise refuse(42210, "A rule has no name.")
    name = rule["name"]
    if not 0 < len(name) <= LONGEST_NAME or not (name[0].isalpha() or name[0] == "_"):
        raise refuse(42210, f"A rule's name has 1 to {LONGEST_NAME} characters and begins with a letter: '{name}'")
    if not all(sign.isalnum() or sign in "_-" for sign in name):
        raise refuse(42210, f"A rule's name has letters, digits, _ and -: '{name}'.")
    if not isinstance(rule.get("type"), str):
        raise refuse(42210, f"Rule '{name}' has no type.")
    mode = rule.get("mode")
    if mode not in modes:
        raise refuse(42210, f"Rule '{name}' of {kind} has mode {mode}, which must be one of {', '.join(modes)}")
    if mode not in MANY_ACTIONS and any("," in (rule.get(on) or "") for on in ("onSuccess", "onFailure")):
        raise refuse(42210, f"Rule '{name}' has many actions, which only {' and '.join(MANY_ACTIONS)} may have")


def merged_metadata(*layers: Json | None) -> Json | None:
    """Metadata over each other, the later wins; None if there is none at all."""
    given = [layer for layer in layers if layer is not None]
    if len(given) < 2:
        return given[0] if given else None
    tags = {key: value for layer in given for key, value in (layer.get("tags") or {}).items()}
    pairs = {key: value for layer in given for key, value in (layer.get("properties") or {}).items()}
    sensitive = sorted({name for layer in given for name in layer.get("sensitive") or ()})
    return {name: value for name, value in (("tags", tags), ("properties", pairs), ("sensitive", sensitive)) if value}


def merged_rules(*layers: Json | None) -> Json | None:
    """Rule sets over each other: a later rule replaces one of its name."""
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
    """Metadata that say which version they belong to."""
    properties = {**((metadata or {}).get("properties") or {}), VERSION: str(version)}
    return {**(metadata or {}), "properties": properties}


def same_but_version(wanted: Json | None, known: Json | None, number: int) -> bool:
    """Whether metadata are the same, where one of them need not say its version: that of the known is `number`."""
    own, other = _version(wanted), _version(known)
    if (own is None) == (other is None):
        return wanted == known
    return own in (None, number) and _bare(wanted) == _bare(known)


def _version(metadata: Json | None) -> int | None:
    text = ((metadata or {}).get("properties") or {}).get(VERSION, "")
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 12 else None


def _bare(metadata: Json | None) -> Json:
    """Without the version, and without what is empty."""
    found = metadata or {}
    properties = {name: value for name, value in (found.get("properties") or {}).items() if name != VERSION}
    return {name: value for name, value in {**found, "properties": properties}.items() if value}
