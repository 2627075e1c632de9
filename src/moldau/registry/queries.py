"""What is asked of a registry: handlers that read the store and change nothing."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from starlette.responses import Response

from moldau import __version__
from moldau.http import HttpError
from moldau.registry import names, tags
from moldau.registry.calls import Call
from moldau.registry.commands import Registry, incompatibilities, referrers, same_version, with_defaults
from moldau.registry.errors import refuse, unknown_schema
from moldau.registry.policies import own_config
from moldau.registry.records import Json, Version, reference_json
from moldau.registry.store import LATEST
from moldau.registry.subject_rules import READ
from moldau.serdes.schemas import TYPES


def as_json(version: Version, schema: str | None = None) -> Json:
    """Return a version as it is answered, without empty fields."""
    fields = {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        "schemaType": version.type,
        "references": [reference_json(reference) for reference in version.references],
        "metadata": version.metadata,
        "ruleSet": version.rules,
        "schema": version.schema if schema is None else schema,
        "ts": version.timestamp,
        "deleted": version.deleted,
    }
    return {name: value for name, value in fields.items() if value is not None and value != []}


def root(call: Call) -> Json:
    return {}


def schema_types(call: Call) -> list[str]:
    return list(TYPES)


def list_subjects(call: Call) -> list[str]:
    """List subjects by prefix, in all contexts unless the prefix names one."""
    found = _by_prefix(call, call.text("subjectPrefix", names.WILDCARD), deleted=True)
    live = set(call.registry.store.subjects())
    if call.flag("deletedOnly"):
        found = [name for name in found if name not in live]
    elif not call.flag("deleted"):
        found = [name for name in found if name in live]
    return call.page(found, "subject")


def _by_prefix(call: Call, prefix: str, *, deleted: bool) -> list[str]:
    every = [name for name in call.registry.store.subjects(deleted=deleted) if call.may_read(name)]
    if prefix.startswith(names.WILDCARD):
        rest = prefix.removeprefix(names.WILDCARD)
        return [name for name in every if names.parse(name).subject.startswith(rest)]
    wanted = names.parse(prefix)
    return [
        name
        for name in every
        if names.context_of(name) == wanted.context and names.parse(name).subject.startswith(wanted.subject)
    ]


def list_versions(call: Call) -> list[int]:
    """List numbers of versions; `deletedAsNegative` shows soft deleted ones with a minus."""
    store, only = call.registry.store, call.flag("deletedOnly")
    if not store.versions(call.subject, deleted=call.flag("deleted") or only):
        raise refuse(40401, call.subject)
    found = store.versions(call.subject)
    if call.flag("deletedAsNegative"):
        numbers = [-version.version if version.deleted else version.version for version in found]
    elif only:
        numbers = [version.version for version in found if version.deleted]
    else:
        numbers = [version.version for version in found if call.flag("deleted") or not version.deleted]
    return call.page(numbers, "subject.version")


def _candidates(call: Call, subject: str) -> list[str]:
    """Return the subject itself, and if it names no context that subject in every other one, if it may be read."""
    name = names.parse(subject)
    if name.context != names.DEFAULT:
        return [subject]
    others = (str(names.Name(context, name.subject)) for context in call.registry.store.contexts()[1:])
    return [subject, *filter(call.may_read, others)]


def find_version(call: Call, *, deleted: bool) -> Version:
    """Return the version that the path names; 40401 or 40402."""
    store, number = call.registry.store, call.version
    for subject in _candidates(call, call.subject):
        if version := store.version(subject, number, deleted=deleted):
            return version
    raise refuse(40402, number) if store.versions(call.subject, deleted=deleted) else refuse(40401, call.subject)


def show_version(call: Call) -> Json:
    version = find_version(call, deleted=call.flag("deleted"))
    return _qualified(call, version, _tagged(call, version, as_json(version, _text(call, version))))


def _tagged(call: Call, version: Version, answer: Json) -> Json:
    """Add the entities that have one of the tags in `findTags`."""
    wanted = call.query.getlist("findTags")
    rows = tags.find(call.registry.schemas.read(version), wanted) if wanted else []
    return answer | ({"schemaTags": rows} if rows else {})


def show_version_schema(call: Call) -> Response:
    return _plain(call, find_version(call, deleted=call.flag("deleted")))


def _plain(call: Call, version: Version) -> Response:
    """Answer with the schema itself, not with a text in JSON."""
    return Response(_text(call, version).encode("utf-8", "surrogatepass"), media_type=call.accepted)


def _text(call: Call, version: Version) -> str:
    return call.registry.schemas.formatted(version, call.text("format"))


def _qualified(call: Call, version: Version, answer: Json) -> Json:
    """Give references the context of their schema, if the request asks for it."""
    if call.text("referenceFormat") == "qualified" and version.references:
        for row in answer["references"]:
            row["subject"] = names.within(version.subject, row["subject"])
    return answer


def list_referrers(call: Call) -> list[int]:
    """List ids of schemas that refer to a version."""
    version = find_version(call, deleted=True)
    found = referrers(call.registry, version, deleted=call.flag("deleted"))
    return call.page(sorted({other.id for other in found}), "schema")


def look_up(call: Call) -> Json:
    """Find the version of a subject that has a schema."""
    registry, given = call.registry, call.candidate()
    normalized = registry.normalizes(call.subject, call.flag("normalize"))
    for subject in _candidates(call, call.subject) if (given.schema or "").strip() else ():
        try:
            wanted = registry.canonical(given.under(subject), normalized=normalized)
        except HttpError:
            if subject == call.subject:
                raise
            continue  # in another context a reference may lead nowhere
        if found := _look_up(registry, wanted, deleted=call.flag("deleted")):
            return as_json(found, _text(call, found))
    raise (
        unknown_schema()
        if registry.store.versions(call.subject, deleted=call.flag("deleted"))
        else refuse(40401, call.subject)
    )


def _look_up(registry: Registry, wanted: Version, *, deleted: bool) -> Version | None:
    """Look up by content, then with the metadata and rules that a registration would have added."""
    every = registry.store.versions(wanted.subject, deleted=deleted)
    latest = registry.store.version(wanted.subject, LATEST, deleted=False)
    found = same_version(registry, wanted, every)
    if found is not None or latest is None:
        return found
    filled = with_defaults(wanted, registry.config(wanted.subject), latest, None)
    return same_version(registry, filled, every) if filled != wanted else None


def latest_with_metadata(call: Call) -> Json:
    """Find the newest version whose metadata have these properties."""
    wanted = dict(zip(call.query.getlist("key"), call.query.getlist("value"), strict=False)).items()
    every = call.registry.store.versions(call.subject, deleted=call.flag("deleted"))
    for version in reversed(every):
        if version.metadata is not None and wanted <= ((version.metadata.get("properties") or {}).items()):
            return as_json(version, _text(call, version))
    raise unknown_schema() if every else refuse(40401, call.subject)


def list_schemas(call: Call) -> list[Json]:
    """List all versions by prefix of their subjects; without one, those of the default context."""
    aliases = _aliases(call.registry) if call.flag("aliases") else {}
    prefix = call.text("subjectPrefix")
    found: list[Json] = []
    for subject in sorted({*_by_prefix(call, prefix, deleted=True), *filter(call.may_read, _aliased(aliases, prefix))}):
        versions = call.registry.store.versions(subject, deleted=call.flag("deleted"))
        for version in versions[-1:] if call.flag("latestOnly") else versions:
            if _has_rule(version, call.text("ruleType")):
                found.append(as_json(version) | ({"aliases": aliases[subject]} if subject in aliases else {}))
    return call.page(found, "schema")


def _aliases(registry: Registry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for subject, config in sorted((item for item in registry.store.configs.copy().items() if item[0]), key=str):
        if subject and config.get("alias"):
            found.setdefault(names.within(subject, config["alias"]), []).append(subject)
    return found


def _aliased(aliases: dict[str, list[str]], prefix: str) -> list[str]:
    """Return subjects that are shown because an alias of them has the prefix."""
    return [target for target, others in aliases.items() if any(name.startswith(prefix) for name in others)]


def _has_rule(version: Version, kind: str) -> bool:
    every = [rule for rules in (version.rules or {}).values() if isinstance(rules, list) for rule in rules]
    return not kind or any(rule.get("type") == kind for rule in every)


def _with_id(call: Call) -> list[Version]:
    """Return the versions of an id: in the context of `subject`, or that subject's own if it has the id; 40403."""
    registry, asked = call.registry, call.text("subject")
    for subject in _candidates(call, names.normal(asked)) if asked else [""]:
        found = _readable(call, registry.store.with_id(names.context_of(subject), call.id))
        own = [version for version in found if version.subject == subject]
        if found and (own or names.is_context(subject)):
            return own + [version for version in found if version.subject != subject]
    if found := _readable(call, registry.store.with_id(names.context_of(asked), call.id)):
        return found
    raise refuse(40403, call.id)


