"""A batch whose rows may name different schemas: taken apart, converted schema by schema, put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..context import SerdeError
from ..framing import SchemaRef, read, read_path
from ..registry import RegistryError
from .batch import NO_ID, Converted, Slices

NOT_FRAMED = "it does not begin with a schema id: it was not written with a schema registry"


@dataclass(slots=True)
class Group:
    ref: SchemaRef
    rows: np.ndarray
    payloads: Slices


def by_schema(values: pa.Array, headers: pa.Array | None, indexes: bool, errors: dict[int, str]) -> Iterator[Group]:
    """Group rows by the schema that they name, in their header if there is one, otherwise in their prefix."""
    slices = Slices.of(values)
    waiting = slices.present.copy()
    if headers is not None and headers.null_count < len(headers):
        yield from by_header(slices, headers, indexes, errors)
        waiting &= ~headers.is_valid().to_numpy(False)
    ids, payloads = slices.unframed()
    for row in np.flatnonzero(waiting & (ids == NO_ID)).tolist():
        errors[row] = NOT_FRAMED
    for id in np.unique(ids[waiting & (ids != NO_ID)]).tolist():
        rows = np.flatnonzero(waiting & (ids == id))
        found = Group(SchemaRef(id), rows, payloads.take(rows))
        yield from by_message(found, errors) if indexes else (found,)


def by_header(slices: Slices, headers: pa.Array, indexes: bool, errors: dict[int, str]) -> Iterator[Group]:
    coded = headers.cast(pa.binary()).dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(False)
    for number, carried in enumerate(coded.dictionary.to_pylist()):
        rows = np.flatnonzero((codes == number) & slices.present)
        try:
            yield Group(read(carried, indexes)[0], rows, slices.take(rows))
        except SerdeError as error:
            errors.update(dict.fromkeys(rows.tolist(), str(error)))


def by_message(group: Group, errors: dict[int, str]) -> Iterator[Group]:
    """Group Protobuf's rows by the message that they name: nearly always the first, a single 0."""
    payloads = group.payloads
    nonempty = payloads.ends > payloads.starts
    first = nonempty & (payloads.data[np.where(nonempty, payloads.starts, 0)] == 0)
    paths: dict[tuple[int, ...], list[int]] = {}
    starts = payloads.starts + first
    for at in np.flatnonzero(~first).tolist():
        whole = payloads.data[payloads.starts[at] : payloads.ends[at]].tobytes()
        try:
            path, length = read_path(whole, 0)
        except SerdeError as error:
            errors[int(group.rows[at])] = str(error)
            continue
        starts[at] += length
        paths.setdefault(path, []).append(at)
    moved = Slices(payloads.data, starts, payloads.ends, payloads.present)
    for path, some in [((0,), np.flatnonzero(first)), *((path, np.array(some)) for path, some in paths.items())]:
        if len(some):
            yield Group(SchemaRef(group.ref.id, group.ref.guid, path), group.rows[some], moved.take(some))


def convert(
    values: pa.Array,
    headers: pa.Array | None,
    type: pa.DataType,
    read_group: Callable[[Group], Converted],
    indexes: bool = False,
) -> Converted:
    """Convert all rows into one array. A schema that the registry does not know is an error of its rows; a registry
    that is away is not, and is raised."""
    errors: dict[int, str] = {}
    pieces: list[pa.Array] = []
    places = np.full(len(values), -1, np.int64)  # where each row is among the pieces
    total = 0
    for group in by_schema(values, headers, indexes, errors):
        try:
            made = read_group(group)
        except SerdeError as error:
            if isinstance(error, RegistryError) and error.retriable:
                raise
            errors.update(dict.fromkeys(group.rows.tolist(), str(error)))
            continue
        if len(group.rows) == len(values):
            return made
        errors.update((int(group.rows[at]), why) for at, why in made.errors.items())
        places[group.rows] = np.arange(total, total + len(group.rows))
        total += len(group.rows)
        pieces.append(made.values)
    if not pieces:
        return Converted(pa.nulls(len(values), type), errors)
    whole = pa.concat_arrays(pieces)
    return Converted(whole.take(pa.array(places, mask=places < 0)), errors)
