"""What changes a registry, as handlers: each makes a command of a request. They run in the leader."""

from __future__ import annotations

from dataclasses import replace

from moldau.http import HttpError
from moldau.registry import commands, names, tags
from moldau.registry.calls import Call
from moldau.registry.commands import Change
from moldau.registry.errors import refuse, unprocessable
from moldau.registry.metadata import KINDS, checked_metadata, checked_rules, merged_rules, with_version
from moldau.registry.policies import LEVEL, config_change
from moldau.registry.queries import as_json, find_version
from moldau.registry.records import Json
from moldau.registry.store import LATEST

PROTOBUF = "PROTOBUF"


def register(call: Call) -> Change:
    if not names.is_valid(call.path["subject"], may_be_empty=not call.settings["schema.reject.empty.subject"]):
        raise refuse(42208, call.path["subject"])
    given = _tagged(call)
    change = commands.register(
        call.registry,
        call.subject,
        given,
        normalize=call.registry.normalizes(call.subject, call.flag("normalize")),
        force=call.flag("force"),
        keeps_tags=call.object().get("propagateSchemaTags") is True,
        looks_first=not call.object().get("schemaTagsToAdd") and not call.object().get("schemaTagsToRemove"),
    )
    # confluent-kafka keeps the answer's text for its deserializer, which wants Protobuf serialized, as it was sent.
    return _registered(call, change, given.schema if given.type == PROTOBUF and given.schema else None)


def _registered(call: Call, change: Change, as_sent: str | None = None) -> Change:
    version = change.answer
    text = as_sent or version.schema
    if call.text("format"):
        text = call.registry.schemas.formatted(version, call.text("format"))
    answer = {name: value for name, value in as_json(version, text).items() if name not in ("subject", "deleted")}
    return Change(change.records, answer)


def _tagged(call: Call) -> commands.Candidate:
    """Return the schema in the body with the tags given beside it; its metadata then say its version."""
    given, body = call.candidate(), call.object()
    add, remove = tags.read(body.get("schemaTagsToAdd")), tags.read(body.get("schemaTagsToRemove"))
    if not add and not remove:
        return given
    text = call.registry.schemas.tagged(given.under(call.subject), add, remove).schema
    return replace(given, schema=text, version=given.version or LATEST)


def tag(call: Call) -> Change:
    """Add a version to a subject: this one with other tags, metadata or rules."""
    request = call.object()
    if not names.is_valid(call.path["subject"]):
        raise refuse(42208, call.path["subject"])
    version = find_version(call, deleted=False)
    number = request.get("newVersion") or 0
    if not isinstance(number, int):
        raise unprocessable(f"newVersion cannot be {number!r}.")
    add, remove = tags.read(request.get("tagsToAdd")), tags.read(request.get("tagsToRemove"))
    given = commands.Candidate(
        call.registry.schemas.tagged(version, add, remove).schema if add or remove else version.schema,
        version.type,
        version.references,
        with_version(checked_metadata(request.get("metadata")) or version.metadata, number),
        _rules(call, request, version.subject, number - 1 if number else LATEST),
        max(number, 0),
    )
    change = commands.register(call.registry, version.subject, given, normalize=False, looks_first=False)
    return _registered(call, change)


def _rules(call: Call, request: Json, subject: str, before: int) -> Json | None:
    """Return the rules that are given, or those of the version before with some merged in and some removed by name."""
    given, merge = checked_rules(request.get("ruleSet")), checked_rules(request.get("rulesToMerge"))
    remove = request.get("rulesToRemove") or []
    if merge is None and not remove:
        return given
    if given is not None:
        raise refuse(42210, "A ruleSet is the whole: give it alone, or rulesToMerge and rulesToRemove.")
    older = call.registry.store.version(subject, before, deleted=False)
    merged = merged_rules(older.rules if older else None, merge) or {}
    return {
        kind: [rule for rule in rules if rule["name"] not in remove] if kind in KINDS else rules
        for kind, rules in merged.items()
    }


def delete_version(call: Call) -> Change:
    return commands.delete_version(call.registry, call.subject, call.version, permanent=call.flag("permanent"))


def delete_subject(call: Call) -> Change:
    return commands.delete_subject(call.registry, call.subject, permanent=call.flag("permanent"))


def _settings_place(call: Call) -> str | None:
    if "subject" in call.path and not names.is_valid(call.path["subject"], for_settings=True):
        raise refuse(42208, call.path["subject"])
    return call.place


def set_config(call: Call) -> Change:
    change = commands.set_config(call.registry, _settings_place(call), config_change(call.object()))
    return Change(change.records, _as_request(change.answer))


def _as_request(config: Json) -> Json:
    """Name settings as requests do: there the level has another name."""
    return {"compatibility" if name == LEVEL else name: value for name, value in config.items()}


def delete_config(call: Call) -> Change:
    return commands.delete_config(call.registry, call.place)


def set_mode(call: Call) -> Change:
    mode = call.object().get("mode")
    if mode is not None and not isinstance(mode, str):
        raise unprocessable(f"mode cannot be {mode!r}.")
    change = commands.set_mode(call.registry, _settings_place(call), mode, force=call.flag("force"))
    return Change(change.records, {"mode": mode})


def delete_mode(call: Call) -> Change:
    change = commands.delete_mode(call.registry, call.place, recursive=call.flag("recursive"))
    return Change(change.records, {} if change.answer is None else {"mode": change.answer})


def delete_context(call: Call) -> Change:
    try:
        context = names.delimited(call.path["context"])
    except ValueError as error:
        raise HttpError(400, str(error)) from None
    return commands.delete_context(call.registry, context)
