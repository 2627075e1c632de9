"""dlt source: any source or resource of dlt by its name, in a program of its own. Its state is the source offset."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, key
from moldau.connect.connectors import dlt_runner
from moldau.connect.connectors.singer_source import COMMON, Tap, object_of, written
from moldau.connect.errors import ConfigError


def _check(config: Mapping[str, Any]) -> None:
    object_of("dlt.arguments", config["dlt.arguments"])
    if "." not in config["dlt.source"]:
        raise ConfigError("Invalid value for configuration dlt.source: write package.module.function")
    if not config["dlt.python"] and find_spec("dlt") is None:
        said = "A dlt source needs the Python package dlt: pip install 'moldau[dlt]'"
        raise ConfigError(f"{said}, or name an interpreter that has it in dlt.python.")


def _command(config: Mapping[str, Any], state: Any, folder: Path) -> list[str]:
    spec = {
        "source": config["dlt.source"],
        "arguments": object_of("dlt.arguments", config["dlt.arguments"]),
        "resources": config["dlt.resources"],
        "path": config["dlt.path"],
        "state": state,
    }
    return [config["dlt.python"] or sys.executable, dlt_runner.__file__, written(folder, "spec.json", spec)]


DLT = Tap(
    "moldau.connect.DltSourceTask",
    "dlt",
    ConfigDef(
        [
            Key("dlt.source", importance=Importance.HIGH, doc="The source or resource, as package.module.function."),
            key("dlt.arguments", None, "Its arguments, a JSON object.", Kind.PASSWORD),
            key("dlt.resources", [], "Resources to read; by default all that are selected.", Kind.LIST),
            key("dlt.path", "", "A folder to import the source from."),
            key("dlt.python", "", "An interpreter that has dlt and the source; by default the worker's."),
            *COMMON,
        ]
    ),
    _command,
    _check,
)
