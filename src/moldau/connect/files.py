"""The config of a connector in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moldau.settings import SettingError, read_properties


def read_connector(path: str) -> dict[str, str | None]:
    """Read the config of a connector: properties, or JSON as REST takes it or the settings alone."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if not text.lstrip().startswith("{"):
            return dict(read_properties(path))
        document = json.loads(text)
        config = document.get("config") if isinstance(document.get("config"), dict) else document
        found = {name: as_text(value) for name, value in config.items()}
    except OSError as error:
        raise SettingError(path, None, f"it cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SettingError(path, None, f"it is not the JSON of a connector: {error}") from None
    return {**found, **({"name": str(document["name"])} if "name" in document else {})}


def as_text(value: Any) -> str | None:
    """Return a value of JSON as the text of a setting; ValueError if it has parts."""
    if isinstance(value, dict | list):
        raise ValueError("it must be a text")
    return value if value is None or isinstance(value, str) else json.dumps(value)
