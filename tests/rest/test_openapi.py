"""The OpenAPI document is true: it has every endpoint, and requests made from it by chance get what it says."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from moldau.rest.schemas import DOCUMENTS
from moldau.rest.v2 import ENDPOINTS as V2
from moldau.rest.v3 import ENDPOINTS as V3
from tests.rest.running import Running, unique

TURNS = 2
TEXTS = ("", "x", "é/..%", "retention.ms", "-1", "9" * 30, "a" * 300, "User:x", "\u0000", "\u0000x")
NUMBERS = (-1, 0, 1, 3, 1.5, 2**70)


def test_the_document_has_every_endpoint_and_its_schemas_are_valid(rest: Running) -> None:
    described = {(method.upper(), path) for path, row in rest.document["paths"].items() for method in row}
    assert described == {(row.method, row.path) for row in (*V2, *V3)}
    for schema in DOCUMENTS.components.values():
        Draft202012Validator.check_schema(schema)
    wanted = set(re.findall(r"#/components/schemas/(\w+)", str(rest.document)))
    assert wanted <= set(rest.document["components"]["schemas"])


def made(rest: Running, schema: dict[str, Any], dice: random.Random, depth: int = 0) -> Any:
    """Something that fits a schema, most of the time."""
    if dice.random() < 0.05 or depth > 5:
        return dice.choice((None, 1, "x", [], {}, True))
    if "$ref" in schema:
        schema = rest.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        return made(rest, dice.choice(schema["anyOf"]), dice, depth)
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kinds = schema.get("type", "string")
    match dice.choice(kinds) if isinstance(kinds, list) else kinds:
        case "object":
            fields = schema.get("properties", {"0": schema.get("additionalProperties", {})})
            required = schema.get("required", ())
            names = [name for name in fields if name in required or dice.random() < 0.5]
            return {name: made(rest, fields[name], dice, depth + 1) for name in names}
        case "array":
            return [made(rest, schema["items"], dice, depth + 1) for _ in range(dice.randrange(3))]
        case "integer" | "number":
            return dice.choice(NUMBERS)
        case "boolean":
            return dice.random() < 0.5
        case "null":
            return None
    return dice.choice(TEXTS)


@pytest.mark.parametrize("seed", range(TURNS))
def test_requests_by_chance_get_answers_that_the_document_knows(rest: Running, seed: int) -> None:
    dice, topic, group = random.Random(seed), rest.topic(), unique("g")
    instance = rest.instance(group).rpartition("/")[2]
    own = {"cluster_id": rest.cluster.rpartition("/")[2], "topic_name": topic, "group": group, "instance": instance}
    own |= {"partition_id": "0", "broker_id": "1", "name": "retention.ms", "consumer_group_id": group}
    for path, row in rest.document["paths"].items():
        for method, operation in row.items():
            if method == "delete" and path.endswith(("{instance}", "{topic_name}")):
                own_or_not = {**own, "instance": "none", "topic_name": "none"}
            else:
                own_or_not = {name: value if dice.random() < 0.9 else "none" for name, value in own.items()}
            where = re.sub(r"{(\w+)}", lambda found: own_or_not.get(found[1], "none"), path)  # noqa: B023
            query = {
                one["name"]: made(rest, one["schema"], dice) for one in operation["parameters"] if one["in"] == "query"
            }
            body, type = None, None
            if given := operation.get("requestBody"):
                type, content = dice.choice(list(given["content"].items()))
                body = made(rest, content["schema"], dice)
            if path.endswith("instances/{instance}/records"):
                query["timeout"] = 1
            answer = rest.raw(method.upper(), where, body, type=type, params=query)
            assert answer.status_code < 500, (method, where, query, body, answer.text)
