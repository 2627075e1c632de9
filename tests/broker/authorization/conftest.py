"""A world with Kafka's authorizer: the test's own client may do everything, `alice` what she is granted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from moldau.machines.metadata.acls import ALLOW, CLUSTER, CLUSTER_NAME, LITERAL, Acl, record
from moldau.wire import messages as m
from tests.broker.conftest import FEW, Client, World

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE = "User:alice"
EVERYTHING = m.DeleteAclsRequest_DeleteAclsFilter(1, None, 1, None, None, 1, 1)


@dataclass
class Realm:
    """The world, and alice in it."""

    world: World
    alice: Client = field(init=False)

    def __post_init__(self) -> None:
        self.alice = self.client(ALICE)

    def client(self, principal: str) -> Client:
        client = Client(self.world.node)
        client.connection.principal = principal
        return client

    def grant(self, *rows: tuple[int, str, int], permission: int = ALLOW, pattern: int = LITERAL) -> None:
        """Rows of resource type, name and operation."""
        entries = [m.CreateAclsRequest_AclCreation(k, n, pattern, ALICE, "*", op, permission) for k, n, op in rows]
        results = self.world.call(m.CreateAclsRequest(entries)).results
        assert not any(row.error_code for row in results), results

    def grant_cluster(self, *operations: int) -> None:
        self.grant(*((CLUSTER, CLUSTER_NAME, operation) for operation in operations))

    def revoke_all(self) -> None:
        self.world.call(m.DeleteAclsRequest([EVERYTHING]))

    def have_only(self, *rows: tuple[int, str, int]) -> None:
        """Entries that are not written: quick, for tests that try many."""
        acls = self.world.node.cluster.acls
        for acl_id in list(acls.by_id):
            acls.replay_removal(m.RemoveAccessControlEntryRecord(acl_id))
        for number, (kind, name, operation) in enumerate(rows):
            acls.replay(record(Acl(kind, name, LITERAL, ALICE, "*", operation, ALLOW), number.to_bytes(16)))

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Alice's request and its answer, if need be after a while."""
        answer = self.alice.call(request, version)
        for _ in range(100):
            if answer is not None or self.alice.connection.wait is None:
                break
            self.world.advance(100)
            answer = self.alice.take()
        return answer


@pytest.fixture
def realm(make_world: Callable[..., World]) -> Realm:
    world = make_world(authorizer_class_name=STANDARD, super_users="User:ANONYMOUS", **FEW).coordinate()
    world.create("t")
    return Realm(world)
