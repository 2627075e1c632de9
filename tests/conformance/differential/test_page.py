"""docs/deviations.md, and the rows it is made of."""

from __future__ import annotations

from tests.conformance.differential import page
from tests.conformance.differential.accepted import ALL, table
from tests.conformance.differential.scripts import SCRIPTS


def test_the_page_of_deviations_is_current() -> None:
    assert page.PAGE.read_text() == page.page(), "run `make docs`"


def test_an_api_that_deviates_is_on_the_page_by_name_and_key() -> None:
    found = dict(page.deviations())
    assert "null records" in found["Produce (key 0)"]
    assert "CreatePartitions (key 37)" not in found


def test_accepted_differences_belong_to_a_script_and_name_its_cases() -> None:
    names = {script.name: {case.name for case in script.cases} for script in SCRIPTS}
    for script, rows in table().items():
        if script != ALL:
            unknown = [row.cases for row in rows if not any(map(row.names, names[script]))]
            assert not unknown, f"{script} has no cases {unknown}"
