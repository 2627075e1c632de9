"""ConfigDef: what a plugin can be told, with types, defaults and checks, as Connect defines, validates and shows it.

A `ConfigDef` is a table of `Key`s. `parse` turns a config into values, or raises the first ConfigError; `validate`
reports every error, with the values that a user may choose, as `ConfigValue`s; `definitions` and `rows` are the
documents of `GET /connector-plugins/X/config` and `PUT /connector-plugins/X/config/validate`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from moldau.connect.errors import ConfigError, invalid
from moldau.java.numbers import double_text, parse_double, parse_int, trim

COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


class Kind(Enum):
    """The type of a setting, under Kafka's names."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """A secret that neither `str` nor `repr` shows."""

    value: str

    def __str__(self) -> str:
        return "[hidden]"

    __repr__ = __str__


Validator = Callable[[str, Any], None]  # raises ConfigError
Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Recommender:
    """The values that make sense for a setting, and whether it matters at all, given the other settings."""

    values: Callable[[str, Values], Sequence[Any]] = lambda _name, _values: ()
    visible: Callable[[str, Values], bool] = lambda _name, _values: True


@dataclass(frozen=True, slots=True)
class Key:
    """One setting. `resolve` finds the class that a setting of type CLASS names, or returns None."""

    name: str
    kind: Kind = Kind.STRING
    default: Any = REQUIRED
    importance: Importance = Importance.MEDIUM
    doc: str = ""
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display: str | None = None
    dependents: tuple[str, ...] = ()
    validator: Validator | None = None
    recommender: Recommender | None = None
    resolve: Callable[[str], Any] | None = None
    internal: bool = False

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    def parse(self, value: Any) -> Any:
        return None if value is None else parse_type(self.name, value, self.kind, self.resolve)

    def definition(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.kind.name,
            "required": self.required,
            "default_value": None if self.required else to_text(self.default, self.kind),
            "importance": self.importance.name,
            "documentation": self.doc,
            "group": self.group,
            "order_in_group": self.order,
            "width": self.width.name,
            "display_name": self.name if self.display is None else self.display,
            "dependents": list(self.dependents),
        }


@dataclass(slots=True)
class ConfigValue:
    """What validation found for one setting."""

    name: str
    value: Any = None
    recommended: list[Any] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True

    def row(self, kind: Kind | None) -> dict[str, Any]:
        each = Kind.STRING if kind is Kind.LIST else kind
        return {
            "name": self.name,
            "value": to_text(self.value, kind),
            "recommended_values": [to_text(value, each) for value in self.recommended],
            "errors": list(self.errors),
            "visible": self.visible,
        }


def key(name: str, default: Any, doc: str, kind: Kind = Kind.STRING, **more: Any) -> Key:
    """Return a setting with a default, of medium importance: most settings of connectors are such."""
    return Key(name, kind, default, Importance.MEDIUM, doc, **more)


