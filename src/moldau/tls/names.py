"""Names that certificates carry: as Java writes them, and what `ssl.principal.mapping.rules` makes of them."""

from __future__ import annotations

import re
from typing import NamedTuple

import re2
from cryptography import x509
from cryptography.x509.oid import NameOID

from moldau.settings import SettingError

SETTING = "ssl.principal.mapping.rules"
# The attributes that RFC 2253 has words for; Java writes any other with its number and its bytes.
KEYWORDS = {
    NameOID.COMMON_NAME: "CN",
    NameOID.LOCALITY_NAME: "L",
    NameOID.STATE_OR_PROVINCE_NAME: "ST",
    NameOID.ORGANIZATION_NAME: "O",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "OU",
    NameOID.COUNTRY_NAME: "C",
    NameOID.STREET_ADDRESS: "STREET",
    NameOID.DOMAIN_COMPONENT: "DC",
    NameOID.USER_ID: "UID",
}
ESCAPED = re.compile(r'[,+"\\<>;]')
WIDE = {30: "utf-16-be", 28: "utf-32-be"}  # tags of strings that are not bytes of UTF-8


def java_name(name: x509.Name) -> str:
    """Write a distinguished name as `X500Principal.getName()` does: RFC 2253, the last part first."""
    return ",".join("+".join(map(_part, rdn)) for rdn in reversed(list(name.rdns)))


def alternative_names(certificate: x509.Certificate) -> frozenset[str]:
    """Return the hosts and addresses that a certificate is for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(one.value) for one in found)


def _part(attribute: x509.NameAttribute) -> str:
    keyword = KEYWORDS.get(attribute.oid)
    if keyword is None:
        return f"{attribute.oid.dotted_string}=#{_der(attribute).hex()}"
    text = ESCAPED.sub(lambda match: "\\" + match[0], str(attribute.value)).replace("\0", "\\00")
    if text[:1] in ("#", " "):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1:
        text = f"{text[:-1]}\\ "
    return f"{keyword}={text}"


def _der(attribute: x509.NameAttribute) -> bytes:
    """Return the value as it stands in the certificate."""
    (tag, value) = attribute._type.value, attribute.value  # pyright: ignore[reportPrivateUsage]
    data = value if isinstance(value, bytes) else value.encode(WIDE.get(tag, "utf-8"))
    size = len(data)
    if size < 0x80:
        return bytes((tag, size)) + data
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + data


class Rule(NamedTuple):
    """A pattern for the whole name, and what it becomes: `$1` stands for a group. None keeps the name as it is."""

    pattern: re2._Regexp | None  # pyright: ignore[reportPrivateUsage]
    replacement: str = ""
    case: str = ""  # U or L

    def applied(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        match = self.pattern.fullmatch(name)
        if match is None:
            return None
        made = _REFERENCE.sub(lambda one: one[1] or match[int(one[2])] or "", self.replacement)
        return {"U": made.upper(), "L": made.lower()}.get(self.case, made)


_REFERENCE = re.compile(r"\\(.)|\$(\d)")
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


class MappingRules:
    """The rules, of which the first that fits decides (KIP-371)."""

    def __init__(self, text: str) -> None:
        self.rules: list[Rule] = []
        position, text = 0, text.strip()
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise SettingError(
                    SETTING, text, f"a rule is DEFAULT or RULE:pattern/replacement/[LU], not {text[position:]}"
                )
            self.rules.append(Rule(None) if found[1] else _rule(text, *found.group(2, 3, 4)))
            position = found.end()

    def principal(self, name: str) -> str | None:
        """Return the principal's name for a distinguished name; None if no rule fits."""
        return next((made for rule in self.rules if (made := rule.applied(name)) is not None), None)


def _rule(text: str, pattern: str, replacement: str, case: str) -> Rule:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern.replace("\\/", "/"), options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        raise SettingError(SETTING, text, f"the pattern {pattern} cannot be used: {reason}") from None
    used = [int(one[2]) for one in _REFERENCE.finditer(replacement) if one[2]]
    if used and max(used) > compiled.groups:
        raise SettingError(SETTING, text, f"the pattern {pattern} has no group {max(used)}")
    return Rule(compiled, replacement.replace("\\/", "/"), case)
