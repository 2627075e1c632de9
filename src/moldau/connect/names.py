"""Names that Avro accepts, as Debezium's settings `*.name.adjustment.mode` make them."""

from __future__ import annotations

import re
from collections.abc import Callable

from moldau.connect.config_def import Key, one_of_any_case

NONE, AVRO, AVRO_UNICODE = "none", "avro", "avro_unicode"
_MODES = (NONE, AVRO, AVRO_UNICODE)
_FIRST = {AVRO: re.compile(r"[A-Za-z_]"), AVRO_UNICODE: re.compile(r"[A-Za-z]")}
_REST = {AVRO: re.compile(r"[A-Za-z0-9_]"), AVRO_UNICODE: re.compile(r"[A-Za-z0-9]")}


def adjuster(mode: str, *, dots: bool) -> Callable[[str], str]:
    """Return a function that replaces what Avro does not allow: by `_`, or by `_uXXXX`. Names of schemas have dots."""
    mode = mode.strip().lower()
    if mode == NONE:
        return lambda name: name

    def replaced(at: int, each: str) -> str:
        if (_REST if at else _FIRST)[mode].match(each) or (at and dots and each == "."):
            return each
        if mode == AVRO_UNICODE:
            code = f"{ord(each):x}"
            return "_u" + ("00" + code if len(code) <= 2 else code)
        return "_" + each if not at and each.isdigit() else "_"

    return lambda name: "".join(replaced(at, each) for at, each in enumerate(name))


def adjustment(name: str, what: str) -> Key:
    """Return the setting of a mode."""
    return Key(
        name,
        default=NONE,
        validator=one_of_any_case(*_MODES),
        doc=f"How {what} are made valid for Avro: none, avro (invalid characters become _) or avro_unicode (_uXXXX).",
    )
