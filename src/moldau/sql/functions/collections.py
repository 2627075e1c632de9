"""Functions of arrays, maps and structs, and those that take lambdas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

from ..casts import java_text
from ..maps import items
from ..tree import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, ArrayType, DecimalType, Field, MapType, StructType, Type
from ..types import text
from .registry import scalar


def frozen(value: Any) -> Any:
    """Return a value that can be a member of a set, equal for equal values."""
    if isinstance(value, list):
        return ("list", *map(frozen, value))
    if isinstance(value, dict):
        return ("dict", frozenset((frozen(key), frozen(each)) for key, each in value.items()))
    if isinstance(value, tuple):
        return ("tuple", *map(frozen, value))
    return (isinstance(value, bool), value)


def distinct(values: Iterable[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for each in values:
        found.setdefault(frozen(each), each)
    return list(found.values())


@scalar("array_length(ARRAY<T> array) -> INTEGER", doc="Returns the number of elements.")
def array_length(array: list[Any]) -> int:
    return len(array)


@scalar(
    "array_contains(ARRAY<T> array, T value) -> BOOLEAN", doc="Says whether an array has a value.", takes_nulls=True
)
def array_contains(array: list[Any] | None, value: Any) -> bool:
    return array is not None and value in array


@scalar("array_distinct(ARRAY<T> array) -> ARRAY<T>", doc="Leaves out repeated elements.")
def array_distinct(array: list[Any]) -> list[Any]:
    return distinct(array)


@scalar("array_concat(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", doc="Joins two arrays.", takes_nulls=True)
def array_concat(left: list[Any] | None, right: list[Any] | None) -> list[Any] | None:
    return None if left is None and right is None else [*(left or []), *(right or [])]


@scalar("array_union(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", doc="Returns the distinct elements of both arrays.")
def array_union(left: list[Any], right: list[Any]) -> list[Any]:
    return distinct([*left, *right])


@scalar(
    "array_except(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", doc="Returns the distinct elements of only the first."
)
def array_except(left: list[Any], right: list[Any]) -> list[Any]:
    without = set(map(frozen, right))
    return [each for each in distinct(left) if frozen(each) not in without]


@scalar("array_intersect(ARRAY<T> left, ARRAY<T> right) -> ARRAY<T>", doc="Returns the distinct elements of both.")
def array_intersect(left: list[Any], right: list[Any]) -> list[Any]:
    both = set(map(frozen, right))
    return [each for each in distinct(left) if frozen(each) in both]


@scalar(
    "array_remove(ARRAY<T> array, T value) -> ARRAY<T>",
    doc="Removes each element that equals a value.",
    takes_nulls=True,
)
def array_remove(array: list[Any] | None, value: Any) -> list[Any] | None:
    return None if array is None else [each for each in array if each != value]


def _known(array: list[Any]) -> list[Any]:
    return [each for each in array if each is not None]


@scalar("array_max(ARRAY<T> array) -> T", doc="Returns the greatest element; nulls do not count.")
def array_max(array: list[Any]) -> Any:
    return max(_known(array), default=None)


@scalar("array_min(ARRAY<T> array) -> T", doc="Returns the least element; nulls do not count.")
def array_min(array: list[Any]) -> Any:
    return min(_known(array), default=None)


@scalar(
    "array_sort(ARRAY<T> array) -> ARRAY<T>",
    "array_sort(ARRAY<T> array, STRING direction) -> ARRAY<T>",
    doc="Sorts an array, ASC or DESC; nulls come last.",
)
def array_sort(array: list[Any], direction: str = "ASC") -> list[Any] | None:
    word = direction.upper()
    if word not in ("ASC", "ASCENDING", "DESC", "DESCENDING"):
        return None
    known = sorted(_known(array), reverse=word.startswith("DESC"))
    return [*known, *[None] * (len(array) - len(known))]


def _joiner(types: Sequence[Any]) -> Callable[..., Any]:
    item = types[0].item if isinstance(types[0], ArrayType) else None
    simple = item is None or isinstance(item, DecimalType) or item in (BOOLEAN, INTEGER, BIGINT, DOUBLE, STRING)
    text_of = str if item is None else java_text(item)

    def write(value: Any) -> str:
        if value is not None and not simple:
            raise ValueError(f"error: hit element of type {text(item)} which is currently not supported")
        return text_of(value)

    def join(array: list[Any] | None, delimiter: str | None = ",") -> str | None:
        return None if array is None else (delimiter or "").join(map(write, array))

    return join


scalar(
    "array_join(ARRAY<T> array) -> STRING",
    "array_join(ARRAY<T> array, STRING delimiter) -> STRING",
    doc="Joins the texts of the elements.",
    takes_nulls=True,
    make=_joiner,
)(lambda *_values: None)


@scalar(
    "slice(ARRAY<T> array, INTEGER start, INTEGER end) -> ARRAY<T>",
    doc="Returns the elements from a place to another.",
    takes_nulls=True,
)
def slice_array(array: list[Any] | None, start: int | None, end: int | None) -> list[Any] | None:
    if array is None:
        return None
    first = 0 if start is None else start - 1
    last = len(array) if end is None else end
    if not 0 <= first <= len(array) or last > len(array) or last < first:
        return None
    return array[first:last]


@scalar("as_map(ARRAY<STRING> keys, ARRAY<T> values) -> MAP<STRING, T>", doc="Makes a map of keys and values.")
def as_map(keys: list[str], values: list[Any]) -> dict[str, Any]:
    return dict(zip_longest(keys, values[: len(keys)]))


@scalar("map_keys(MAP<K, V> map) -> ARRAY<K>", doc="Returns the keys of a map.")
def map_keys(map: dict[Any, Any]) -> list[Any]:
    return [key for key, _ in items(map)]


@scalar("map_values(MAP<K, V> map) -> ARRAY<V>", doc="Returns the values of a map.")
def map_values(map: dict[Any, Any]) -> list[Any]:
    return [value for _, value in items(map)]


@scalar(
    "map_union(MAP<K, V> left, MAP<K, V> right) -> MAP<K, V>", doc="Joins two maps; the second wins.", takes_nulls=True
)
def map_union(left: dict[Any, Any] | None, right: dict[Any, Any] | None) -> dict[Any, Any] | None:
    return None if left is None and right is None else {**(left or {}), **(right or {})}


def _entries_type(types: Sequence[Any]) -> Type:
    assert isinstance(types[0], MapType)
    return ArrayType(StructType((Field("K", types[0].key), Field("V", types[0].value))))


@scalar(
    "entries(MAP<STRING, V> map, BOOLEAN sorted) -> ARRAY<V>",
    doc="Returns the entries of a map as structs of K and V, sorted by key if wanted.",
    result=_entries_type,
)
def entries(map: dict[str, Any], ordered: bool) -> list[tuple[str, Any]]:
    return sorted(map.items(), key=lambda entry: entry[0]) if ordered else items(map)


@scalar("elt(INTEGER place, STRING... values) -> STRING", doc="Returns the value at a place, from 1.", takes_nulls=True)
def elt(place: int | None, *values: str | None) -> str | None:
    return values[place - 1] if place is not None and 1 <= place <= len(values) else None


@scalar(
    "field(STRING value, STRING... values) -> INTEGER", doc="Returns the place of a value, from 1.", takes_nulls=True
)
def field(value: str | None, *values: str | None) -> int:
    return 0 if value is None or value not in values else values.index(value) + 1


def _known_value(value: Any) -> Any:
    """Refuse a null value, which the map that FILTER and TRANSFORM make cannot hold in Java."""
    if value is None:
        raise ValueError("a value of the map is null")
    return value


@scalar("filter(ARRAY<T> array, LAMBDA<T, BOOLEAN> keep) -> ARRAY<T>", doc="Keeps what a lambda says.")
def filter_array(array: list[Any], keep: Callable[..., Any]) -> list[Any]:
    return [each for each in array if keep(each)]


@scalar("filter(MAP<K, V> map, LAMBDA<K, V, BOOLEAN> keep) -> MAP<K, V>")
def filter_map(map: dict[Any, Any], keep: Callable[..., Any]) -> dict[Any, Any]:
    return {key: _known_value(value) for key, value in map.items() if keep(key, value)}


@scalar("transform(ARRAY<T> array, LAMBDA<T, U> change) -> ARRAY<U>", doc="Applies lambdas to each element.")
def transform_array(array: list[Any], change: Callable[..., Any]) -> list[Any]:
    return [change(each) for each in array]


@scalar("transform(MAP<K, V> map, LAMBDA<K, V, R> key, LAMBDA<K, V, U> value) -> MAP<R, U>")
def transform_map(map: dict[Any, Any], key: Callable[..., Any], value: Callable[..., Any]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for one, two in map.items():
        new = key(one, two)
        if new in made:
            raise ValueError(f"Duplicate key {new}")
        made[new] = _known_value(value(one, two))
    return made


@scalar(
    "reduce(ARRAY<T> array, S state, LAMBDA<S, T, S> step) -> S",
    doc="Folds the elements into a state.",
    takes_nulls=True,
)
def reduce_array(array: list[Any] | None, state: Any, step: Callable[..., Any]) -> Any:
    if state is None:
        return None
    for each in array or ():
        state = step(state, each)
    return state


@scalar("reduce(MAP<K, V> map, S state, LAMBDA<S, K, V, S> step) -> S", takes_nulls=True)
def reduce_map(map: dict[Any, Any] | None, state: Any, step: Callable[..., Any]) -> Any:
    if state is None:
        return None
    for key, value in items(map or {}):
        state = step(state, key, value)
    return state


@scalar("AS_VALUE(T key) -> T", doc="Copies a key column into the value.", takes_nulls=True)
def as_value(key: Any) -> Any:
    return key


@scalar("COALESCE(T first, T... others) -> T", doc="Returns the first value that is not null.", takes_nulls=True)
def coalesce(*values: Any) -> Any:
    return next((each for each in values if each is not None), None)


@scalar("IFNULL(T value, T other) -> T", doc="Returns the second value if the first is null.", takes_nulls=True)
def ifnull(value: Any, other: Any) -> Any:
    return other if value is None else value


@scalar("NULLIF(T value, T other) -> T", doc="Returns null if both values are equal.", takes_nulls=True)
def nullif(value: Any, other: Any) -> Any:
    return None if value is None or value == other else value
