"""The instructions of the two Avro machines: what compiled programs are made of, and what can go wrong with a row."""

from __future__ import annotations

from moldau.wire.kernel import BAD_NUMBER, TRUNCATED

# Both machines: flow.
HALT, JUMP, UNION, LIST, NEXT, CONSTANT, RESUME, FAIL = range(8)
# Both machines: values. `k` is the element of the column, operands are buffers and counters.
INT, LONG, BOOL, FIXED, BYTES, STRING, ENUM, DECIMAL, DECIMAL_FIXED, UUID, DURATION, RAW = range(10, 22)
# Reading: promotions, nulls, and what the reader does not want.
INT_TO_FLOAT, INT_TO_DOUBLE, FLOAT_TO_DOUBLE, VALID, EMPTY = range(30, 35)
SKIP_NUMBER, SKIP_BYTES, SKIP_FIXED, SKIP_NEXT = range(40, 44)
# Writing.
BRANCH, IF_NULL, REQUIRE, BYTE_STRING = range(50, 54)

OPERANDS = 5  # an instruction is its number and up to four operands

# Problems of a row, from 1; a machine returns them as negative positions.
BAD_LENGTH, BAD_BRANCH, BAD_SYMBOL, BAD_TEXT = range(3, 7)  # TRUNCATED and BAD_NUMBER are those of varints
BAD_DECIMAL, BAD_TIME, BAD_VALUE, UNREADABLE, NULL = range(7, 12)
FULL = 100  # not a problem of the row: a counter needs more room

PROBLEMS = {
    TRUNCATED: "the bytes end within a value",
    BAD_NUMBER: "a number is too long for its type",
    BAD_LENGTH: "a length is negative or larger than what follows",
    BAD_BRANCH: "a union has no such branch",
    BAD_SYMBOL: "an enum has no such symbol",
    BAD_TEXT: "a text is not valid UTF-8",
    BAD_DECIMAL: "a decimal has more digits than its precision",
    BAD_TIME: "a time is not within a day",
    BAD_VALUE: "a value does not fit its type",
    UNREADABLE: "the writer's type cannot be read as the reader's",
    NULL: "a null where the schema has none",
}
