"""UpdateFeatures (key 57), v0-2: raise or lower feature levels, all of them or none (KIP-584).

v1 upgrade types and dry runs (KIP-778); `allow_downgrade` of v0 is not looked at, as in Kafka.  v2 answers without a
row for each feature.
kraft.version is not in the metadata: the quorum has it in its own log.
Deviates: levels that one feature needs of another are not checked; a node that is alone stores kraft.version as the
other levels.
"""

from __future__ import annotations

from typing import Any

from moldau.broker.api import Answer, Connection, api
from moldau.broker.node import Node
from moldau.machines.metadata.features import KRAFT_VERSION, Wish, update_features
from moldau.wire import messages as m
from moldau.wire.errors import Error
from moldau.wire.refusal import Refused


@api(57, versions=(0, 2))
async def update(node: Node, connection: Connection, request: m.UpdateFeaturesRequest, version: int) -> Answer:
    wishes = [Wish(f.feature, f.max_version_level, f.upgrade_type) for f in request.feature_updates]
    proposal = node.metadata.propose()
    stored = [wish for wish in wishes if node.quorum is None or wish.feature != KRAFT_VERSION]
    try:
        records = update_features(proposal.image, stored, node.settings["min.insync.replicas"])
        if len(stored) < len(wishes):
            from moldau.broker.api.quorum import quorum_of

            level = next(wish.level for wish in wishes if wish.feature == KRAFT_VERSION)
            quorum_of(node).set_version(level, validate_only=request.validate_only)
    except Refused as refused:
        return m.UpdateFeaturesResponse(error_code=refused.error, error_message=refused.message)
    if not request.validate_only:
        proposal.add(records)
    results = [done(wish.feature) for wish in wishes] if version < 2 else []
    response = m.UpdateFeaturesResponse(error_message=None, results=results)
    return await proposal.answer(response, [response])


def done(feature: str) -> Any:
    return m.UpdateFeaturesResponse_UpdatableFeatureResult(feature, error_message=Error.NONE.name)
