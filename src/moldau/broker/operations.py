"""Authorized operations: which operations each kind of resource knows, as the bit fields of the Describe answers."""

from __future__ import annotations

from collections.abc import Iterable

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12

NOT_ASKED = -(2**31)  # the client did not ask for them


def bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


TOPIC = bits((READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
CLUSTER = bits((CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE))
GROUP = bits((READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS))