class ConfigDef:
    """A table of settings, in the order in which they are shown."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self.keys: dict[str, Key] = {}
        for key in keys:
            if key.name in self.keys:
                raise ConfigError(f"Configuration {key.name} is defined twice.")
            if key.default is not REQUIRED:
                key = replace(key, default=key.parse(key.default))
                if key.validator:
                    key.validator(key.name, key.default)
            self.keys[key.name] = key

    def __or__(self, other: ConfigDef | Iterable[Key]) -> ConfigDef:
        return ConfigDef([*self, *other])

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys.values())

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(key.group for key in self if key.group is not None))

    def prefixed(self, prefix: str, group: str | None = None, first: int = 1) -> ConfigDef:
        """Put the settings of a plugin under a prefix, in a group of their own.

        As in Connect their validators name them without it.
        """
        found = ConfigDef()
        for at, key in enumerate(self):
            moved = replace(
                key,
                name=prefix + key.name,
                dependents=tuple(prefix + each for each in key.dependents),
                validator=key.validator and _unprefixed(key.validator, prefix),
            )
            found.keys[moved.name] = replace(moved, group=group, order=first + at) if group else moved
        return found

    def parse(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Turn a config into values, with defaults; what is not defined here is left out."""
        undefined = self._undefined()
        if undefined:
            listed = ",".join(undefined)
            raise ConfigError(f"Some configurations in are referred in the dependents, but not defined: {listed}")
        return {key.name: self._value(key, config) for key in self}

    def _value(self, key: Key, config: Mapping[str, Any]) -> Any:
        if key.name in config:
            value = key.parse(config[key.name])
        elif key.required:
            raise ConfigError(missing(key.name))
        else:
            value = key.default
        if key.validator:
            key.validator(key.name, value)
        return value

    def validate(self, config: Mapping[str, Any]) -> dict[str, ConfigValue]:
        """Find all errors of a config, and what could be chosen."""
        found = {name: ConfigValue(name) for name in self.keys}
        for name in self._undefined():
            error = f"{name} is referred in the dependents, but not defined."
            found[name] = ConfigValue(name, errors=[error], visible=False)
        parents = [key for key in self if not any(key.name in other.dependents for other in self)]
        values: dict[str, Any] = {}
        for key in parents:
            self._parse_for_validation(key, config, values, found)
        for key in parents:
            self._recommend(key, values, found)
        return found

    def _undefined(self) -> list[str]:
        return list(dict.fromkeys(each for key in self for each in key.dependents if each not in self.keys))

    def _parse_for_validation(
        self, key: Key, config: Mapping[str, Any], values: dict[str, Any], found: dict[str, ConfigValue]
    ) -> None:
        result, value = found[key.name], None
        if key.name in config:
            try:
                value = key.parse(config[key.name])
            except ConfigError as error:
                result.errors.append(str(error))
        elif key.required:
            result.errors.append(missing(key.name))
        else:
            value = key.default
        if key.validator:
            try:
                key.validator(key.name, value)
            except ConfigError as error:
                result.errors.append(str(error))
        values[key.name] = result.value = value
        for each in key.dependents:
            if each in self.keys:
                self._parse_for_validation(self.keys[each], config, values, found)

    def _recommend(self, key: Key, values: Values, found: dict[str, ConfigValue]) -> None:
        result = found[key.name]
        if key.recommender:
            try:
                before = result.recommended
                result.recommended = [
                    each for each in key.recommender.values(key.name, values) if not before or each in before
                ]
                result.visible = key.recommender.visible(key.name, values)
            except ConfigError as error:
                result.errors.append(str(error))
        for each in key.dependents:
            if each in self.keys:
                self._recommend(self.keys[each], values, found)

    def definitions(self) -> list[dict[str, Any]]:
        """Return the document of `GET /connector-plugins/X/config`."""
        return [key.definition() for key in self if not key.internal]


def rows(name: str, definition: ConfigDef, values: Iterable[ConfigValue], groups: Sequence[str]) -> dict[str, Any]:
    """Return the document of `PUT /connector-plugins/X/config/validate`; what is not defined comes first."""
    by_name = {value.name: value for value in values}
    unknown = [
        {"definition": None, "value": each.row(None)} for each in by_name.values() if each.name not in definition.keys
    ]
    known = [
        {"definition": key.definition(), "value": by_name[key.name].row(key.kind) if key.name in by_name else None}
        for key in definition
    ]
    errors = sum(len(value.errors) for value in by_name.values())
    return {"name": name, "error_count": errors, "groups": list(groups), "configs": unknown + known}


def _unprefixed(validator: Validator, prefix: str) -> Validator:
    return lambda name, value: validator(name.removeprefix(prefix), value)


def missing(name: str) -> str:
    return f'Missing required configuration "{name}" which has no default value.'


WHOLE = {
    Kind.INT: (32, "32-bit integer"),
    Kind.SHORT: (16, "16-bit integer (short)"),
    Kind.LONG: (64, "64-bit integer (long)"),
}


