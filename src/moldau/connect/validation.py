"""Validate the config of a connector: the settings of all connectors, of its converters, transforms and predicates, and
its own, as `PUT /connector-plugins/X/config/validate` answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from moldau.admin.connectors import answered
from moldau.connect import chain, common_settings, plugins, secrets
from moldau.connect.config_def import (
    ConfigDef,
    ConfigValue,
    Importance,
    Key,
    Recommender,
    Width,
    rows,
)
from moldau.connect.connector import SINK, SOURCE, Connector
from moldau.connect.errors import ConfigError
from moldau.connect.worker import ENABLED, Settings
from moldau.http import HttpError

WHERE = (
    "You can also find the above list of errors at the endpoint `/connector-plugins/{connectorType}/config/validate`"
)


def refuse_invalid(config: Mapping[str, str | None], settings: Settings) -> None:
    """Raise 400 with all errors of a config."""
    class_name = config.get("connector.class")
    if class_name is None:
        raise HttpError(400, f"Connector config {java_map(config)} contains no connector type")
    found = validate(config, settings)
    errors = [error for row in answered(found) for error in row["value"]["errors"]]
    if errors:
        said = f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n"
        raise HttpError(400, said + "\n".join([*errors, WHERE]))


def validate(config: Mapping[str, str | None], settings: Settings) -> dict[str, Any]:
    """Return the document of a validation; 400 for an unknown class or a secret that does not resolve."""
    try:
        given: dict[str, Any] = {**config, **secrets.resolve(config, settings.providers)}
    except ConfigError as error:
        raise HttpError(400, str(error)) from None
    name = given.get("connector.class") or ""
    plugin = plugins.find(name)
    if plugin is None:
        raise HttpError(400, plugins.not_found(name))
    connector = plugin.load()
    common = _common(plugin, _of_worker(settings, given), given)
    steps = _chain(given)
    own, converters = connector.config, _converters(given)
    values = (common | steps).validate(given)
    for value in own.validate(given).values():  # a Java connector may define settings that all connectors have
        if value.name in values:
            values[value.name].errors += value.errors
        else:
            values[value.name] = value
    for role, one in converters.items():
        values |= _of_converter(role, one, given)
    if plugin.kind == SINK:
        _check_topics(values, given)
    else:
        _check_exactly_once(values, connector, settings, given)
    overrides = _overrides(given, plugin.kind)
    everything = ConfigDef()
    for part in (common, steps, own, *(one.prefixed(f"{role}.") for role, one in converters.items()), overrides):
        everything.keys |= {name: key for name, key in part.keys.items() if name not in everything.keys}
    values |= overrides.validate(given)
    _check_overrides(values, overrides, settings)
    groups = [
        *common.groups,
        *steps.groups,
        *own.groups,
        *(group for one in converters.values() for group in one.groups),
    ]
    document = rows(name, everything, values.values(), list(dict.fromkeys(groups)))
    return _with_stored_values(document, config)


def _with_stored_values(document: dict[str, Any], config: Mapping[str, str | None]) -> dict[str, Any]:
    """Show references to secrets as they are stored, and never a password."""
    for value in [row["value"] for row in answered(document)]:
        stored = config.get(value["name"])
        if stored is not None and "${" in stored and value["value"] is not None:
            value["value"] = stored
    return document


def definitions(name: str) -> list[dict[str, Any]] | None:
    """Return the settings of any plugin; None if there is none of the name."""
    plugin = plugins.find(name)
    if plugin is not None:
        return [*plugin.load().config.definitions(), *_common(plugin, {}).definitions()]
    other = plugins.definition_of(name)
    return None if other is None else other.definitions()


def is_same_class(one: str, other: str) -> bool:
    known = plugins.find(one)
    return one == other or (known is not None and known == plugins.find(other))


def _common(plugin: plugins.Plugin, of_worker: Mapping[str, str], config: Mapping[str, Any] | None = None) -> ConfigDef:
    return common_settings.definition(plugin.kind, plugin.version, plugins.converter_names, of_worker, config or {})


def _of_worker(settings: Settings, config: Mapping[str, Any]) -> dict[str, str]:
    """Return what the worker says where a connector says nothing of its converters, and the versions of those."""
    found = {"header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter"}
    for role in ("key.converter", "value.converter", "header.converter"):
        if role in settings.given:
            found[role] = settings.given[role]
        own = config.get(role)
        if own is None or plugins.definition_of(own) is not None:
            found[f"{role}.plugin.version"] = plugins.VERSION
    return found


def _chain(config: Mapping[str, Any]) -> ConfigDef:
    """Return the settings of the transforms and predicates that a config names."""
    found = ConfigDef()
    for key in chain.definition(config):
        shown = key.display or key.name.split(".", 2)[2]
        found.keys[key.name] = key if key.order == 0 else replace(key, order=key.order + 1, display=shown)
        if key.order == 0:
            version = _version_key(key, config.get(key.name))
            found.keys[version.name] = version
    return found


def _version_key(of: Key, class_name: Any) -> Key:
    """Return the setting that names the version of a transform or predicate."""
    is_known = isinstance(class_name, str) and plugins.definition_of(class_name) is not None
    versions = [plugins.VERSION] if is_known else []
    return Key(
        of.name.removesuffix("type") + "plugin.version",
        default=versions[0] if versions else None,
        importance=Importance.HIGH,
        doc="The version of the class.",
        group=of.group,
        order=1,
        width=Width.LONG,
        display=(of.display or "").replace(" type ", " version "),
        recommender=Recommender(lambda _name, _values: versions),
    )


def _converters(config: Mapping[str, Any]) -> dict[str, ConfigDef]:
    """Return the settings of the converters that a config names itself."""
    found = {}
    for role in ("key.converter", "value.converter", "header.converter"):
        definition = plugins.definition_of(config.get(role) or "")
        if definition is not None:
            found[role] = ConfigDef()
            found[role].keys = {key.name: replace(key, display=key.display or key.name) for key in definition}
    return found


def _of_converter(role: str, definition: ConfigDef, config: Mapping[str, Any]) -> dict[str, ConfigValue]:
    """Validate the settings of a converter, whose errors name them without the prefix."""
    own = {name.removeprefix(f"{role}."): text for name, text in config.items() if name.startswith(f"{role}.")}
    values = definition.validate({"converter.type": role.partition(".")[0], **own}).values()
    return {f"{role}.{one.name}": replace(one, name=f"{role}.{one.name}") for one in values}


def _check_topics(values: dict[str, ConfigValue], config: Mapping[str, Any]) -> None:
    """Check what a sink reads, and that its dead letters are not among it."""
    topics, pattern = values["topics"], values["topics.regex"]
    compiles = not pattern.errors
    both = "topics and topics.regex are mutually exclusive options, but both are set."
    neither = "Must configure one of topics or topics.regex"
    for one in (topics, pattern):
        if bool(topics.value) == bool(pattern.value):
            one.errors.append(both if topics.value else neither)
    letters = values["errors.deadletterqueue.topic.name"].value
    if letters and pattern.value and compiles and re.fullmatch(pattern.value, letters):
        pattern.errors.append(
            f"The DLQ topic '{letters}' may not be matched by the regex for the topics "
            f"('topics.regex={pattern.value}') consumed by the connector"
        )
    if letters and letters in (topics.value or ()):
        listed = f"topics=[{', '.join(topics.value)}]"
        topics.errors.append(
            f"The DLQ topic '{letters}' may not be included in the list of topics ('{listed}') "
            "consumed by the connector"
        )


def _check_exactly_once(
    values: dict[str, ConfigValue], connector: Connector, settings: Settings, config: Mapping[str, Any]
) -> None:
    texts = {name: text for name, text in config.items() if text is not None}
    wanted, boundary = values["exactly.once.support"], values["transaction.boundary"]
    if str(wanted.value).lower() == "required":
        if settings.exactly_once != ENABLED:
            wanted.errors.append("This worker does not have exactly-once source support enabled.")
        else:
            wanted.errors += _exactly_once_errors(connector, texts)
    draws = getattr(connector, "draws_boundaries", lambda _: False)
    if str(boundary.value).lower() == "connector" and settings.exactly_once == ENABLED and not draws(texts):
        boundary.errors.append(
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )


def _exactly_once_errors(connector: Connector, config: Mapping[str, str]) -> list[str]:
    try:
        supports = _supports_exactly_once(connector, config)
    except ConfigError as error:
        return [f"An unexpected error occurred during validation: {error}"]
    if supports is None:
        return [
            "The connector does not say whether it supports exactly-once semantics; if its documentation does, set "
            "exactly.once.support to requested."
        ]
    return (
        [] if supports else ["The connector does not support exactly-once semantics with the provided configuration."]
    )


def _supports_exactly_once(connector: Connector, config: Mapping[str, str]) -> bool | None:
    """Return whether a connector is exactly once with a config; None where it does not say."""
    supports = getattr(connector, "supports_exactly_once", None)
    return supports(config) if supports else connector.exactly_once


def _overrides(config: Mapping[str, Any], kind: str) -> ConfigDef:
    """Return the settings that a config overrides of the Kafka clients that the connector has."""
    has_all = kind == SOURCE or bool(config.get("errors.deadletterqueue.topic.name"))
    prefixes = ("producer.override.", "consumer.override.", "admin.override.") if has_all else ("consumer.override.",)
    return ConfigDef(
        Key(name, default=None, importance=Importance.LOW, display=name.partition(".override.")[2])
        for name in config
        if name.startswith(prefixes)
    )


PRINCIPAL = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def _check_overrides(values: dict[str, ConfigValue], overrides: ConfigDef, settings: Settings) -> None:
    """Refuse settings of Kafka clients that the worker does not let connectors set (KIP-458)."""
    policy = settings.given.get("connector.client.config.override.policy", "All")
    listed = settings.given.get("connector.client.config.override.allowlist", "").split(",")
    allowed = {"None": frozenset(), "Principal": PRINCIPAL, "Allowlist": frozenset(map(str.strip, listed))}.get(policy)
    for key in overrides:
        if allowed is not None and key.display not in allowed:
            values[key.name].errors.append(
                f"The '{policy}' policy does not allow '{key.display}' to be overridden in the connector configuration."
            )


def texts(config: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in config.items() if text is not None}


def java_map(config: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}={'null' if text is None else text}" for name, text in config.items()) + "}"
