"""JAAS lines: what Kafka reads is read, and nothing else is looked up or shown."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.sasl.jaas import Login, parse_jaas
from moldau.settings import SettingError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f'{PLAIN} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{PLAIN} REQUIRED username='a b' password=c-d ;", {"username": "a b", "password": "c-d"}),
        (
            f'{PLAIN} required\n  user_al=x // who\n /* and */ password = "a;=\\"\\\\" ;\n',
            {"user_al": "x", "password": 'a;="\\'},
        ),
        (f"kafkashaded.{PLAIN} required username=a;", {"username": "a"}),
    ],
)
def test_a_line_is_read_as_kafka_reads_it(line: str, options: dict[str, str]) -> None:
    assert parse_jaas(line) == Login("PlainLoginModule", options)


@pytest.mark.parametrize(
    "module",
    [
        "com.sun.security.auth.module.JndiLoginModule",
        "PlainLoginModule",
        "evil.plain.PlainLoginModule",
        "java.lang.Runtime",
    ],
)
def test_only_known_login_modules(module: str) -> None:
    with pytest.raises(SettingError, match="is not a login module of Kafka"):
        parse_jaas(f'{module} required user.provider.url="ldap://x";')


@pytest.mark.parametrize(
    "line",
    [
        "",
        ";",
        PLAIN,
        f"{PLAIN} required",
        f"{PLAIN} maybe;",
        f"{PLAIN} required a;",
        f"{PLAIN} required a=;",
        f'{PLAIN} required password="hidden;',
        f"{PLAIN} required a=b; {PLAIN} required c=hidden;",
        f"{PLAIN} required = = =;",
    ],
)
def test_what_is_no_line_is_refused_without_being_shown(line: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_jaas(line)
    assert "hidden" not in str(caught.value)


def test_no_secret_shows_in_a_repr() -> None:
    assert "secret" not in repr(parse_jaas(f"{PLAIN} required password=secret;"))


@given(st.text(max_size=60))
def test_any_text_is_a_line_or_is_refused(text: str) -> None:
    for line in (text, f"{PLAIN} required {text};", f'{PLAIN} required a="{text}";'):
        with contextlib.suppress(SettingError):
            assert parse_jaas(line).module == "PlainLoginModule"
