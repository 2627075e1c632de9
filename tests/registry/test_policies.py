"""Settings, modes, contexts and aliases over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.testing import Broker
from tests.registry.running import Running, body, record, running, unique

A = record("x:int")
B = record("x:int", "y:string", y="")
WRONG = record("x:string")
RULE = {"kind": "TRANSFORM", "type": "CEL", "mode": "READ", "disabled": False}


def test_a_level_is_set_for_a_subject_and_taken_away(registry: Running, subject: str) -> None:
    path = f"/config/{subject}"
    assert registry.get(f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert registry.put(path, {"compatibility": "none"}) == {"compatibility": "NONE"}
    assert registry.get(path) == {"compatibilityLevel": "NONE"}
    registry.register(subject, A)
    registry.register(subject, WRONG)
    assert registry.delete(path) == {"compatibilityLevel": "NONE"}
    assert registry.delete(path) == (404, 40401)
    assert registry.put(path, {"compatibility": "SIDEWAYS"}) == (422, 42203)
    assert registry.put(path, {"compatibility": 5}) == (422, 42203)
    assert registry.put("/config/%01", {"compatibility": "NONE"}) == (422, 42208)


def test_what_a_config_does_not_name_stays_and_null_takes_it_away(registry: Running, subject: str) -> None:
    path = f"/config/{subject}"
    whole = {
        "normalize": True,
        "compatibilityGroup": "major",
        "validateFields": True,
        "compatibilityPolicy": "LENIENT",
        "defaultMetadata": {"properties": {"a": "1"}},
        "overrideMetadata": {"properties": {"b": "2"}},
        "defaultRuleSet": {"domainRules": [{"name": "d", **RULE}]},
        "overrideRuleSet": {"domainRules": [{"name": "o", **RULE}]},
    }
    registry.put(path, whole)
    assert registry.put(path, {"compatibility": "FULL"}) == {**whole, "compatibility": "FULL"}
    assert registry.get(path) == {**whole, "compatibilityLevel": "FULL"}
    registry.put(path, dict.fromkeys(whole) | {"compatibilityPolicy": None})
    assert registry.get(path) == {"compatibilityLevel": "FULL"}
    assert registry.put(path, {"normalize": "yes"}) == (422, 422)
    assert registry.put(path, {"defaultMetadata": {"properties": {"a": 1}}}) == (422, 422)


def test_defaults_and_overrides_join_what_is_registered(registry: Running, subject: str) -> None:
    registry.put(
        f"/config/{subject}",
        {
            "defaultMetadata": {"properties": {"a": "default", "b": "default"}},
            "overrideMetadata": {"properties": {"c": "override"}},
            "defaultRuleSet": {"domainRules": [{"name": "d", "type": "CEL", "mode": "READ"}]},
        },
    )
    registry.register(subject, A, metadata={"properties": {"b": "own", "c": "own"}})
    shown = registry.get(f"/subjects/{subject}/versions/1")
    assert shown["metadata"] == {"properties": {"a": "default", "b": "own", "c": "override"}}
    assert shown["ruleSet"]["domainRules"][0]["name"] == "d"
    assert registry.post(f"/subjects/{subject}", body(A))["version"] == 1


def test_only_schemas_of_one_compatibility_group_must_fit(registry: Running, subject: str) -> None:
    registry.put(f"/config/{subject}", {"compatibilityGroup": "major"})
    registry.register(subject, A, metadata={"properties": {"major": "1"}})
    assert registry.post(f"/subjects/{subject}/versions", body(WRONG)) == (409, 40901)
    registry.register(subject, WRONG, metadata={"properties": {"major": "2"}})


def test_a_config_may_ask_for_normalization_and_lax_checks(registry: Running, subject: str) -> None:
    registry.put(f"/config/{subject}", {"normalize": True, "validateNewSchemas": False})
    registry.register(subject, record("x:int", x="not a number"))
    odd = {"fields": [{"type": {"type": "int"}, "name": "x"}], "name": "Order", "type": "record"}
    assert registry.register(subject, odd) == registry.register(subject, A)
    assert registry.post(f"/subjects/{unique()}/versions", body(record("x:int", x="not a number"))) == (422, 42201)


def test_the_mode_says_what_may_be_done(registry: Running, subject: str) -> None:
    path = f"/mode/{subject}"
    registry.register(subject, A)
    assert registry.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert registry.put(path, {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert registry.get(path) == {"mode": "READONLY"}
    assert registry.post(f"/subjects/{subject}/versions", body(B)) == (422, 42205)
    registry.register(subject, A)  # it changes nothing
    assert registry.delete(f"/subjects/{subject}") == (422, 42205)
    assert registry.delete(f"/subjects/{subject}/versions/1") == (422, 42205)
    assert registry.put(f"/config/{subject}", {"compatibility": "NONE"}) == (422, 42205)
    assert registry.put(path, {"mode": "READONLY_OVERRIDE"}) == {"mode": "READONLY_OVERRIDE"}
    assert registry.delete(path) == {"mode": "READONLY_OVERRIDE"}
    assert registry.delete(path) == (404, 40401)
    assert registry.put(path, {"mode": "UPSIDEDOWN"}) == (422, 42204)
    assert registry.put(path, {"mode": "FORWARD"}) == (422, 42204)
    assert registry.put("/mode/__GLOBAL", {"mode": "IMPORT"}) == (422, 42208)
    registry.register(subject, B)


def test_what_is_imported_is_never_normalized(registry: Running, subject: str) -> None:
    odd = '{"type":"record","name":"N","fields":[{"name":"a","type":"int","z":"1","b":"2"}]}'
    registry.put(f"/config/{subject}", {"normalize": True})
    registry.put(f"/mode/{subject}", {"mode": "IMPORT"})
    registry.post(f"/subjects/{subject}/versions?normalize=true", body(odd, id=990_001, version=1))
    assert registry.get(f"/subjects/{subject}/versions/1")["schema"] == odd


def test_schemas_are_imported_with_their_ids(registry: Running, subject: str) -> None:
    assert registry.put(f"/mode/{subject}", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.post(f"/subjects/{subject}/versions", body(A)) == (422, 42205)  # import wants an id
    name = unique("Import").replace("-", "_")
    first, second = record("x:int", name=name), record("x:string", name=name)
    base = 500_000 + int(name.rpartition("_")[2]) * 10
    answer = registry.post(f"/subjects/{subject}/versions", body(first, id=base, version=7))
    assert (answer["id"], answer["version"]) == (base, 7)
    assert registry.post(f"/subjects/{subject}/versions", body(second, id=base, version=8)) == (422, 42205)
    registry.post(f"/subjects/{subject}/versions", body(second, id=base + 1, version=9))
    assert registry.get(f"/subjects/{subject}/versions") == [7, 9]
    registry.delete(f"/mode/{subject}")
    assert registry.put(f"/mode/{subject}", {"mode": "IMPORT"}) == (422, 42205)
    assert registry.put(f"/mode/{subject}?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    registry.delete(f"/mode/{subject}")
    registry.delete(f"/subjects/{subject}")
    assert registry.put(f"/mode/{subject}", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.get(f"/subjects/{subject}/versions?deleted=true") == (404, 40401)


def test_a_context_has_ids_settings_and_modes_of_its_own(registry: Running) -> None:
    context = f".{unique('ctx')}"
    name = f":{context}:orders"
    assert registry.register(name, A) == 1
    assert context in registry.get("/contexts")
    assert registry.get(f"/contexts?contextPrefix={context}") == [context]
    assert name in registry.get("/subjects")
    assert registry.get(f"/subjects?subjectPrefix=:{context}:") == [name]
    assert registry.get(f"/contexts/{context}/subjects") == [name]
    assert registry.get(f"/contexts/{context}/subjects/orders/versions") == [1]
    assert registry.get(f"/contexts/{context}/schemas/ids/1")["schema"].startswith('{"type":"record"')
    assert registry.get(f"/schemas/ids/1?subject=:{context}:orders")["subject"] == name
    guid = registry.get(f"/subjects/{name}/versions/1")["guid"]
    assert {"context": context, "id": 1} in registry.get(f"/schemas/guids/{guid}/ids")
    registry.put(f"/config/:{context}:", {"compatibility": "NONE"})
    assert registry.get(f"/contexts/{context}/config") == {"compatibilityLevel": "NONE"}
    assert registry.get(f"/config/{name}?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    registry.register(name, WRONG)
    registry.put(f"/contexts/{context}/mode", {"mode": "READONLY"})
    assert registry.post(f"/subjects/{name}/versions", body(B)) == (422, 42205)
    registry.put(f"/mode/{name}", {"mode": "READWRITE"})
    assert registry.delete(f"/mode/:{context}:?recursive=true") == {"mode": "READONLY"}
    assert registry.get(f"/mode/{name}") == (404, 40409)
    assert registry.delete(f"/mode/:{context}:?recursive=true") == {}
    assert registry.delete(f"/contexts/{context}") == (422, 42211)
    registry.delete(f"/subjects/{name}")
    registry.delete(f"/subjects/{name}?permanent=true")
    assert registry.delete(f"/contexts/{context}") is None
    assert context not in registry.get("/contexts")
    assert registry.get("/contexts/a:b/subjects") == (400, 400)


def test_a_subject_without_a_context_is_found_in_any(registry: Running) -> None:
    context, bare = f".{unique('ctx')}", unique("bare")
    registry.register(f":{context}:{bare}", A)
    assert registry.get(f"/subjects/{bare}/versions/1")["subject"] == f":{context}:{bare}"
    assert registry.post(f"/subjects/{bare}", body(A))["subject"] == f":{context}:{bare}"


def test_references_within_a_context_are_shown_with_it_if_asked(registry: Running) -> None:
    context = f".{unique('ctx')}"
    registry.register(f":{context}:inner", record("x:int", name="Inner"))
    reference = {"name": "Inner", "subject": "inner", "version": 1}
    registry.register(f":{context}:outer", record("part:Inner", name="Outer"), references=[reference])
    path = f"/subjects/:{context}:outer/versions/1"
    assert registry.get(path)["references"] == [reference]
    qualified = registry.get(f"{path}?referenceFormat=qualified")["references"]
    assert qualified == [{**reference, "subject": f":{context}:inner"}]


def test_an_alias_stands_for_its_subject(registry: Running, subject: str) -> None:
    alias = unique("alias")
    id = registry.register(subject, A)
    registry.put(f"/config/{alias}", {"alias": subject})
    assert registry.get(f"/subjects/{alias}/versions/1")["subject"] == subject
    assert registry.register(alias, A) == id
    assert registry.get(f"/schemas/ids/{id}?subject={alias}")["subject"] == subject
    found = registry.get(f"/schemas?subjectPrefix={subject}&aliases=true")
    assert found[0]["aliases"] == [alias]
    assert registry.get(f"/schemas?subjectPrefix={alias}&aliases=true") == found


@pytest.fixture(scope="module")
def alone(registry_broker: Broker) -> Iterator[Running]:
    """A registry on a topic of its own, for what changes all subjects."""
    own = ("kafkastore.topic=_alone", "schema.registry.group.id=alone", "schema.compatibility.level=full")
    with running(registry_broker.bootstrap_servers, *own) as started:
        yield started


def test_what_holds_for_all_subjects(alone: Running) -> None:
    assert alone.get("/config") == {"compatibilityLevel": "FULL"}
    assert alone.put("/config", {"compatibility": "BACKWARD"}) == {"compatibility": "BACKWARD"}
    assert alone.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert alone.delete("/config") == {"compatibilityLevel": "BACKWARD"}
    assert alone.get("/config") == {"compatibilityLevel": "FULL"}
    assert alone.get("/mode") == {"mode": "READWRITE"}
    assert alone.put("/mode", {"mode": "readonly"}) == {"mode": "readonly"}
    assert alone.get("/mode") == {"mode": "READONLY"}
    assert alone.post("/subjects/x/versions", body(A)) == (422, 42205)
    assert alone.delete("/mode") == {"mode": "READONLY"}
    assert alone.put("/mode/:.__GLOBAL:", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert alone.get("/mode/y?defaultToGlobal=true") == {"mode": "READONLY"}
    alone.delete("/mode/:.__GLOBAL:")
    alone.put("/config/:.__GLOBAL:", {"compatibility": "NONE"})
    assert alone.get("/config/z?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    alone.delete("/config/:.__GLOBAL:")


def test_a_whole_registry_imports(alone: Running) -> None:
    alone.register("old", A)
    assert alone.put("/mode", {"mode": "IMPORT"}) == (422, 42205)
    alone.delete("/subjects/old")
    assert alone.put("/mode", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert alone.get("/subjects?deleted=true") == []
    assert alone.post("/subjects/new/versions", body(A, id=42, version=3))["id"] == 42
    alone.put("/mode", {"mode": "READWRITE"})
    assert alone.register("new", B) == 43
