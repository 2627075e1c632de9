"""Keys for the encryption of fields: every endpoint and every error code of `/dek-registry/v1`, over HTTP."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moldau.registry.app import KEY_ENDPOINTS
from moldau.registry.keys.commands import Keys, create_dek, create_kek
from moldau.registry.keys.errors import MESSAGES
from moldau.registry.keys.records import CODEC, Dek, Kek, Record
from moldau.registry.keys.store import KeyStore
from moldau.testing import Broker
from tests.registry.running import Running, running, unique
from tests.registry.test_topic import records

KEYS = "/dek-registry/v1/keks"
MATERIAL = base64.b64encode(b"encrypted elsewhere").decode()
SECRET = "a secret of the tests"


@pytest.fixture
def kek(registry: Running) -> str:
    name = "k" + unique().replace("-", "_")
    made = registry.post(KEYS, kek_body(name))
    assert {**made, "ts": 0} == {**kek_body(name), "kmsProps": {}, "shared": False, "ts": 0}
    assert made["ts"] > 1_700_000_000_000
    return name


def kek_body(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "kmsType": "local-kms", "kmsKeyId": "mine", **more}


def dek_body(**more: Any) -> dict[str, Any]:
    return {"encryptedKeyMaterial": MATERIAL, **more}


def add(registry: Running, kek: str, subject: str = "s-value", **more: Any) -> Any:
    return registry.post(f"{KEYS}/{kek}/deks/{subject}", dek_body(**more))


def test_every_endpoint_is_asked_here() -> None:
    asked = Path(__file__).read_text()
    for row in KEY_ENDPOINTS:
        last = row.path.rpartition("/")[2]
        assert last.startswith("{") or f"/{last}" in asked, row.path


def test_a_kek_lives_and_dies(registry: Running, kek: str) -> None:
    assert kek in registry.get(KEYS)
    assert registry.get(f"{KEYS}/{kek}")["kmsKeyId"] == "mine"
    changed = registry.put(f"{KEYS}/{kek}", {"doc": "for cards", "kmsProps": {"a": "b"}})
    assert (changed["doc"], changed["kmsProps"]) == ("for cards", {"a": "b"})
    assert registry.put(f"{KEYS}/{kek}", {"doc": "for cards"}) == changed, "nothing changed, nothing written"
    assert registry.delete(f"{KEYS}/{kek}?permanent=true") == (404, 40471)
    assert registry.delete(f"{KEYS}/{kek}") is None
    assert kek not in registry.get(KEYS)
    assert kek in registry.get(f"{KEYS}?deleted=true")
    assert registry.get(f"{KEYS}/{kek}") == (404, 40470)
    assert registry.get(f"{KEYS}/{kek}?deleted=true")["deleted"] is True
    assert registry.ask("POST", f"{KEYS}/{kek}/undelete") is None
    assert "deleted" not in registry.get(f"{KEYS}/{kek}")
    registry.delete(f"{KEYS}/{kek}")
    assert registry.post(KEYS, kek_body(kek)) == (409, 40971), "it is deleted, but another"
    assert registry.post(KEYS, kek_body(kek, doc="for cards", kmsProps={"a": "b"}))["name"] == kek
    registry.delete(f"{KEYS}/{kek}")
    assert registry.delete(f"{KEYS}/{kek}?permanent=true") is None
    assert registry.get(f"{KEYS}/{kek}?deleted=true") == (404, 40470)


def test_deks_have_versions_and_algorithms(registry: Running, kek: str) -> None:
    subject = unique()
    made = add(registry, kek, subject)
    assert {**made, "ts": 0} == {
        "kekName": kek,
        "subject": subject,
        "version": 1,
        "algorithm": "AES256_GCM",
        "encryptedKeyMaterial": MATERIAL,
        "ts": 0,
    }
    assert add(registry, kek, subject) == (409, 40971)
    assert add(registry, kek, subject, version=2)["version"] == 2
    assert add(registry, kek, subject, algorithm="AES256_SIV")["algorithm"] == "AES256_SIV"
    older = registry.post(f"{KEYS}/{kek}/deks", dek_body(subject=subject + "x"))
    assert older["subject"] == subject + "x", "clients that do not name it in the path"
    place = f"{KEYS}/{kek}/deks/{subject}"
    assert registry.get(f"{KEYS}/{kek}/deks") == [subject, subject + "x"]
    assert registry.get(f"{KEYS}?subjectPrefix={subject}") == [kek]
    assert registry.get(f"{place}/versions") == [1, 2]
    assert registry.get(f"{place}/versions?algorithm=AES256_SIV") == [1]
    assert registry.get(f"{place}/versions?algorithm=ROT13")[0] == 404
    assert registry.get(place)["version"] == registry.get(f"{place}/versions/latest")["version"] == 2
    assert registry.get(f"{place}/versions/-1")["version"] == 2
    assert registry.get(f"{place}/versions/1")["version"] == 1
    assert registry.get(f"{place}/versions/3") == (404, 40470)
    assert registry.get(f"{place}/versions/0") == (422, 42202)


def test_deks_are_deleted_and_come_back(registry: Running, kek: str) -> None:
    for version in (1, 2):
        add(registry, kek, version=version)
    place = f"{KEYS}/{kek}/deks/s-value"
    assert registry.delete(f"{KEYS}/{kek}") == (422, 42272), "its keys would be lost"
    assert registry.delete(f"{place}/versions/2?permanent=true") == (404, 40471)
    assert registry.delete(f"{place}/versions/2") is None
    assert registry.get(f"{place}/versions") == [1]
    assert registry.get(f"{place}/versions?deleted=true") == [1, 2]
    assert registry.ask("POST", f"{place}/versions/2/undelete") is None
    assert registry.delete(place) is None
    assert registry.get(place) == (404, 40470)
    assert registry.delete(f"{KEYS}/{kek}") is None
    assert registry.ask("POST", f"{place}/undelete") == (404, 40472)
    assert registry.delete(f"{KEYS}/{kek}?permanent=true") == (422, 42272)
    registry.ask("POST", f"{KEYS}/{kek}/undelete")
    assert registry.ask("POST", f"{place}/undelete") is None
    assert registry.get(f"{place}/versions") == [1, 2]
    registry.delete(place)
    assert registry.delete(f"{place}?permanent=true") is None
    assert registry.get(f"{KEYS}/{kek}/deks?deleted=true") == []


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"name": ""}, 42271),
        ({"name": "1st"}, 42271),
        ({"name": "a/b"}, 42271),
        ({"name": "a" * 257}, 42271),
        ({"name": "good"}, 42271),
        ({"name": "good", "kmsKeyId": "x"}, 42271),
        ({"name": "good", "kmsKeyId": "x", "kmsType": "aws-kms"}, 42271),
        ({"name": "good", "kmsKeyId": "x", "kmsType": "local-kms", "shared": "yes"}, 422),
        ({"name": "good", "kmsKeyId": "x", "kmsType": "local-kms", "kmsProps": {"a": 1}}, 422),
        ({"name": "good", "kmsKeyId": 5, "kmsType": "local-kms"}, 422),
    ],
)
def test_what_is_no_kek_is_refused(registry: Running, given: dict[str, Any], code: int) -> None:
    assert registry.post(KEYS, given) == (422, code)


def test_what_is_no_dek_is_refused(registry: Running, kek: str) -> None:
    assert registry.post(f"{KEYS}/{kek}/deks/s", {}) == (422, 42271), "who does not share a KEK encrypts the key"
    assert registry.post(f"{KEYS}/nobody/deks/s", dek_body()) == (404, 40470)
    assert add(registry, kek, version=0) == (422, 42202)
    assert add(registry, kek, algorithm="ROT13")[0] == 404
    assert registry.post(f"{KEYS}/{kek}/deks", dek_body()) == (422, 42271)
    assert registry.ask("POST", f"{KEYS}/{kek}/test") == (422, 42271), "it is not shared"


def test_a_shared_kek_lets_the_registry_make_keys_and_stores_none(registry_broker: Broker) -> None:
    own = unique()
    apart = (f"schema.registry.group.id={own}", f"kafkastore.topic={own}-schemas", f"dek.registry.topic={own}")
    more = (*apart, "dek.registry.max.keys=2")  # with the other's topic it would fence the other
    with running(registry_broker.bootstrap_servers, *more, f"kms.secret={SECRET}") as registry:
        assert registry.post(f"{KEYS}?testSharing=true", kek_body("shared", shared=True))["shared"] is True
        assert registry.ask("POST", f"{KEYS}/shared/test")["name"] == "shared"
        made = registry.post(f"{KEYS}/shared/deks/s", {})
        assert len(base64.b64decode(made["keyMaterial"])) == 34
        assert registry.get(f"{KEYS}/shared/deks/s")["keyMaterial"] == made["keyMaterial"]
        stored = json.dumps(records(registry_broker.bootstrap_servers, own))
        assert made["encryptedKeyMaterial"] in stored
        assert made["keyMaterial"] not in stored
        assert SECRET not in stored
        elsewhere = kek_body("elsewhere", kmsType="nowhere", shared=True)
        assert registry.post(f"{KEYS}?testSharing=true", elsewhere) == (500, 50070)
        assert registry.put(f"{KEYS}/shared?testSharing=true", {"doc": "x"})["doc"] == "x"
        assert registry.post(KEYS, elsewhere)["name"] == "elsewhere"
        registry.post(KEYS, kek_body("third"))
        assert registry.post(KEYS, kek_body("fourth")) == (409, 40972)


def test_every_error_code_is_seen_here() -> None:
    seen = Path(__file__).read_text()
    assert all(str(code) in seen for code in MESSAGES)


def test_records_are_read_as_they_were_written() -> None:
    for key in (Kek("a", "local-kms", "x", (("p", "q"),), "doc", True, True), Dek("a", "s", "AES256_SIV", 3, "e")):
        for record in (Record(key), Record(key, gone=True)):
            name, value = CODEC.encode(record)
            read = CODEC.decode(_stored(name, value))
            assert read.gone == record.gone
            assert read.key is not None
            assert read.key.id == key.id
            assert record.gone or read.key == key


def _stored(key: bytes | None, value: bytes | None) -> Any:
    from moldau.client import Record as Stored

    return Stored(0, 5, key, value)


def test_the_bound_of_keys_counts_what_is_stored() -> None:
    store = KeyStore()
    keys = Keys(store, 1, {"secret": SECRET})
    for name in ("a", "b"):
        for record in create_kek(keys, Kek(name, "local-kms", "x", shared=True)).records:
            store.replay(record)
    for record in create_dek(keys, Dek("a", "s", "AES256_GCM", 1, None)).records:
        store.replay(record)
    assert (store.count(Kek), store.count(Dek)) == (2, 1)