def parse_type(name: str, value: Any, kind: Kind, resolve: Callable[[str], Any] | None = None) -> Any:
    """Read a value of a type; texts are trimmed, and what has the type already is taken as it is."""
    text = trim(value) if isinstance(value, str) else None
    match kind:
        case Kind.BOOLEAN:
            if isinstance(value, bool):
                return value
            if text is not None and text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise invalid(name, value, "Expected value to be either true or false")
        case Kind.STRING | Kind.PASSWORD:
            if isinstance(value, Password) and kind is Kind.PASSWORD:
                return value
            if text is None:
                raise invalid(name, value, f"Expected value to be a string, but it was a {type(value).__name__}")
            return text if kind is Kind.STRING else Password(text)
        case Kind.INT | Kind.SHORT | Kind.LONG | Kind.DOUBLE:
            return _number(name, value, text, kind)
        case Kind.LIST:
            if isinstance(value, list | tuple):
                return list(value)
            if text is None:
                raise invalid(name, value, "Expected a comma separated list.")
            return COMMA.split(text) if text else []
        case Kind.CLASS:
            if text is None:
                return value
            found = resolve(text) if resolve else text
            if found is None:
                raise invalid(name, value, f"Class {value} could not be found.")
            return found


def _number(name: str, value: Any, text: str | None, kind: Kind) -> float:
    bits, described = WHOLE.get(kind, (0, "double"))
    if text is not None:
        try:
            return parse_int(text, bits) if bits else parse_double(text)
        except ValueError:
            raise invalid(name, value, f"Not a number of type {kind.name}") from None
    if isinstance(value, bool) or not isinstance(value, int if bits else (int, float)):
        raise invalid(name, value, f"Expected value to be a {described}, but it was a {type(value).__name__}")
    return value if bits else float(value)


def to_text(value: Any, kind: Kind | None) -> str | None:
    """Show a parsed value as a text."""
    if value is None:
        return None
    if kind is Kind.LIST and isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)


def listed(value: Any) -> str:
    """Show a value in an error: lists in Java's brackets."""
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list | tuple) else str(value)


def between(low: float | None = None, high: float | None = None) -> Validator:
    """Allow numbers of a range."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise invalid(name, "null", "Value must be non-null")
        if low is not None and value < low:
            raise invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise invalid(name, value, f"Value must be no more than {high}")

    return check


def one_of(*allowed: str) -> Validator:
    def check(name: str, value: Any) -> None:
        if value not in allowed:
            raise invalid(name, "null" if value is None else value, "String must be one of: " + ", ".join(allowed))

    return check


def one_of_any_case(*allowed: str) -> Validator:
    shown = [each.upper() for each in allowed]

    def check(name: str, value: Any) -> None:
        if value is None or value.upper() not in shown:
            reason = "String must be one of (case insensitive): " + ", ".join(shown)
            raise invalid(name, "null" if value is None else value, reason)

    return check


def each_of(*allowed: str) -> Validator:
    check = one_of(*allowed)

    def check_all(name: str, values: Any) -> None:
        for value in values or ():
            check(name, value)

    return check_all


def non_empty(name: str, value: Any) -> None:
    if value == "":
        raise invalid(name, value, "String must be non-empty")


def non_null(name: str, value: Any) -> None:
    if value is None:
        raise invalid(name, "null", "entry must be non null")


def non_empty_list(name: str, value: Any) -> None:
    if not value:
        raise invalid(name, "null" if value is None else listed(value), "Empty list")


def distinct(*, may_be_empty: bool = False) -> Validator:
    """Allow lists of different texts that are not empty (KIP-1161)."""

    def check(name: str, value: Any) -> None:
        said = f"Configuration '{name}'"
        if value is None:
            raise ConfigError(f"{said} values must not be null.")
        if not value and not may_be_empty:
            raise ConfigError(f"{said} must not be empty. Valid values include: any non-empty value")
        if len(set(value)) < len(value):
            raise ConfigError(f"{said} values must not be duplicated.")
        if "" in value:
            raise ConfigError(f"{said} values must not be empty.")

    return check


def without_control_characters(name: str, value: Any) -> None:
    """Allow texts that are not empty and have no control characters: the names of connectors."""
    if value is None:
        return
    if value == "":
        raise invalid(name, value, "String may not be empty")
    bad = [ord(each) for each in value if ord(each) < 32 or 127 <= ord(each) < 160]
    if bad:
        reason = "String may not contain control sequences but had the following ASCII chars: "
        raise invalid(name, value, reason + ", ".join(map(str, bad)))


def all_of(*validators: Validator) -> Validator:
    def check(name: str, value: Any) -> None:
        for each in validators:
            each(name, value)

    return check
