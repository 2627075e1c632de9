"""Starts `moldau broker` quickly: reads the options of broker.py without the 0.1 s that importing typer takes."""

from __future__ import annotations

from typing import Any

from moldau.broker.rim import process
from moldau.logs import LEVELS

VALUES = ("--config", "--data-dir", "--listen", "--metrics-port", "--log-format", "--log-level")
FLAGS = ("--ephemeral", "--stop-with-stdin")


def run(arguments: list[str]) -> int:
    """Run the broker; leave what is not understood here to typer, which then exits."""
    options = parse(arguments)
    if options is None:
        from moldau.cli.broker import main

        main(arguments)
        return 0
    return process.run(options)


def parse(arguments: list[str]) -> process.Options | None:
    """Read the options; None for help and mistakes, which typer handles."""
    options: dict[str, Any] = {}
    overrides: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in FLAGS and not equals:
            options[_field(name)] = True
        elif name in (*VALUES, "--set"):
            value = value if equals else next(rest, None)
            if value is None:
                return None
            overrides.append(value) if name == "--set" else options.update({_field(name): value})
        else:
            return None
    return _check(options, tuple(overrides))


def _field(name: str) -> str:
    return name.removeprefix("--").replace("-", "_")


def _check(given: dict[str, Any], overrides: tuple[str, ...]) -> process.Options | None:
    port = given.pop("metrics_port", None)
    if port is not None and not (port.isascii() and port.isdigit() and int(port) < 65536):
        return None
    options = process.Options(overrides=overrides, metrics_port=None if port is None else int(port), **given)
    return options if options.log_format in ("text", "json") and options.log_level in LEVELS else None
