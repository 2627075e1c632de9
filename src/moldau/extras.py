"""Optional packages: which are missing, and the command that installs them."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
COMPILED = ("kerberos",)  # extras that make does not install, because they need headers of the system


class NotInstalled(ImportError):
    """An error for a feature whose packages are not installed; the text says which command installs them."""


def require(extra: str, feature: str, *packages: str) -> None:
    """Raise NotInstalled unless all these packages, which an extra of ours brings, are installed."""
    missing = [name for name in packages if not is_installed(name)]
    if missing:
        what = f"{', '.join(missing)}, not installed here"
        raise NotInstalled(f"{feature} needs {what}: {command(extra)}.", name=missing[0])


def require_spark() -> None:
    """Raise NotInstalled unless Spark and what it needs of Python are installed."""
    require("spark", "Spark", "pyspark", "pandas", "pyarrow")


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it."""
    try:
        return find_spec(package) is not None
    except ValueError:  # it is in sys.modules without a spec
        return False


def command(extra: str) -> str:
    """Return what to run to install an extra: make where it made this environment, otherwise pip."""
    if extra not in COMPILED and Path(sys.prefix).resolve() == (CHECKOUT / ".venv").resolve():
        return f"run `make spark` in {CHECKOUT}"
    return f"run `pip install 'moldau[{extra}]'`"
