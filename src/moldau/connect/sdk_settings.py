"""Settings of a connector as an annotated class: each attribute is a setting, `batch_size` the one called `batch.size`.

    class Weather:
        url: Annotated[str, "Where the stations report."]
        every: Annotated[float, "Seconds between two looks.", Between(0.1)] = 1.0
        unit: Literal["C", "F"] = "C"
        token: Secret | None = None

Types are str, int, float, bool, list[str], Secret and Literal; `| None` makes a setting optional. A `__post_init__` may
refuse a combination with a ValueError.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moldau.connect.config_def import (
    REQUIRED,
    ConfigDef,
    Importance,
    Key,
    Kind,
    Password,
    Recommender,
    Validator,
    between,
    one_of,
)
from moldau.connect.errors import ConfigError

Secret = Password
KINDS: dict[Any, Kind] = {
    str: Kind.STRING,
    int: Kind.LONG,
    float: Kind.DOUBLE,
    bool: Kind.BOOLEAN,
    list[str]: Kind.LIST,
    Password: Kind.PASSWORD,
}


@dataclass(frozen=True, slots=True)
class Between:
    """Bounds of a number, both included."""

    low: float | None = None
    high: float | None = None


def name_of(attribute: str) -> str:
    return attribute.replace("_", ".")


def definition_of(settings: type | None) -> ConfigDef:
    """Return the settings that a class describes; TypeError if an attribute has a type that no setting has."""
    if settings is None:
        return ConfigDef()
    hints = typing.get_type_hints(settings, include_extras=True)
    return ConfigDef(_key(settings, name, hint) for name, hint in hints.items() if not name.startswith("_"))


def _key(settings: type, attribute: str, hint: Any) -> Key:
    doc, bounds = "", Between()
    if typing.get_origin(hint) is typing.Annotated:
        hint, *notes = typing.get_args(hint)
        doc = next((note for note in notes if isinstance(note, str)), "")
        bounds = next((note for note in notes if isinstance(note, Between)), bounds)
    is_optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType) and type(None) in typing.get_args(hint):
        is_optional = True
        hint = next(one for one in typing.get_args(hint) if one is not type(None))
    choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
    kind = Kind.STRING if choices else KINDS.get(hint)
    if kind is None:
        known = "str, int, float, bool, list[str], Secret, Literal"
        raise TypeError(f"{settings.__qualname__}.{attribute} has the type {hint}; a setting has one of {known}.")
    default = _default(settings, attribute, is_optional)
    return Key(
        name_of(attribute),
        kind,
        default,
        Importance.HIGH if default is REQUIRED else Importance.MEDIUM,
        doc,
        validator=_validator(kind, choices, bounds, is_optional),
        recommender=Recommender(lambda _name, _values: list(choices)) if choices else None,
    )


def _default(settings: type, attribute: str, is_optional: bool) -> Any:
    if dataclasses.is_dataclass(settings):
        field = settings.__dataclass_fields__[attribute]
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
    return getattr(settings, attribute, None if is_optional else REQUIRED)


def _validator(kind: Kind, choices: tuple[str, ...], bounds: Between, is_optional: bool) -> Validator | None:
    check: Validator | None = None
    if choices:
        check = one_of(*choices)
    elif kind in (Kind.LONG, Kind.DOUBLE) and bounds != Between():
        check = between(bounds.low, bounds.high)
    if check is None or not is_optional:
        return check
    inner = check
    return lambda name, value: None if value is None else inner(name, value)


def instance(settings: type | None, definition: ConfigDef, config: Mapping[str, str]) -> Any:
    """Return the object that a connector's function gets; ConfigError for a config that is not allowed."""
    if settings is None:
        return None
    made: Any = object.__new__(settings)
    values = definition.parse(config)
    for name in typing.get_type_hints(settings):
        if not name.startswith("_"):
            object.__setattr__(made, name, values[name_of(name)])
    try:
        if hasattr(made, "__post_init__"):
            made.__post_init__()
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return made
