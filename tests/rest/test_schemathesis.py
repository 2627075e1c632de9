"""The OpenAPI document is true for schemathesis too: whatever it makes of the document, good and bad, gets an answer
that the document knows."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from moldau.rest.app import OPENAPI
from moldau.rest.v2 import ENDPOINTS as V2
from moldau.rest.v3 import ENDPOINTS as V3
from tests.rest.running import Running, unique

EXAMPLES = 3
PATIENCE_S = 30
ANY = (not_a_server_error, status_code_conformance)
SHAPE = (content_type_conformance, response_schema_conformance)
OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(OPENAPI.document((*V2, *V3))).get_all_operations()]


def known(rest: Running) -> dict[str, Any]:
    """What stands for the names in paths: things that are there."""
    group = unique("g")
    own = {"cluster_id": rest.cluster.rpartition("/")[2], "topic_name": rest.topic(), "group": group}
    own |= {"instance": rest.instance(group).rpartition("/")[2], "consumer_group_id": group, "name": "retention.ms"}
    return own | {"partition_id": 0, "broker_id": rest.ask("GET", "/brokers")["brokers"][0]}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.label)
def test_what_schemathesis_asks_is_answered_as_the_document_says(rest: Running, operation: Any) -> None:
    own = {name: value for name, value in known(rest).items() if f"{{{name}}}" in operation.path}
    # Reports of a stream are one document each, so that the whole is none.
    checks = [*ANY, *(() if operation.path.endswith("/records") else SHAPE)]
    quick = {"timeout": 1} if operation.path.endswith("{instance}/records") else None
    spoiled = bool(operation.body or operation.query)  # else there is nothing that could be wrong
    for mode in (GenerationMode.POSITIVE, *((GenerationMode.NEGATIVE,) if spoiled else ())):

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy(generation_mode=mode, path_parameters=own, query=quick))
        def ask(case: Any) -> None:
            case.validate_response(case.call(base_url=rest.url, timeout=PATIENCE_S), checks=checks)

        ask()
