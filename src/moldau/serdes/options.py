"""What a serde with a schema is told, under Confluent's names: `Options.of({"use.latest.version": True})`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .context import Context, SerdeError

SubjectOf = Callable[[Context, str | None], str]


def by_topic(context: Context, record: str | None) -> str:
    return f"{context.topic}-{context.field}"


def by_record(context: Context, record: str | None) -> str:
    if record is None:
        raise SerdeError("the subject strategies RECORD and TOPIC_RECORD need a schema with a name: use TOPIC")
    return record


def by_topic_and_record(context: Context, record: str | None) -> str:
    return f"{context.topic}-{by_record(context, record)}"


STRATEGIES: dict[str, SubjectOf] = {"TOPIC": by_topic, "RECORD": by_record, "TOPIC_RECORD": by_topic_and_record}
CHOICES: dict[str, Mapping[str, Any]] = {
    "subject.name.strategy": STRATEGIES,
    "schema.id.in": {"prefix": False, "header": True},
}
NAMES = {  # setting -> field of Options, what it must be
    "auto.register.schemas": ("auto_register", bool),
    "use.latest.version": ("use_latest", bool),
    "use.latest.with.metadata": ("metadata", dict),
    "use.schema.id": ("schema_id", int),
    "normalize.schemas": ("normalize", bool),
    "subject.name.strategy": ("subject_of", str),
    "schema.id.in": ("in_header", str),
    "validate": ("validate", bool),
}
RULE_PARAM = "rule.executors._default_.param."  # before the settings of a key management service


@dataclass(frozen=True, slots=True)
class Options:
    auto_register: bool = True
    use_latest: bool = False
    metadata: Mapping[str, str] | None = None  # use the latest version that has these properties
    schema_id: int | None = None
    normalize: bool = False
    subject_of: SubjectOf = by_topic
    in_header: bool = False  # the GUID in a header of the record instead of the id before the payload
    validate: bool = True  # JSON Schema: values are checked
    rule_params: Mapping[str, str] = field(default_factory=dict, repr=False)  # there may be secrets among them

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Read settings. `auto.register.schemas` is on unless a choice of the schema is made that excludes it."""
        params = {name.removeprefix(RULE_PARAM): str(given[name]) for name in given if name.startswith(RULE_PARAM)}
        fields = dict(field_of(name, value) for name, value in given.items() if not name.startswith(RULE_PARAM))
        chosen = [name for name in ("use_latest", "metadata", "schema_id") if fields.get(name)]
        if chosen and given.get("auto.register.schemas"):
            raise ValueError(
                "auto.register.schemas excludes use.latest.version, use.latest.with.metadata and use.schema.id"
            )
        return cls(**{"auto_register": not chosen, **fields}, rule_params=params)

    @property
    def takes_from_registry(self) -> bool:
        return self.use_latest or self.metadata is not None or self.schema_id is not None


def field_of(name: str, value: Any) -> tuple[str, Any]:
    if name not in NAMES:
        near = difflib.get_close_matches(name, NAMES, 1)
        raise ValueError(f"serde setting {name!r} is not known" + (f": did you mean {near[0]!r}?" if near else ""))
    field, kind = NAMES[name]
    if isinstance(value, str) and kind in (bool, int):
        value = parsed(name, value, kind)
    if name == "subject.name.strategy" and callable(value):
        return field, value
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} must be {kind.__name__}, not {value!r}")
    if name not in CHOICES:
        return field, value
    value = value.upper() if name == "subject.name.strategy" else value
    if value not in CHOICES[name]:
        raise ValueError(f"{name} must be one of {', '.join(CHOICES[name])}, not {value!r}")
    return field, CHOICES[name][value]


def parsed(name: str, value: str, kind: type) -> Any:
    if kind is int and value.isdecimal():
        return int(value)
    if kind is bool and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"{name} must be {kind.__name__}, not {value!r}")
