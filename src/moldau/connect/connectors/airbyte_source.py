"""Airbyte source: a manifest, read by airbyte-cdk in a program of its own. Its states are the source offset.

airbyte-cdk needs older versions of packages than Moldau's tests have, so it usually has an interpreter of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, key
from moldau.connect.connectors import airbyte_runner
from moldau.connect.connectors.singer_source import COMMON, Tap, object_of, written
from moldau.connect.errors import ConfigError


def _check(config: Mapping[str, Any]) -> None:
    object_of("airbyte.config", config["airbyte.config"])
    if not config["airbyte.python"] and find_spec("airbyte_cdk") is None:
        said = "An Airbyte manifest needs the Python package airbyte-cdk: install it into an environment of its own"
        raise ConfigError(f"{said}, and name its interpreter in airbyte.python.")


def _command(config: Mapping[str, Any], state: Any, folder: Path) -> list[str]:
    spec = {
        "manifest": config["airbyte.manifest"],
        "config": object_of("airbyte.config", config["airbyte.config"]),
        "streams": config["airbyte.streams"],
        "state": state,
    }
    python = config["airbyte.python"] or sys.executable
    return [python, airbyte_runner.__file__, written(folder, "spec.json", spec)]


AIRBYTE = Tap(
    "moldau.connect.AirbyteSourceTask",
    "airbyte",
    ConfigDef(
        [
            Key("airbyte.manifest", importance=Importance.HIGH, doc="The path of the manifest, a YAML file."),
            key("airbyte.config", None, "The source's settings, a JSON object.", Kind.PASSWORD),
            key("airbyte.streams", [], "Streams to read; by default all.", Kind.LIST),
            key("airbyte.python", "", "An interpreter that has airbyte-cdk; by default the worker's."),
            *COMMON,
        ]
    ),
    _command,
    _check,
    exactly_once=False,  # cursors include their start: its rows come again in the next run
)
