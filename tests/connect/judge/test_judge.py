"""A core of the judge of Connect: every transform, predicate and converter on a few inputs that are always the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moldau.connect.converters import CONVERTERS
from moldau.connect.predicates import PREDICATES
from moldau.connect.transforms import TRANSFORMS
from tests.connect.judge.jvm import BRIEF, Connect, connect
from tests.connect.judge.subjects import DEBEZIUM, PACKAGE, SUBJECTS
from tests.connect.judge.trial import trial

ITEMS = 60
CHANGES = 400  # their settings combine
SEED = 7


def test_everything_that_connect_has_is_judged() -> None:
    judged = {subject.class_name for subject in SUBJECTS.values()}
    ours = {name for row in (*TRANSFORMS, *PREDICATES) for name in row.class_names}
    ours |= {row.class_name for row in CONVERTERS}
    assert {name for name in ours if name.startswith((PACKAGE, DEBEZIUM))} == judged - {""}


@pytest.fixture(scope="module")
def judge() -> Iterator[Connect]:
    with connect(BRIEF) as running:
        yield running


@pytest.mark.needs("java", "connect-judge")
@pytest.mark.parametrize("subject", [name for name, row in SUBJECTS.items() if not row.class_name.startswith(DEBEZIUM)])
def test_connect_makes_the_same_of_it(judge: Connect, subject: str) -> None:
    result = trial(judge, subject, ITEMS, SEED)
    assert not result.differences, result.differences[0]
    assert sum(result.seen.values()) == ITEMS


@pytest.mark.needs("java", "connect-judge", "debezium-jars")
@pytest.mark.parametrize("subject", [name for name, row in SUBJECTS.items() if row.class_name.startswith(DEBEZIUM)])
def test_debezium_makes_the_same_of_it(judge: Connect, subject: str) -> None:
    result = trial(judge, subject, CHANGES, SEED)
    assert not result.differences, result.differences[0]
    assert result.seen["same"] > CHANGES // 3
