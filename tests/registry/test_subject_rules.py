"""Rules about subjects: who may read and write which."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.http import ADMIN, EDITOR, VIEWER, Caller
from moldau.registry.subject_rules import READ, WRITE, SubjectRules
from moldau.settings import SettingError

FILE = """
ada: write orders-*, read payments-value
bob: read *
*: read public-*
"""


def caller(name: str, role: str = EDITOR) -> Caller:
    return Caller(name, frozenset((role,)), "BASIC")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "subjects"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("name", "subject", "reads", "writes"),
    [
        ("ada", "orders-value", True, True),
        ("ada", ":.:orders-value", True, True),  # the default context by its name
        ("ada", ":.other:orders-value", False, False),
        ("ada", "my-orders-value", False, False),
        ("ada", "payments-value", True, False),
        ("ada", "payments-value-2", False, False),
        ("ada", "public-x", True, False),
        ("bob", ":.other:orders-value", True, False),
        ("eve", "orders-value", False, False),
        ("eve", "public-x", True, False),
        ("eve", "publics", False, False),
    ],
)
def test_a_rule_counts_for_its_caller_and_subjects(
    file: Path, name: str, subject: str, reads: bool, writes: bool
) -> None:
    rules = SubjectRules(str(file))
    assert [rules.allow(caller(name), operation, subject) for operation in (READ, WRITE)] == [reads, writes]


def test_admins_and_files_that_are_not_there_allow_everything(file: Path) -> None:
    assert SubjectRules(str(file)).allow(caller("eve", ADMIN), WRITE, "orders-value")
    assert SubjectRules("").allow(caller("eve", VIEWER), WRITE, "orders-value")


def test_rules_are_read_again_when_their_file_changes(file: Path) -> None:
    rules = SubjectRules(str(file))
    assert rules.allow(caller("ada"), WRITE, "orders-value")
    file.write_text("ada: read orders-*\n")
    assert not rules.allow(caller("ada"), WRITE, "orders-value")
    file.write_text("ada: everything\n")  # it cannot be used, so it changes nothing
    assert rules.allow(caller("ada"), READ, "orders-value") and not rules.allow(caller("ada"), WRITE, "orders-value")


@pytest.mark.parametrize("text", ["ada: delete x", "ada: read", "ada:", "ada: read x, write"])
def test_a_rule_that_is_wrong_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "subjects"
    path.write_text(text)
    with pytest.raises(SettingError, match="a rule is written"):
        SubjectRules(str(path))
