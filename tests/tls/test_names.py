"""Names of certificates as Java writes them, and the rules that make principals of them."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from moldau.settings import SettingError
from moldau.tls import MappingRules, java_name

NAME = "CN=Kafka Client,OU=dev,O=Some Company,L=Here,ST=There,C=DE"


def test_the_last_part_of_a_name_comes_first() -> None:
    parts = ((NameOID.COUNTRY_NAME, "DE"), (NameOID.ORGANIZATION_NAME, "a, b"), (NameOID.COMMON_NAME, "#x "))
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in parts])
    assert java_name(name) == "CN=\\#x\\ ,O=a\\, b,C=DE"


def test_an_attribute_without_a_word_is_a_number_and_bytes() -> None:
    mail = x509.NameAttribute(NameOID.EMAIL_ADDRESS, "x@y.z", _ASN1Type.IA5String)
    assert java_name(x509.Name([mail])) == "1.2.840.113549.1.9.1=#16057840792e7a"


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("DEFAULT", NAME),
        ("", None),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/", "Kafka Client@dev"),
        ("RULE:^CN=(.*?),.*$/$1/L", "kafka client"),
        ("RULE:^CN=(.*?),.*$/$1/U", "KAFKA CLIENT"),
        ("RULE:^CN=nobody$/x/, RULE:^CN=(.*?),.*$/$1/,DEFAULT", "Kafka Client"),
        ("RULE:^CN=nobody$/x/,DEFAULT", NAME),
        ("RULE:^CN=nobody$/x/", None),
        (r"RULE:^CN=(.*?),.*$/\/$1\$/", "/Kafka Client$"),
        ("RULE:^.*OU=(dev|ops),.*$/$1/U", "DEV"),
    ],
)
def test_the_first_rule_that_fits_decides(rules: str, expected: str | None) -> None:
    assert MappingRules(rules).principal(NAME) == expected


@pytest.mark.parametrize("rules", ["RULE", "RULE:a", "RULE:a/b", "DEFAUL", "RULE:(/x/", "RULE:a/$1/", r"RULE:(a)\1/x/"])
def test_a_rule_that_cannot_be_used_is_refused(rules: str) -> None:
    with pytest.raises(SettingError, match="mapping"):
        MappingRules(rules)


@given(st.text(alphabet="RULE:DFAT/\\$1(),.*x ^[]LU", max_size=40), st.text(max_size=40))
def test_any_text_is_a_list_of_rules_or_is_refused(rules: str, name: str) -> None:
    try:
        made = MappingRules(rules).principal(name)
    except SettingError:
        return
    assert made is None or isinstance(made, str)


def test_a_pattern_that_java_would_ponder_for_years_is_done_at_once() -> None:
    assert MappingRules("RULE:^(a+)+$/x/").principal("a" * 50_000 + "b") is None
