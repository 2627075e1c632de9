"""The error codes of a response, wherever its message has them.

A response that refuses as a whole has one outcome; one that answers item by item has an outcome for each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, NamedTuple

from moldau.client.errors import ClientError, error_of
from moldau.wire.errors import Error
from moldau.wire.schema import Message, Struct


class Outcome(NamedTuple):
    """What became of one item: the error, the broker's own words about it, and what names the item."""

    error: Error
    message: str | None
    item: str


class Shape(NamedTuple):
    """Where a struct has its error code, message and name, and which of its fields hold more structs."""

    code: str | None
    message: str | None
    names: tuple[str, ...]
    inner: tuple[str, ...]


NAMES = {"name", "topic", "topic_name", "group_id", "key", "transactional_id", "resource_name", "partition_index"}
NAMES |= {"index", "member_id", "user", "log_dir", "partition"}


def outcomes(answer: Any) -> list[Outcome]:
    """Return all outcomes in the response's order; below a refusal nothing counts."""
    return list(_outcomes(answer, ""))


def check(answer: Any) -> Any:
    """Return the answer if it has no error; otherwise raise ClientError with the answer in it."""
    for error, message, item in outcomes(answer):
        if error:
            words = (message or error.message).rstrip(".")
            what = f"{type(answer).__name__.removesuffix('Response')}{' of ' + item if item else ''}"
            raise ClientError(error, f"{what}: {words} ({error.name}).", answer=answer)
    return answer


def all_among(answer: Any, errors: Collection[Error]) -> bool:
    """Tell whether nothing succeeded and each refusal is one of these: then the request may be repeated."""
    is_refusal = False
    for outcome in _outcomes(answer, ""):
        if outcome.error not in errors:
            return False  # usually the first; the rest, perhaps 10,000 topics, is skipped
        is_refusal = True
    return is_refusal


def _outcomes(value: Any, path: str) -> Iterator[Outcome]:
    shape = _shape(type(value))
    item = "-".join(filter(None, (path, *(str(getattr(value, name)) for name in shape.names))))
    code = getattr(value, shape.code) if shape.code else 0
    is_alone = True
    for name in () if code else shape.inner:
        for one in _items(value, name):
            for outcome in _outcomes(one, item):
                is_alone = False
                yield outcome
    if is_alone and shape.code:
        yield Outcome(error_of(code), getattr(value, shape.message) if shape.message else None, item)


def _items(value: Any, name: str) -> Collection[Any]:
    found = getattr(value, name)
    return () if found is None else found if isinstance(found, list | tuple) else (found,)


@cache
def _shape(cls: type[Any]) -> Shape:
    spec: Message | Struct = cls.SCHEMA
    names = [field.name for field in spec.fields]
    codes = [name for name in names if name.endswith("error_code")]
    words = [name for name in names if name.endswith("error_message")]
    naming = () if isinstance(spec, Message) else tuple(name for name in names if name in NAMES)
    inner = tuple(field.name for field in spec.fields if field.struct is not None)
    return Shape(codes[0] if codes else None, words[0] if words else None, naming, inner)
