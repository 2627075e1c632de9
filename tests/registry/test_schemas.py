"""Schemas over HTTP: register, fetch, look up, list, delete, and what is refused."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.registry.running import Running, body, record, unique

A = record("x:int")
B = record("x:int", "y:string", y="")
WRONG = record("x:string")


def text(schema: object) -> str:
    return json.dumps(schema, separators=(",", ":"))


def test_a_schema_is_registered_once_and_found_by_id_version_and_content(registry: Running, subject: str) -> None:
    answer = registry.post(f"/subjects/{subject}/versions", body(A))
    assert answer["version"] == 1 and UUID(answer["guid"])
    assert registry.register(subject, A) == answer["id"]
    shown = registry.get(f"/subjects/{subject}/versions/1")
    assert (shown["subject"], shown["version"], shown["id"]) == (subject, 1, answer["id"])
    assert (shown["schema"], shown["schemaType"], shown["deleted"]) == (text(A), "AVRO", False)
    assert registry.get(f"/subjects/{subject}/versions/latest") == shown
    assert registry.get(f"/subjects/{subject}/versions/-1") == shown
    assert registry.post(f"/subjects/{subject}", body(A)) == shown
    assert registry.get(f"/subjects/{subject}/versions") == [1]
    assert registry.get(f"/subjects/{subject}/versions/1/schema") == A


def test_the_same_schema_has_the_same_id_in_all_subjects(registry: Running) -> None:
    schema = record("z:long", name=unique("Same").replace("-", "_"))
    first, second = unique(), unique()
    id = registry.register(first, schema)
    assert registry.register(second, schema) == id
    assert registry.register(second, {**schema, "fields": []}) != id
    assert registry.get(f"/schemas/ids/{id}/subjects") == sorted([first, second])
    assert registry.get(f"/schemas/ids/{id}?includeSubjects=true")["subjects"] == sorted([first, second])
    rows = [{"subject": name, "version": 1} for name in sorted([first, second])]
    assert registry.get(f"/schemas/ids/{id}/versions") == rows
    assert registry.get(f"/schemas/ids/{id}/versions?limit=1&offset=1") == rows[1:]


def test_an_id_and_a_guid_show_the_schema(registry: Running, subject: str) -> None:
    schema = record("q:int", name=unique("Guid").replace("-", "_"))
    registered = registry.post(f"/subjects/{subject}/versions", body(schema))
    id, guid = registered["id"], registered["guid"]
    shown = registry.get(f"/schemas/ids/{id}")
    assert shown["schema"] == text(schema) and "subject" not in shown and shown["guid"] == guid
    assert registry.get(f"/schemas/ids/{id}?subject={subject}")["subject"] == subject
    assert registry.get(f"/schemas/ids/{id}?fetchMaxId=true")["maxId"] >= id
    assert registry.get(f"/schemas/ids/{id}/schema") == schema
    assert registry.get(f"/schemas/guids/{guid}") == shown
    assert registry.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": id}]
    assert registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/subjects/nobody/versions", 40401),
        ("/subjects/nobody/versions/1", 40401),
        ("/subjects/nobody/versions/latest", 40401),
        ("/subjects/nobody/versions/1/schema", 40401),
        ("/subjects/nobody/versions/1/referencedby", 40401),
        ("/subjects/nobody/metadata", 40401),
        ("/schemas/ids/999999", 40403),
        ("/schemas/ids/999999/schema", 40403),
        ("/schemas/ids/999999/subjects", 40403),
        ("/schemas/ids/999999/versions", 40403),
        ("/schemas/guids/00000000-0000-0000-0000-000000000000", 40403),
        ("/schemas/guids/none", 40403),
        ("/subjects/nobody/versions/0", 42202),
        ("/subjects/nobody/versions/x", 42202),
        ("/subjects/nobody/versions/2147483648", 42202),
        ("/config/nobody", 40408),
        ("/mode/nobody", 40409),
    ],
)
def test_what_is_not_there_has_its_code(registry: Running, path: str, code: int) -> None:
    assert registry.get(path) == (code // 100, code)


def test_messages_are_those_that_programs_look_for(registry: Running, subject: str) -> None:
    registry.register(subject, A)
    message = lambda path: httpx.get(registry.url + path).json()["message"]  # noqa: E731
    assert message("/subjects/nobody/versions") == "Subject 'nobody' not found."
    assert message(f"/subjects/{subject}/versions/7") == "Version 7 not found."
    assert message("/schemas/ids/999999") == "Schema 999999 not found"
    assert message(f"/config/{subject}") == f"Subject '{subject}' does not have subject-level compatibility configured"
    assert registry.http.post(f"/subjects/{subject}", json=body(WRONG)).json()["message"] == "Schema not found"


def test_a_schema_that_is_not_there_is_not_looked_up(registry: Running, subject: str) -> None:
    assert registry.post(f"/subjects/{subject}", body(A)) == (404, 40401)
    assert registry.post(f"/subjects/{subject}", {}) == (404, 40401)
    registry.register(subject, A)
    assert registry.post(f"/subjects/{subject}", body(WRONG)) == (404, 40403)
    assert registry.post(f"/subjects/{subject}", {}) == (404, 40403)
    assert registry.post(f"/subjects/{subject}", body("{")) == (422, 42201)
    assert registry.get(f"/subjects/{subject}/versions/2") == (404, 40402)
    assert registry.get(f"/subjects/{subject}/metadata?key=a&value=b") == (404, 40403)


def test_a_version_is_deleted_softly_and_then_for_good(registry: Running, subject: str) -> None:
    registry.register(subject, A)
    registry.register(subject, B)
    path = f"/subjects/{subject}/versions"
    assert registry.delete(f"{path}/1?permanent=true") == (404, 40407)
    assert registry.delete(f"{path}/1") == 1
    assert registry.delete(f"{path}/1") == (404, 40406)
    assert registry.get(path) == [2]
    assert registry.get(f"{path}?deleted=true") == [1, 2]
    assert registry.get(f"{path}?deletedOnly=true") == [1]
    assert registry.get(f"{path}?deletedAsNegative=true") == [-1, 2]
    assert registry.get(f"{path}/1") == (404, 40402)
    assert registry.get(f"{path}/1?deleted=true")["deleted"] is True
    assert registry.post(f"/subjects/{subject}", body(A)) == (404, 40403)
    assert registry.post(f"/subjects/{subject}?deleted=true", body(A))["version"] == 1
    assert registry.delete(f"{path}/1?permanent=true") == 1
    assert registry.get(f"{path}?deleted=true") == [2]
    assert registry.delete(f"{path}/1") == (404, 40402)
    assert registry.delete(f"{path}/x") == (422, 42202)
    assert registry.delete(f"{path}/latest") == 2
    assert registry.get(path) == (404, 40401)


def test_a_subject_is_deleted_softly_and_then_for_good(registry: Running, subject: str) -> None:
    path = f"/subjects/{subject}"
    assert registry.delete(path) == (404, 40401)
    id = registry.register(subject, A)
    registry.register(subject, B)
    assert registry.delete(f"{path}?permanent=true") == (404, 40405)
    assert registry.delete(path) == [1, 2]
    assert registry.delete(path) == (404, 40404)
    assert subject not in registry.get("/subjects")
    assert subject in registry.get("/subjects?deleted=true")
    assert subject in registry.get("/subjects?deletedOnly=true")
    assert registry.get(f"/schemas/ids/{id}")["schema"] == text(A)  # data that has the id can still be read
    assert registry.delete(f"{path}?permanent=true") == [1, 2]
    assert subject not in registry.get("/subjects?deleted=true")
    assert registry.delete(f"{path}?permanent=true") == (404, 40401)


def test_a_deleted_schema_that_comes_back_is_a_new_version(registry: Running, subject: str) -> None:
    id = registry.register(subject, A)
    registry.delete(f"/subjects/{subject}")
    answer = registry.post(f"/subjects/{subject}/versions", body(A))
    assert (answer["id"], answer["version"]) == (id, 2)
    assert registry.get(f"/subjects/{subject}/versions?deleted=true") == [2]


def test_settings_of_a_subject_go_with_it(registry: Running, subject: str) -> None:
    registry.register(subject, A)
    registry.put(f"/config/{subject}", {"compatibility": "FULL"})
    registry.put(f"/mode/{subject}", {"mode": "READWRITE"})
    registry.delete(f"/subjects/{subject}")
    assert registry.get(f"/config/{subject}") == {"compatibilityLevel": "FULL"}
    registry.delete(f"/subjects/{subject}?permanent=true")
    assert registry.get(f"/config/{subject}") == (404, 40408)
    assert registry.get(f"/mode/{subject}") == (404, 40409)


def test_an_incompatible_schema_is_refused_and_told_why(registry: Running, subject: str) -> None:
    registry.register(subject, A)
    assert registry.post(f"/subjects/{subject}/versions", body(WRONG)) == (409, 40901)
    for path in (f"/compatibility/subjects/{subject}/versions", f"/compatibility/subjects/{subject}/versions/latest"):
        assert registry.post(path, body(B)) == {"is_compatible": True}
        assert registry.post(path, body(WRONG)) == {"is_compatible": False}
        verbose = registry.post(f"{path}?verbose=true", body(WRONG))
        assert not verbose["is_compatible"] and "/fields/0/type" in verbose["messages"][0]
        assert registry.post(path, body("{")) == (422, 42201)
        assert registry.post(f"{path}?verbose=true", body("{"))["is_compatible"] is False
    path = f"/compatibility/subjects/{subject}/versions"
    assert registry.post(f"{path}/9", body(A)) == (404, 40402)
    assert registry.post(f"{path}/zero", body(A)) == (422, 42202)
    assert registry.post(f"/compatibility/subjects/{unique()}/versions/latest", body(A)) == {"is_compatible": True}


def test_a_schema_refers_to_others_and_they_cannot_be_deleted(registry: Running, subject: str) -> None:
    inner, name = unique("inner"), unique("Inner").replace("-", "_")
    inner_id = registry.register(inner, record("x:int", name=name))
    references = [{"name": name, "subject": inner, "version": 1}]
    outer = record(f"part:{name}", name="Outer")
    id = registry.register(subject, outer, references=references)
    shown = registry.get(f"/subjects/{subject}/versions/1")
    assert shown["references"] == references and id != inner_id
    assert registry.get(f"/subjects/{inner}/versions/1/referencedby") == [id]
    assert registry.delete(f"/subjects/{inner}/versions/1") == (422, 42206)
    assert registry.delete(f"/subjects/{inner}") == (422, 42206)
    resolved = json.loads(registry.get(f"/subjects/{subject}/versions/1?format=resolved")["schema"])
    assert resolved["fields"][0]["type"]["name"] == name
    assert registry.register(subject, resolved) == id  # the same with its references put in
    assert registry.post(f"/subjects/{unique()}/versions", body(outer)) == (422, 42201)
    nowhere = [{"name": name, "subject": "nowhere", "version": 1}]
    assert registry.post(f"/subjects/{unique()}/versions", body(outer, references=nowhere)) == (422, 42201)
    registry.delete(f"/subjects/{subject}")
    assert registry.get(f"/subjects/{inner}/versions/1/referencedby") == []
    assert registry.get(f"/subjects/{inner}/versions/1/referencedby?deleted=true") == [id]
    assert registry.delete(f"/subjects/{inner}") == [1]
    assert registry.delete(f"/subjects/{inner}?permanent=true") == (422, 42206)


def test_a_reference_means_a_version_that_is_there(registry: Running, subject: str) -> None:
    outer, part = f"{subject}-outer", {"name": "Order", "subject": subject}
    registry.register(subject, A)
    registry.register(subject, B)
    whole = record("p:Order", name="Outer")
    registry.register(outer, whole, references=[{**part, "version": -1}])
    assert registry.get(f"/subjects/{outer}/versions/1")["references"] == [{**part, "version": 2}]
    assert registry.delete(f"/subjects/{subject}/versions/1") == 1
    given = body({**whole, "doc": "new"}, references=[{**part, "version": 1}])
    assert registry.post(f"/subjects/{outer}/versions", given) == (422, 42201)


def test_subjects_are_listed_by_prefix_and_in_pages(registry: Running) -> None:
    prefix = unique("page")
    every = [f"{prefix}-{letter}" for letter in "abc"]
    for name in every:
        registry.register(name, A)
    assert registry.get(f"/subjects?subjectPrefix={prefix}") == every
    assert registry.get(f"/subjects?subjectPrefix={prefix}&offset=1&limit=1") == every[1:2]
    assert registry.get(f"/subjects?subjectPrefix={prefix}&limit=0") == []
    assert registry.get("/subjects?offset=x") == (404, 404)
    assert registry.get("/subjects?offset=-1") == (422, 422)
    registry.register(every[0], B)
    found = registry.get(f"/schemas?subjectPrefix={prefix}")
    assert [(row["subject"], row["version"]) for row in found] == [
        (every[0], 1),
        (every[0], 2),
        *((s, 1) for s in every[1:]),
    ]
    assert len(registry.get(f"/schemas?subjectPrefix={prefix}&latestOnly=true")) == 3
    registry.delete(f"/subjects/{every[2]}")
    assert len(registry.get(f"/schemas?subjectPrefix={prefix}")) == 3
    assert len(registry.get(f"/schemas?subjectPrefix={prefix}&deleted=true")) == 4


def test_texts_of_one_meaning_are_one_schema_if_normalized(registry: Running, subject: str) -> None:
    plain = {"type": "record", "name": "N", "fields": [{"name": "a", "type": {"type": "int"}}]}
    odd = {"fields": [{"type": "int", "name": "a"}], "name": "N", "type": "record"}
    id = registry.post(f"/subjects/{subject}/versions?normalize=true", body(plain))["id"]
    assert registry.post(f"/subjects/{subject}/versions?normalize=true", body(odd))["id"] == id
    assert registry.post(f"/subjects/{subject}?normalize=true", body(odd))["id"] == id


def test_a_schema_may_name_the_version_that_it_is_to_be(registry: Running, subject: str) -> None:
    registry.register(subject, A)
    assert registry.post(f"/subjects/{subject}/versions", body(B, version=3)) == (422, 42201)
    assert registry.post(f"/subjects/{subject}/versions", body(B, version=2))["version"] == 2
    assert registry.post(f"/subjects/{subject}/versions", body(B, id=5)) == (422, 42205)


def test_metadata_may_say_which_version_they_belong_to(registry: Running, subject: str) -> None:
    def registered(**more: Any) -> int:
        return registry.post(f"/subjects/{subject}/versions", body(A, **more))["version"]

    def says(number: int) -> dict[str, Any]:
        return {"metadata": {"properties": {"confluent:version": str(number)}}}

    assert registered() == registered(version=-1) == 1  # the latest is this
    assert registered(version=2) == registered(version=-1) == 2
    found = [registry.post(f"/subjects/{subject}", body(A, **more)) for more in ({}, says(1), says(2))]
    assert [one["version"] for one in found] == [1, 1, 2]
    assert registry.delete(f"/subjects/{subject}/versions/1") == 1
    assert registered() == 2 and registered(version=3) == 3
    assert registry.post(f"/subjects/{subject}/versions", body(A, version=3)) == (422, 42201)
    assert (registered(**says(0)), registered(**says(2)), registered(metadata={"properties": {}})) == (4, 2, 4)
    assert registered(metadata={"properties": {"owner": "anna"}}) == 5


def test_metadata_and_rules_are_kept_and_found(registry: Running, subject: str) -> None:
    rule = {"name": "check", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true", "disabled": False}
    rules = {"domainRules": [rule]}
    metadata = {"properties": {"owner": "anna"}, "tags": {"**.x": ["PII"]}}
    id = registry.register(subject, A, metadata=metadata, ruleSet=rules)
    shown = registry.get(f"/subjects/{subject}/versions/1")
    assert (shown["metadata"], shown["ruleSet"]) == (metadata, rules)
    assert registry.register(subject, A) == id  # they carry over from the version before
    other = {"properties": {"owner": "bert"}}
    assert registry.register(subject, A, metadata=other) != id
    assert registry.get(f"/subjects/{subject}/metadata?key=owner&value=anna")["version"] == 1
    assert registry.get(f"/subjects/{subject}/metadata?key=owner&value=bert")["version"] == 2
    assert registry.get(f"/subjects/{subject}/metadata?key=owner&value=carl") == (404, 40403)
    found = registry.get(f"/schemas?subjectPrefix={subject}&ruleType=CEL")
    assert [row["version"] for row in found] == [1, 2]
    assert registry.get(f"/schemas?subjectPrefix={subject}&ruleType=JSONATA") == []


def test_metadata_and_rules_have_one_form(registry: Running, subject: str) -> None:
    sent = {
        "metadata": {"tags": {"b": ["Y", "X", "X"], "a": ["Z"]}, "properties": {"q": "1", "p": "2"}, "sensitive": []},
        "ruleSet": {"domainRules": [{"name": "r", "type": "CEL", "tags": ["B", "A"], "doc": None, "own": 1}]},
    }
    registry.register(subject, A, **sent)
    shown = registry.get(f"/subjects/{subject}/versions/1")
    kept = '{"tags": {"a": ["Z"], "b": ["X", "Y"]}, "properties": {"p": "2", "q": "1"}}'
    assert json.dumps(shown["metadata"]) == kept
    rule = {"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "tags": ["A", "B"], "disabled": False}
    assert shown["ruleSet"] == {"domainRules": [rule]}


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "CEL", "mode": "WRITE"},
        {"name": "a", "type": "CEL", "kind": "WISH"},
        {"name": "a", "type": "CEL", "tags": "PII"},
        {"name": "a", "type": 1},
        {"name": "9", "type": "CEL", "mode": "WRITE"},
        {"name": "a b", "type": "CEL", "mode": "WRITE"},
        {"name": "a", "mode": "WRITE"},
        {"name": "a", "type": "CEL", "mode": "UPGRADE"},
        {"name": "a", "type": "CEL", "mode": "WRITE", "onFailure": "NONE,DLQ"},
    ],
)
def test_a_rule_that_cannot_be_is_refused(registry: Running, subject: str, rule: dict[str, str]) -> None:
    given = body(A, ruleSet={"domainRules": [rule]})
    assert registry.post(f"/subjects/{subject}/versions", given) == (422, 42210)
    assert registry.put(f"/config/{subject}", {"defaultRuleSet": {"domainRules": [rule]}}) == (422, 42210)


def test_tags_are_set_and_found(registry: Running, subject: str) -> None:
    registry.register(subject, {**A, "namespace": "shop"}, metadata={"properties": {"owner": "anna"}})
    path = f"/subjects/{subject}/versions"
    field = {"entityPath": "shop.Order.x", "entityType": "sr_field"}
    whole = {"entityPath": "shop.Order", "entityType": "sr_record"}
    add = [{"schemaEntity": field, "tags": ["PII", "KEY"]}, {"schemaEntity": whole, "tags": ["PUBLIC"]}]
    answer = registry.post(f"{path}/latest/tags", {"tagsToAdd": add})
    assert answer["version"] == 2 and answer["metadata"]["properties"] == {"owner": "anna", "confluent:version": "2"}
    found = registry.get(f"{path}/2?findTags=PII")
    assert found["schemaTags"] == [{"schemaEntity": field, "tags": ["PII", "KEY"]}]
    assert len(registry.get(f"/schemas/ids/{found['id']}?findTags=*")["schemaTags"]) == 2
    remove = [{"schemaEntity": field, "tags": ["PII"]}, {"schemaEntity": whole, "tags": ["PUBLIC"]}]
    rule = {"name": "r", "type": "CEL", "mode": "READ"}
    change = {"tagsToRemove": remove, "newVersion": 3, "rulesToMerge": {"domainRules": [rule]}}
    found = registry.post(f"{path}/2/tags", change)["ruleSet"]["domainRules"]
    assert found == [{**rule, "kind": "TRANSFORM", "disabled": False}]
    assert registry.post(f"{path}/3/tags", {**change, "ruleSet": {}}) == (422, 42210)
    assert registry.get(f"{path}/3?findTags=*")["schemaTags"] == [{"schemaEntity": field, "tags": ["KEY"]}]
    nowhere = [{"schemaEntity": {**field, "entityPath": "shop.Order.q"}, "tags": ["PII"]}]
    assert registry.post(f"{path}/3/tags", {"tagsToAdd": nowhere}) == (422, 42201)
    assert registry.post(f"{path}/3/tags", {"tagsToAdd": [{"tags": []}]}) == (422, 422)
    assert registry.post(f"{path}/3/tags", {"newVersion": 9, "tagsToAdd": add}) == (422, 42201)
    assert registry.post(f"{path}/9/tags", {"tagsToAdd": add}) == (404, 40402)
    assert registry.post("/subjects/nobody/versions/1/tags", {"tagsToAdd": add}) == (404, 40401)


def test_a_schema_is_registered_with_tags_beside_it(registry: Running, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    registry.register(subject, A)
    whole = {"schemaEntity": {"entityPath": "Order", "entityType": "sr_record"}, "tags": ["PUBLIC", "OLD"]}
    registry.register(subject, A, schemaTagsToAdd=[whole])
    found = registry.get(f"{path}/2?findTags=*")
    assert found["schemaTags"] == [whole] and found["metadata"] == {"properties": {"confluent:version": "2"}}
    registry.register(subject, found["schema"], schemaTagsToRemove=[{**whole, "tags": ["OLD"]}])
    kept = [{**whole, "tags": ["PUBLIC"]}]
    assert registry.get(f"{path}/3?findTags=*")["schemaTags"] == kept
    registry.register(subject, B, propagateSchemaTags=True)
    assert registry.get(f"{path}/4?findTags=PUBLIC")["schemaTags"] == kept
    nowhere = [{**whole, "schemaEntity": {"entityPath": "Order.q", "entityType": "sr_field"}}]
    assert registry.post(path, body(A, schemaTagsToAdd=nowhere)) == (422, 42201)


@pytest.mark.parametrize(
    ("type", "text", "entity"),
    [
        ("JSON", '{"type":"object","properties":{"x":{"type":"string"}}}', "object.x"),
        ("PROTOBUF", 'syntax = "proto3"; message M { string x = 1; }', "M.x"),
    ],
)
def test_schemas_of_every_type_have_tags(registry: Running, subject: str, type: str, text: str, entity: str) -> None:
    registry.register(subject, text, schemaType=type)
    row = {"schemaEntity": {"entityPath": entity, "entityType": "sr_field"}, "tags": ["PII"]}
    again = {"schemaEntity": {"entityPath": f".{entity}", "entityType": "sr_field"}, "tags": ["KEY"]}
    registry.post(f"/subjects/{subject}/versions/1/tags", {"tagsToAdd": [row, again]})
    found = registry.get(f"/subjects/{subject}/versions/2?findTags=PII")["schemaTags"]
    assert found == [{**row, "tags": ["PII", "KEY"]}]
