"""Variables of a text: `${name}` is replaced by its value before the text is parsed."""

from __future__ import annotations

import re

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\$(?=\{)")


def substitute(text: str, variables: dict[str, str]) -> str:
    """Replace each `${name}`; a name that is not defined stays as it is, and `$${name}` becomes `${name}`."""
    known = {name.upper(): value for name, value in variables.items()}

    def value(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "$"
        return known.get(match.group(1).upper(), match.group())

    return _REFERENCE.sub(value, text)
