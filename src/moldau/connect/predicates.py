"""Predicates: which records a transform is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from moldau.connect.config_def import ConfigDef, Key, all_of, non_empty
from moldau.connect.data import Record
from moldau.connect.transforms.routing import check_regex
from moldau.java.regex import compile_regex

Predicate = Callable[[Record], bool]
PACKAGE = "org.apache.kafka.connect.transforms.predicates"


@dataclass(frozen=True, slots=True)
class PredicateClass:
    """A row of the table of predicates."""

    name: str
    doc: str
    settings: ConfigDef
    make: Callable[[Mapping[str, Any]], Predicate]

    @property
    def class_names(self) -> list[str]:
        return [f"{PACKAGE}.{self.name}"]


def _has_header(settings: Mapping[str, Any]) -> Predicate:
    return lambda record: any(each.name == settings["name"] for each in record.headers)


def _topic_matches(settings: Mapping[str, Any]) -> Predicate:
    regex = compile_regex(settings["pattern"])
    return lambda record: regex.fullmatch(record.topic) is not None


def _is_tombstone(_settings: Mapping[str, Any]) -> Predicate:
    return lambda record: record.value is None


PREDICATES = (
    PredicateClass(
        "HasHeaderKey",
        "Is true for records that have a header of this name.",
        ConfigDef([Key("name", validator=non_empty, doc="The name of the header.")]),
        _has_header,
    ),
    PredicateClass("RecordIsTombstone", "Is true for records without a value.", ConfigDef(), _is_tombstone),
    PredicateClass(
        "TopicNameMatches",
        "Is true for records whose whole topic matches a regular expression of Java.",
        ConfigDef([Key("pattern", validator=all_of(non_empty, check_regex), doc="The regular expression.")]),
        _topic_matches,
    ),
)
