"""Authorized operations: which operations each kind of resource knows, as the bit fields of the Describe answers.

The fields here are those of a broker that has no authorizer; with one a guard fills in what the client may do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moldau.machines.metadata import acls
from moldau.machines.metadata.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    IDEMPOTENT_WRITE,
    READ,
    WRITE,
)

NOT_ASKED = -(2**31)  # the client did not ask for them

OF = {
    acls.TOPIC: (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
    acls.CLUSTER: (CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE),
    acls.GROUP: (READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS),
}


def bits(operations: Iterable[int]) -> int:
    return sum(1 << operation for operation in operations)


TOPIC, CLUSTER, GROUP = bits(OF[acls.TOPIC]), bits(OF[acls.CLUSTER]), bits(OF[acls.GROUP])


def add_to_groups(request: Any, rows: Iterable[Any]) -> None:
    """Add the operations to the groups that a request has found, if it asks for them."""
    if request.include_authorized_operations:
        for row in rows:
            if not row.error_code:
                row.authorized_operations = GROUP