def _readable(call: Call, versions: list[Version]) -> list[Version]:
    """Return those of an id that the caller may read; 40301 if there are others alone."""
    found = [version for version in versions if call.may_read(version.subject)]
    if versions and not found:
        call.check(READ, versions[0].subject)
    return found


def show_schema(call: Call) -> Json:
    versions = _with_id(call)
    version = versions[0]
    answer = _qualified(call, version, _tagged(call, version, as_json(version, _text(call, version))))
    answer.pop("id")
    if not call.text("subject"):
        del answer["subject"], answer["version"]
    if call.flag("includeSubjects"):  # as Karapace has it
        answer["subjects"] = sorted({one.subject for one in versions if not one.deleted})
    if call.flag("fetchMaxId"):
        answer["maxId"] = call.registry.store.highest_id(names.context_of(version.subject))
    return answer


def show_schema_text(call: Call) -> Response:
    return _plain(call, _with_id(call)[0])


def _places(call: Call) -> list[Version]:
    asked = names.normal(call.text("subject"))
    found = [version for version in _with_id(call) if call.flag("deleted") or not version.deleted]
    own = [version for version in found if version.subject == asked]
    return own if own and not names.is_context(asked) else sorted(found, key=lambda one: (one.subject, one.version))


def list_subjects_of_id(call: Call) -> list[str]:
    return call.page(list(dict.fromkeys(version.subject for version in _places(call))), "subject")


