"""Settings of subjects (CONFIG and MODE records): what holds for a subject, how a change is merged, what may be."""

from __future__ import annotations

from moldau.registry.compatibility import LEVELS
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.metadata import checked_metadata, checked_rules
from moldau.registry.records import Json
from moldau.registry.store import Store

MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, FORWARD = MODES
READ_ONLY = (READONLY, READONLY_OVERRIDE)
IMPORTING = (IMPORT, FORWARD)
LEVEL = "compatibilityLevel"
POLICIES = ("STRICT", "LENIENT")
METADATA: tuple[str, ...] = ("defaultMetadata", "overrideMetadata")  # what settings add to a schema
RULES: tuple[str, ...] = ("defaultRuleSet", "overrideRuleSet")

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
    **dict.fromkeys((*METADATA, *RULES), dict),
}


def config_in_scope(store: Store, subject: str | None, level: str) -> Json:
    """Return what holds for a subject: its own settings over those of its context, over the global ones."""
    merged: Json = {LEVEL: level}
    for place in reversed(list(store.scope(subject))):
        merged.update(store.configs.get(place, {}))
    return merged


def own_config(store: Store, subject: str | None, level: str) -> Json | None:
    """Return what is set for a subject itself. The default context always has a level."""
    found = store.configs.get(subject)
    return {LEVEL: level, **(found or {})} if found is not None or subject is None else None


def mode_in_scope(store: Store, subject: str | None) -> str:
    """Return the mode of a subject, or of its context, or of all; READONLY_OVERRIDE wins wherever it stands."""
    found = [store.modes[place] for place in store.scope(subject) if place in store.modes]
    return READONLY_OVERRIDE if READONLY_OVERRIDE in found else (found or [READWRITE])[0]


def config_change(request: Json) -> Json:
    """Check the fields of a request; None removes a setting."""
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
    read = dict.fromkeys(RULES, checked_rules) | dict.fromkeys(METADATA, checked_metadata)
    return change | {name: read[name](change[name]) for name in change.keys() & read.keys()}


def merged_config(before: Json | None, change: Json) -> Json:
    """Merge a change into settings: what is not named stays."""
    return {name: value for name, value in {**(before or {}), **change}.items() if value is not None}
