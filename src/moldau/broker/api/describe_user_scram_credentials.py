"""DescribeUserScramCredentials (key 50), v0: mechanisms and iterations of users' SCRAM credentials (KIP-554).

Null or no users ask for all of them. Keys and salts are never told.
Deviates: nothing known.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.credentials import describe
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(50, versions=(0, 0))
def describe_user_scram_credentials(
    node: Node, connection: Connection, request: m.DescribeUserScramCredentialsRequest, version: int
) -> Answer:
    users = None if request.users is None else [user.name for user in request.users]
    found = describe(node.cluster.credentials, users)
    return m.DescribeUserScramCredentialsResponse(results=[row_of(*pair) for pair in found.items()])


def row_of(user: str, known: list[tuple[int, int]] | Refused) -> Any:
    if isinstance(known, Refused):
        refused = user, known.error, known.message
        return m.DescribeUserScramCredentialsResponse_DescribeUserScramCredentialsResult(*refused)
    infos = [m.DescribeUserScramCredentialsResponse_CredentialInfo(*pair) for pair in known]
    return m.DescribeUserScramCredentialsResponse_DescribeUserScramCredentialsResult(user, credential_infos=infos)
