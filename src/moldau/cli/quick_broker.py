"""The quick way into `moldau broker`: the options of broker.py, without the 0.1 s that typer takes to import."""

from __future__ import annotations

from typing import Any

from moldau.broker.logs import LEVELS
from moldau.broker.rim import process

VALUES = ("--config", "--data-dir", "--listen", "--metrics-port", "--log-format", "--log-level")
FLAGS = ("--ephemeral", "--stop-with-stdin")


def run(arguments: list[str]) -> int:
    """Run the broker; what is not understood here is left to typer, which then leaves."""
    options = parse(arguments)
    if options is None:
        from moldau.cli.broker import main

        main(arguments)
        return 0
    return process.run(options)


def parse(arguments: list[str]) -> process.Options | None:
    """The options, or None: help and mistakes are for typer to answer."""
    found: dict[str, Any] = {}
    overrides: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in FLAGS and not equals:
            found[_field(name)] = True
        elif name in (*VALUES, "--set"):
            value = value if equals else next(rest, None)
            if value is None:
                return None
            overrides.append(value) if name == "--set" else found.update({_field(name): value})
        else:
            return None
    return _checked(found, tuple(overrides))


def _field(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _checked(found: dict[str, Any], overrides: tuple[str, ...]) -> process.Options | None:
    port = found.pop("metrics_port", None)
    if port is not None and not (port.isascii() and port.isdigit() and int(port) < 65536):
        return None
    options = process.Options(overrides=overrides, metrics_port=None if port is None else int(port), **found)
    return options if options.log_format in ("text", "json") and options.log_level in LEVELS else None
