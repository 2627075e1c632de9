"""Converters between Connect's data and bytes, as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from moldau.connect.converters.json import JSON
from moldau.connect.converters.kinds import Converter, ConverterClass
from moldau.connect.converters.registry_rows import AVRO, JSON_SCHEMA, PROTOBUF
from moldau.connect.converters.simple import SIMPLE
from moldau.connect.errors import ConfigError

CONVERTERS: tuple[ConverterClass, ...] = (*SIMPLE, JSON, AVRO, JSON_SCHEMA, PROTOBUF)


def converter_class(text: str) -> ConverterClass | None:
    """Find a converter by its class name, or by what comes after the package, with or without `Converter`."""
    known = by_name()
    if text in known:
        return known[text]
    return next((known[name] for name in known if name.rpartition(".")[2] in (text, f"{text}Converter")), None)


def by_name() -> Mapping[str, ConverterClass]:
    """Return all converters, those of jars first: somebody has installed them."""
    from moldau.connect.jvm import parts

    return parts.Both(parts.CONVERTERS, {row.class_name: row for row in CONVERTERS})


def make_converter(text: str, kind: str, config: Mapping[str, str]) -> Converter:
    """Make a converter for keys, values or headers, from its class and its settings without their prefix."""
    row = converter_class(text)
    if row is None:
        near = get_close_matches(text, [name.rpartition(".")[2] for name in by_name()], 1)
        raise ConfigError(f"There is no converter {text}." + (f" Did you mean {near[0]}?" if near else ""))
    if row.only_headers and kind != "header":
        raise ConfigError(f"{text} converts headers only")
    return row.make(row.settings.parse({**config, "converter.type": kind}))


def settings_of(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the settings of a converter: what stands under its prefix, such as `value.converter.`."""
    return {name[len(prefix) :]: value for name, value in config.items() if name.startswith(prefix)}
