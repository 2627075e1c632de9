"""JAAS lines, as in `sasl.jaas.config`: `Module required name="value" ... ;`.

Only Kafka's own login modules are known. Any other class name is refused: names of classes are never looked up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from moldau.settings import SettingError

SETTING = "sasl.jaas.config"
PLAIN, SCRAM, BEARER, KERBEROS = "PlainLoginModule", "ScramLoginModule", "OAuthBearerLoginModule", "Krb5LoginModule"
_KAFKA = "org.apache.kafka.common.security."
MODULES = {
    f"{_KAFKA}plain.{PLAIN}": PLAIN,
    f"{_KAFKA}scram.{SCRAM}": SCRAM,
    f"{_KAFKA}oauthbearer.{BEARER}": BEARER,
    "com.sun.security.auth.module.Krb5LoginModule": KERBEROS,
}
SHADED = "kafkashaded."  # how some distributions of Spark rename Kafka's classes
FLAGS = ("required", "requisite", "sufficient", "optional")
MODULE_OF = {
    "PLAIN": PLAIN,
    "SCRAM-SHA-256": SCRAM,
    "SCRAM-SHA-512": SCRAM,
    "OAUTHBEARER": BEARER,
    "GSSAPI": KERBEROS,
}

_TOKEN = re.compile(
    r"""\s*(?://[^\n]*|/\*.*?\*/|(?P<sign>[=;])|"(?P<two>(?:\\.|[^"\\])*)"|'(?P<one>(?:\\.|[^'\\])*)'|"""
    r"""(?P<word>[^\s=;"']+))\s*""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Login:
    """A login module and its options, which may be secrets."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> Login:
    """Read the line of one login module; raises SettingError, which shows nothing of the line."""
    words = _words(text)
    if len(words) < 3 or words[-1] != (";", True) or words[1][0].lower() not in FLAGS:
        raise SettingError(SETTING, None, 'it is written `Module required username="..." password="...";`')
    module = MODULES.get(words[0][0].removeprefix(SHADED))
    if module is None:
        known = ", ".join(sorted({name.rpartition(".")[2] for name in MODULES}))
        raise SettingError(SETTING, None, f"{words[0][0][:100]} is not a login module of Kafka; those are {known}")
    options: dict[str, str] = {}
    rest = words[2:-1]
    for place in range(0, len(rest), 3):
        part = rest[place : place + 3]
        if len(part) < 3 or part[1] != ("=", True) or part[0][1] or part[2][1]:
            raise SettingError(SETTING, None, "its options are written name=value, and one line has one login module")
        options[part[0][0]] = part[2][0]
    return Login(module, options)


def _words(text: str) -> list[tuple[str, bool]]:
    """Cut a line into words, and signs that stand for themselves."""
    words: list[tuple[str, bool]] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            if not text[position:].strip():
                break
            raise SettingError(SETTING, None, "a quotation mark has no partner")
        position = found.end()
        if found["sign"]:
            words.append((found["sign"], True))
        elif found["word"] is not None:
            words.append((found["word"], False))
        elif (quoted := found["two"] if found["two"] is not None else found["one"]) is not None:
            words.append((re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL), False))
    return words
