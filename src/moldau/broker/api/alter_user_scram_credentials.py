"""AlterUserScramCredentials (key 51), v0: store and remove SCRAM credentials of users (KIP-554).

A user is named once in a request, whatever the mechanism; one that is not in order does not hinder the others.
Deviates: an empty salted password is UNACCEPTABLE_CREDENTIAL (Kafka: UNKNOWN_SERVER_ERROR).
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.credentials import Upsertion, alter
from moldau.wire import messages as m
from moldau.wire.refusal import Refused


@api(51, versions=(0, 0))
async def alter_user_scram_credentials(
    node: Node, connection: Connection, request: m.AlterUserScramCredentialsRequest, version: int
) -> Answer:
    deletions = [(one.name, one.mechanism) for one in request.deletions]
    upsertions = [
        Upsertion(one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password))
        for one in request.upsertions
    ]
    proposal = node.metadata.propose()
    records, answer = alter(proposal.image.credentials, deletions, upsertions)
    proposal.add(records)
    rows = [row_of(*pair) for pair in answer.items()]
    return await proposal.answer(m.AlterUserScramCredentialsResponse(results=rows), rows)


def row_of(user: str, problem: Refused | None) -> Any:
    outcome = (problem.error, problem.message) if problem else (0, None)
    return m.AlterUserScramCredentialsResponse_AlterUserScramCredentialsResult(user, *outcome)
