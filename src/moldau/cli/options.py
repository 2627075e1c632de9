"""How commands declare their options, arguments and examples."""

from __future__ import annotations

from typing import Any

import typer


def option(names: str, help: str, default: Any = None, **more: Any) -> Any:
    """Declare an option by its names, as in "--topic -t"."""
    return typer.Option(default, *names.split(), help=help, **more)


def flag(names: str, help: str, **more: Any) -> Any:
    """Declare an option that takes no value."""
    return option(names, help, False, **more)


def argument(help: str, default: Any = ..., **more: Any) -> Any:
    """Declare an argument; without a default it is required."""
    return typer.Argument(default, help=help, **more)


def epilog(*examples: str) -> str:
    """Write examples as typer wants them: a paragraph each."""
    return "\n\n".join(("Examples:", *(f"$ {example}" for example in examples)))
