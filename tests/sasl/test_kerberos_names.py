"""Local names of Kerberos principals, by rules as Kafka has them; `make kerberos` asks Kafka itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.sasl.kerberos_names import LocalNames, NoLocalName
from moldau.settings import SettingError
from tests.sasl.kerberos_cases import REALM, REFUSED, RULES


@pytest.mark.parametrize(("rules", "principal", "expected"), RULES)
def test_the_first_rule_that_fits_gives_the_name(rules: str, principal: str, expected: str | None) -> None:
    names = LocalNames(rules.split(","), REALM)
    if expected is None:
        with pytest.raises(NoLocalName):
            names.of(principal)
    else:
        assert names.of(principal) == expected


@pytest.mark.parametrize("rule", REFUSED)
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(SettingError):
        LocalNames([rule], REALM)


@given(st.text(max_size=40))
def test_no_name_of_a_principal_has_a_realm_left(principal: str) -> None:
    names = LocalNames(["RULE:[1:$1](.*)s/a/b/g/L", "RULE:[2:$1.$2]", "DEFAULT"], REALM)
    try:
        assert "@" not in names.of(principal)
    except NoLocalName:
        assert "@" in principal


def test_a_pattern_matches_in_linear_time() -> None:
    names = LocalNames(["RULE:[1:$1]s/((a|aa)+)+$/x/"], REALM)
    assert names.of(f"{'a' * 5000}!@{REALM}") == "a" * 5000 + "!"
