"""What forms say: where offsets shall be, schemas, rules and limits; and what makes no sense is told."""

from __future__ import annotations

import pytest

from moldau.admin import resets
from moldau.admin.groups import ListedGroup
from moldau.console.model import access, groups, schemas
from moldau.console.model.problems import Refused

PLACES = list(groups.PLACES)
RULE = {
    "principal": "User:ada", "permission": "ALLOW", "operation": "READ", "resource": "TOPIC", "name": "orders",
    "pattern": "LITERAL", "host": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        (0, "", resets.Earliest()),
        (1, "", resets.Latest()),
        (2, " 7 ", resets.To(7)),
        (3, "1000", resets.At(1000)),
        (5, "-10", resets.Shift(-10)),
        (5, "+3", resets.Shift(3)),
    ],
)
def test_a_place_for_offsets_is_understood(place: int, text: str, expected: resets.Wanted) -> None:
    assert groups.wanted(PLACES[place], text) == expected


@pytest.mark.parametrize(("place", "text"), [(2, "x"), (2, "-1"), (3, "soon"), (4, "x"), (5, ""), (5, "1" * 101)])
def test_a_place_that_makes_no_sense_is_told(place: int, text: str) -> None:
    with pytest.raises((Refused, resets.ResetError)):
        groups.wanted(PLACES[place], text)


def test_groups_that_are_furthest_behind_come_first() -> None:
    listed = [ListedGroup(name, "Classic", "consumer", "Stable", 1) for name in ("a", "b", "c")]
    assert [row.name for row in groups.rows(listed, {"b": 5, "c": 9})] == ["c", "b", "a"]


def test_only_partitions_that_have_offsets_are_set() -> None:
    committed = {("orders", 1): 3, ("orders", 0): 3, ("bills", 0): 1}
    assert groups.chosen(committed, "orders") == [("orders", 0), ("orders", 1)]
    assert len(groups.chosen(committed, groups.ALL_TOPICS)) == 3
    with pytest.raises(Refused):
        groups.chosen(committed, "other")


def test_texts_stand_side_by_side() -> None:
    found = schemas.compare("a\nb\nc\n", "a\nB\nc\nd\n")
    assert [(line.left, line.right, line.what) for line in found] == [
        ("a", "a", "same"),
        ("b", "B", "changed"),
        ("c", "c", "same"),
        ("", "d", "new"),
    ]


def test_a_subject_tells_its_topic_by_its_name() -> None:
    assert schemas.topic_of("orders-value") == ("orders", "value")
    assert schemas.topic_of("my-orders-key") == ("my-orders", "key")
    assert schemas.context_of(":.dev:orders-value") == ":.dev:" and schemas.context_of("orders-value") == ""
    assert schemas.topic_of("Order") is None and schemas.topic_of(":.dev:orders-value") is None


@pytest.mark.parametrize("text", ["", "  ", "x" * (schemas.LARGEST + 1)])
def test_no_schema_and_too_much_of_one_are_refused(text: str) -> None:
    with pytest.raises(Refused):
        schemas.candidate("AVRO", text)


def test_a_rule_is_made_of_a_form_and_found_by_its_filter() -> None:
    made = access.rule(RULE)
    assert made.host == "*" and access.only(made).principal == "User:ada"
    for wrong in ({"name": " "}, {"principal": "ada"}, {"name": "x" * 1001}):
        with pytest.raises(Refused):
            access.rule({**RULE, **wrong})


def test_a_limit_is_of_a_user_a_client_or_both() -> None:
    assert access.entity("ada", "") == (("user", "ada"),)
    assert access.words(access.entity("default", "app")) == "user default, client-id app"
    with pytest.raises(Refused):
        access.entity(" ", "")


def test_a_limit_is_found_in_whatever_order_brokers_name_its_owner() -> None:
    whose = access.entity("ada", "app")
    found = {tuple(reversed(whose)): {"producer_byte_rate": 5.0}}
    assert access.limit_of(found, whose, "producer_byte_rate") == 5.0
    assert access.limit_of(found, whose, "request_percentage") is None
    assert access.limit_of(found, access.entity("bob", ""), "producer_byte_rate") is None


def test_a_finding_of_brokers_and_files_is_one_row() -> None:
    door, rights, key = ("PLAINTEXT", "open", "close it"), ("authorizer", "none", "set it"), ("rest", "key", "chmod")
    rows = access.finding_rows({door: [1, 2], rights: [2]}, [door, key])
    assert [(row["where"], row["seen at"]) for row in rows] == [
        ("PLAINTEXT", "brokers 1, 2"),
        ("authorizer", "broker 2"),
        ("rest", "files"),
    ]
    assert rows[0] == {
        "id": "0",
        "where": "PLAINTEXT",
        "problem": "open",
        "to do": "close it",
        "seen at": "brokers 1, 2",
    }
