"""ApiVersions (key 18), v0-4: which keys and versions this broker answers, and its features.

v3 client software name and version (KIP-511), features (KIP-584).  v4 features whose
lowest version is 0: older clients cannot read those, so they are left out below v4.
A version that this broker does not know is answered by the node in version 0 with UNSUPPORTED_VERSION.
Deviates: there is a feature `moldau.version`, from v4 on.
"""

from __future__ import annotations

import re

from moldau.broker.api import APIS, Answer, Api, Connection, api, known_to_controllers
from moldau.broker.features import KIND, SUPPORTED
from moldau.broker.node import Node
from moldau.wire import messages as m
from moldau.wire.errors import Error

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def known_keys(apis: dict[int, Api]) -> m.ApiVersionsResponse:
    """Return the table of keys."""
    rows = [m.ApiVersionsResponse_ApiVersion(a.key, a.advertised, a.high) for _, a in sorted(apis.items())]
    return m.ApiVersionsResponse(api_keys=rows)


def unsupported() -> m.ApiVersionsResponse:
    """Return the answer to a version that is too new: which one to ask with instead (KIP-511)."""
    mine = APIS[18]
    row = m.ApiVersionsResponse_ApiVersion(mine.key, mine.low, mine.high)
    return m.ApiVersionsResponse(error_code=Error.UNSUPPORTED_VERSION, api_keys=[row])


@api(18, versions=(0, 4))
def api_versions(node: Node, connection: Connection, request: m.ApiVersionsRequest, version: int) -> Answer:
    if version >= 3:
        software = request.client_software_name, request.client_software_version
        if not all(map(SOFTWARE_NAME.fullmatch, software)):
            return m.ApiVersionsResponse(error_code=Error.INVALID_REQUEST)
        connection.software = software
    response = known_keys(known_to_controllers() if connection.is_controller else node.apis)
    response.supported_features = [
        m.ApiVersionsResponse_SupportedFeatureKey(feature.name, feature.low, feature.high)
        for feature in (*SUPPORTED, KIND)
        if version >= 4 or feature.low > 0
    ]
    response.finalized_features_epoch = node.metadata.end_offset - 1
    levels = node.cluster.features | ({} if node.quorum is None else node.quorum.features)
    response.finalized_features = [
        m.ApiVersionsResponse_FinalizedFeatureKey(name, level, level) for name, level in levels.items()
    ]
    return response
