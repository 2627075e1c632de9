"""Transforms: Connect's sixteen, ours and Debezium's, as rows of one table. `chain` makes functions of them."""

from __future__ import annotations

from moldau.connect.transforms.cast import CAST
from moldau.connect.transforms.debezium import (
    BY_LOGICAL_TABLE_ROUTER,
    EXTRACT_NEW_RECORD_STATE,
)
from moldau.connect.transforms.fields import (
    EXTRACT_FIELD,
    HOIST_FIELD,
    INSERT_FIELD,
    MASK_FIELD,
    REPLACE_FIELD,
    VALUE_TO_KEY,
)
from moldau.connect.transforms.headers import DROP_HEADERS, HEADER_FROM, INSERT_HEADER
from moldau.connect.transforms.kinds import TransformClass
from moldau.connect.transforms.outbox import EVENT_ROUTER
from moldau.connect.transforms.own import EXPLODE, PYTHON, SQL
from moldau.connect.transforms.routing import FILTER, REGEX_ROUTER, TIMESTAMP_ROUTER
from moldau.connect.transforms.structure import FLATTEN, SET_SCHEMA_METADATA
from moldau.connect.transforms.timestamps import TIMESTAMP_CONVERTER

TRANSFORMS: tuple[TransformClass, ...] = (
    CAST,
    DROP_HEADERS,
    EXTRACT_FIELD,
    FILTER,
    FLATTEN,
    HEADER_FROM,
    HOIST_FIELD,
    INSERT_FIELD,
    INSERT_HEADER,
    MASK_FIELD,
    REGEX_ROUTER,
    REPLACE_FIELD,
    SET_SCHEMA_METADATA,
    TIMESTAMP_CONVERTER,
    TIMESTAMP_ROUTER,
    VALUE_TO_KEY,
    EXPLODE,
    PYTHON,
    SQL,
    BY_LOGICAL_TABLE_ROUTER,
    EVENT_ROUTER,
    EXTRACT_NEW_RECORD_STATE,
)
