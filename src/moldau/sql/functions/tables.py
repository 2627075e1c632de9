"""Table functions: a row becomes as many rows as the longest of their lists."""

from __future__ import annotations

from itertools import product
from typing import Any

from .registry import table_function


@table_function(
    "explode(ARRAY<DECIMAL> input) -> DECIMAL", "explode(ARRAY<T> list) -> T", doc="A row for each element."
)
def explode(array: list[Any] | None) -> list[Any]:
    return array or []


@table_function(
    "cube_explode(ARRAY<T> columns) -> ARRAY<T>", doc="A row for each combination of the elements with null."
)
def cube_explode(columns: list[Any] | None) -> list[Any]:
    if columns is None:
        return []
    return [list(each) for each in product(*([None] if value is None else [None, value] for value in columns))]
