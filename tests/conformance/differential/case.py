"""A case is a row: a name, an API, its versions and the request. A script is some topics and cases in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moldau.wire import frames, schema
from moldau.wire import messages as m

CLIENT_ID = "differential"
NOW = int(time.time() * 1000)  # what the times of records are counted from
LONG_MS = 600_000  # a timeout that even a slow machine does not reach while a script is played


@dataclass(frozen=True, slots=True)
class Case:
    """One request in each of its versions.

    The body is plain data: a struct is a dict of its fields or a tuple in their order, what is left out has its
    default, and fields that a version does not have are not sent. A value may be a function of the target, for
    what the brokers give (ids of topics, of sessions). `wire` changes the frame before it is sent.
    """

    name: str
    api: str
    versions: int | Iterable[int]
    body: Any = field(default_factory=dict)
    wire: Callable[[bytes], bytes] | None = None
    answer: int | None = None  # the version of the answer, where it is another than that of the request
    silent: bool = False  # no answer is due
    patience_s: float = 20.0
    settle_s: float = 0.0  # how long to wait behind a change that brokers judge by what they have heard of others
    signs: tuple[str, ...] = ()  # fields of which only the sign is compared: here they are each broker's own time
    keep: Callable[[Any, Any], None] | None = None  # given target and answer: for what later cases need

    def all_versions(self) -> Iterator[int]:
        yield from [self.versions] if isinstance(self.versions, int) else self.versions

    def frame(self, target: Any, version: int, correlation_id: int) -> bytes:
        request = m.message(f"{self.api}Request")
        message = fill(request.SCHEMA, self.body, version, target)
        frame = frames.request_frame(message, version, correlation_id, CLIENT_ID)
        return self.wire(frame) if self.wire else frame


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    cases: Sequence[Case]
    topics: Mapping[str, tuple[int, Mapping[str, str]]] = field(default_factory=dict)  # partitions and settings
    slow: bool = False  # played by `make conformance` alone


def fill(struct: schema.Message | schema.Struct, value: Any, version: int, target: Any) -> Any:
    """The message or struct of plain data."""
    value = value(target) if callable(value) else value
    names = [field.name for field in struct.fields]
    given = value if isinstance(value, dict) else dict(zip(names, value, strict=False))
    assert given.keys() <= set(names), f"{struct.name} has no {sorted(given.keys() - set(names))}"
    sent = [row for row in struct.fields if row.name in given and row.at(version)]
    return getattr(m, struct.name)(**{row.name: _filled(row, given[row.name], version, target) for row in sent})


def _filled(row: schema.Field, value: Any, version: int, target: Any) -> Any:
    value = value(target) if callable(value) else value
    if row.struct is None or value is None:
        return [item(target) if callable(item) else item for item in value] if row.is_array and value else value
    if row.is_array:
        return [fill(row.struct, item, version, target) for item in value]
    return fill(row.struct, value, version, target)


def topic_id(name: str) -> Callable[[Any], bytes]:
    """The id that each broker gave to a topic of this name; of an unknown one, an id that no topic has."""
    return lambda target: target.ids.get(name, b"?" * 16)