def list_versions_of_id(call: Call) -> list[Json]:
    rows = [{"subject": version.subject, "version": version.version} for version in _places(call)]
    return call.page(rows, "subject.version")


def _with_guid(call: Call) -> dict[str, Version]:
    """Return, by context, the version that has a GUID."""
    try:
        md5 = UUID(call.path["guid"]).bytes
    except ValueError:
        raise refuse(40403, call.path["guid"]) from None
    store = call.registry.store
    found = {context: one for context in store.contexts() if (one := store.with_md5(context, md5))}
    return {context: one for context, one in found.items() if call.may_read(one.subject)}


def show_guid(call: Call) -> Json:
    for version in _with_guid(call).values():
        answer = as_json(version, _text(call, version))
        return {name: value for name, value in answer.items() if name not in ("id", "subject", "version")}
    raise refuse(40403, call.path["guid"])


def list_ids_of_guid(call: Call) -> list[Json]:
    return [{"context": context, "id": version.id} for context, version in _with_guid(call).items()]


def check_compatibility(call: Call) -> Json:
    """Say whether a schema may follow the versions that the level asks for, or one version."""
    registry, given, subject = call.registry, call.candidate(), call.subject
    previous = registry.store.versions(subject, deleted=False)
    if "version" in call.path:
        version = registry.store.version(subject, call.version, deleted=False)
        if version is None and call.version != LATEST:
            raise refuse(40402, call.version)
        previous = [version] if version else []
    try:
        messages = _incompatibilities(call, registry, given.under(subject), previous)
    except HttpError as error:
        if error.code != 42201 or not call.flag("verbose"):
            raise
        messages = [str(error)]
    return {"is_compatible": not messages} | ({"messages": messages} if call.flag("verbose") else {})


def _incompatibilities(call: Call, registry: Registry, wanted: Version, previous: list[Version]) -> list[str]:
    if not wanted.schema.strip():
        raise refuse(42201, "Empty schema")
    normalized = registry.normalizes(wanted.subject, call.flag("normalize"))
    strict = registry.validate_new and registry.config(wanted.subject).get("validateNewSchemas") is not False
    wanted = registry.canonical(wanted, new=strict, normalized=normalized)
    return incompatibilities(registry, wanted.subject, wanted, previous)


def show_config(call: Call) -> Json:
    if call.flag("defaultToGlobal"):
        return call.registry.config(call.place)
    found = own_config(call.registry.store, call.place, call.registry.level)
    if found is None:
        raise refuse(40408, call.place)
    return found


def show_mode(call: Call) -> Json:
    store, place = call.registry.store, call.place
    if call.flag("defaultToGlobal") or place is None or place == names.GLOBAL:
        return {"mode": call.registry.mode(place)}
    if place not in store.modes:
        raise refuse(40409, place)
    return {"mode": store.modes[place]}


def list_contexts(call: Call) -> list[str]:
    prefix = call.text("contextPrefix")
    return call.page([name for name in call.registry.store.contexts() if name.startswith(prefix)], "context")


def show_leader(call: Call) -> Json:
    """Say whether there is a leader for writes. The endpoint is Karapace's, whose tools wait for it."""
    return {"master_available": call.is_led}


def show_cluster(call: Call) -> Json:
    group = call.settings["schema.registry.group.id"]
    clusters = {"kafka-cluster": call.cluster_id, "schema-registry-cluster": group}
    return {"scope": {"path": [], "clusters": clusters}}


def show_version_of_server(call: Call) -> dict[str, Any]:
    return {"version": __version__, "commitId": ""}


def show_deployment(call: Call) -> Json:
    return {"attributes": []}
