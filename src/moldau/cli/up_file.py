"""The file of `moldau up --config`: the options of the command, and a table of settings for each part.

data-dir = "/srv/moldau"
only = ["broker", "registry"]

[broker]
"num.partitions" = 6
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from moldau.admin.mistakes import Mistake
from moldau.platform import PARTS, Options

LARGEST = 1 << 20
KEYS = {  # in the file -> field of Options, what it must be
    "data-dir": ("data_dir", str),
    "ephemeral": ("ephemeral", bool),
    "port-offset": ("port_offset", int),
    "brokers": ("broker_count", int),
    "only": ("only", list),
    "bootstrap-servers": ("bootstrap_servers", str),
    "secure": ("secure", str),
}


def read(path: Path) -> Options:
    """Read a file; Mistake if it is not valid."""
    try:
        if path.stat().st_size > LARGEST:
            raise Mistake(f"{path} is larger than {LARGEST} bytes: it is not a file of settings.")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} is not TOML: {error}.") from None
    return options(document, str(path))


def options(document: dict[str, Any], name: str) -> Options:
    """Read the options of a document."""
    given: dict[str, Any] = {}
    settings: dict[str, tuple[str, ...]] = {}
    for key, value in document.items():
        if key in PARTS:
            settings[key] = tuple(_settings(key, value, name))
        elif key in KEYS:
            field, kind = KEYS[key]
            if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
                raise Mistake(f"{name}: {key} is {value!r}, not {WORDS[kind]}.")
            given[field] = tuple(map(str, value)) if kind is list else value
        else:
            raise Mistake(f"{name}: {key} is unknown. The keys are: {', '.join((*KEYS, *PARTS))}.")
    return replace(Options(**given), settings=settings)


WORDS = {str: "text", bool: "true or false", int: "a number", list: "a list"}


def _settings(part: str, table: Any, name: str) -> Iterable[str]:
    """Yield the settings; a name with dots may be written with or without quotes."""
    if not isinstance(table, dict):
        raise Mistake(f"{name}: [{part}] is not a table.")
    for key, value in table.items():
        if isinstance(value, dict):
            yield from (f"{key}.{rest}" for rest in _settings(part, value, name))
        else:
            yield f"{key}={str(value).lower() if isinstance(value, bool) else value}"
