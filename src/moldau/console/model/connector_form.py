"""The form of a new connector, from what a worker says when it validates a config. Nothing here asks anybody."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from moldau.admin.connector_wizard import Question, hint_of, question_of
from moldau.admin.connectors import answered
from moldau.console.model.connectors import HIDDEN, edited
from moldau.console.model.problems import Refused

CLASS = "connector.class"
FIRST = ""  # the group of what must be set, and of what is set already
OWN = "Connector"  # the group of settings that a plugin puts into none
IMPORTANCE = ("HIGH", "MEDIUM", "LOW")


class Kind(Enum):
    """How a setting is entered."""

    TEXT = 1
    SECRET = 2
    CHOICE = 3


@dataclass(frozen=True, slots=True)
class Field:
    """A setting in the form. `problems` are all errors of the worker, also that the setting is missing."""

    question: Question
    kind: Kind
    group: str
    is_required: bool
    is_visible: bool
    problems: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def choices(self) -> tuple[str, ...]:
        return self.question.choices if self.kind is Kind.CHOICE else ()

    @property
    def hint(self) -> str:
        return hint_of(replace(self.question, choices=()) if self.choices else self.question)


def fields(found: Mapping[str, Any], config: Mapping[str, str]) -> list[Field]:
    """Return the settings: those to be set first, then by group, those of a plugin's own before common ones, and by
    importance within a group.
    """
    groups = {FIRST: -2, OWN: -1} | {name: place for place, name in enumerate(found["groups"])}
    rows = [row for row in answered(found) if row["value"]["name"] != CLASS]
    made = [(_field(row, config), row["definition"]) for row in rows]

    def place(one: tuple[Field, Mapping[str, Any]]) -> tuple[int, bool, int]:
        field, definition = one
        return (
            groups.get(field.group, len(groups)),
            field.name != "name",
            IMPORTANCE.index(definition["importance"]),
        )

    return [field for field, _ in sorted(made, key=place)]


def _field(row: Mapping[str, Any], config: Mapping[str, str]) -> Field:
    value, definition = row["value"], row["definition"]
    question = question_of(row, config)
    if definition["type"] == "BOOLEAN":
        question = replace(question, choices=("true", "false"))
    kind = Kind.CHOICE if question.choices and definition["type"] != "LIST" else Kind.TEXT
    is_first = definition["required"] or bool(value["errors"]) or value["name"] in config
    return Field(
        question,
        Kind.SECRET if question.is_secret else kind,
        FIRST if is_first else definition["group"] or OWN,
        definition["required"],
        value["visible"],
        tuple(dict.fromkeys(value["errors"])),
    )


def sentence(form: Iterable[Field], config: Mapping[str, str]) -> str:
    """Say what is missing and what is wrong; nothing if the config is valid."""
    bad = [one for one in form if one.problems]
    missing = [one.name for one in bad if one.is_required and one.name not in config]
    wrong = [one.name for one in bad if one.name not in missing]
    parts = (f"{title}: {', '.join(names)}." for title, names in (("Missing", missing), ("Wrong", wrong)) if names)
    return " ".join(parts)


def pasted(text: str, config: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """Return the config that a user has written, or a whole request to create a connector; Refused if it is none."""
    given = edited(text, config, secrets)
    inner = given.get("config")
    if isinstance(inner, dict):
        given = {**({"name": given["name"]} if "name" in given else {}), **inner}
    nested = [name for name, value in given.items() if isinstance(value, dict | list)]
    if nested:
        raise Refused(f"The value of {nested[0]} must be a text, a number, true or false.")
    hidden = [name for name, value in given.items() if value == HIDDEN]
    if hidden:
        raise Refused(f"{hidden[0]} is hidden where this config comes from: write its value.")
    return {name: _text(value) for name, value in given.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def title(plugin: str, kind: str) -> str:
    """Return a plugin's name as people choose it; two packages may have a class of the same name."""
    package, _, name = plugin.rpartition(".")
    return f"{name} ({kind}{', ' * bool(package)}{package})"


def plugin_of(name: str, classes: Sequence[str]) -> str | None:
    """Return the class of a plugin from its name, which may lack the package and the word Connector."""
    short = {one.rpartition(".")[2]: one for one in reversed(classes)}
    return name if name in classes else short.get(name) or short.get(f"{name}Connector")
