"""The Makefile's way into .venv, run with stand-ins for Python and uv that write down how they were called."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.needs import ROOT

# `python -m venv` copies this stand-in; `-m pip install uv` makes a uv that fails as the one on PATH does.
PYTHON = """#!/bin/sh
echo "python $*" >>"$CALLS"
case "$*" in
    "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *" uv") [ -n "$WHEEL" ] && cp "$WHEEL" .venv/bin/uv ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >>"$CALLS"
[ "$1" = --version ] && exit {works}
[ "$1" = venv ] && exit 1
exit {installs}
"""
BY_UV = "uv pip install --python .venv/bin/python -e .[{}]"
BY_PIP = "python -m pip install --disable-pip-version-check -e .[{}]"
NO, YES = 1, 0


class Checkout:
    """A folder with the Makefile, and nothing on PATH but a shell and the stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin, self.calls = folder / "checkout", folder / "bin", folder / "calls"
        self.folder.mkdir()
        self.bin.mkdir()
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder)
        for name in ("sh", "test", "touch", "mkdir", "cp", "echo", "make"):
            (self.bin / name).symlink_to(str(shutil.which(name)))
        self.environment = {"PATH": str(self.bin), "CALLS": str(self.calls), "WHEEL": ""}
        self.write(self.bin / "python3", PYTHON)

    def write(self, path: Path, text: str) -> str:
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def make(self, target: str) -> tuple[str, list[str]]:
        """Return what make printed, and the calls of this run."""
        self.calls.write_text("")
        done = subprocess.run(
            ["make", target], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, self.calls.read_text().splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_uv_on_the_path_installs_the_platform_without_pip(checkout: Checkout) -> None:
    checkout.write(checkout.bin / "uv", UV.format(works=YES, installs=YES))
    said, calls = checkout.make(".venv/.platform")
    assert "Installing the platform (" in said
    assert calls[-1] == BY_UV.format("console") and not any("pip install --dis" in call for call in calls)


def test_without_a_uv_its_wheel_is_installed_first(checkout: Checkout, tmp_path: Path) -> None:
    checkout.environment["WHEEL"] = checkout.write(tmp_path / "wheel", UV.format(works=YES, installs=YES))
    _, calls = checkout.make("setup")
    assert calls == [
        "python -m venv .venv",
        "python -m pip install --disable-pip-version-check --quiet uv",
        BY_UV.format("dev"),
    ]


@pytest.mark.parametrize("works", [YES, NO], ids=["uv fails", "uv is a shim of nothing"])
def test_what_uv_cannot_install_pip_does_and_says_so(checkout: Checkout, works: int) -> None:
    checkout.write(checkout.bin / "uv", UV.format(works=works, installs=NO))
    said, calls = checkout.make("spark")
    assert "pip does" in said and calls[-1] == BY_PIP.format("all")


def test_everything_for_development_has_the_platform_in_it_and_is_installed_once(checkout: Checkout) -> None:
    checkout.make("setup")
    assert checkout.make(".venv/.platform")[1] == checkout.make("spark")[1] == checkout.make("setup")[1] == []


def test_a_change_of_the_project_installs_again(checkout: Checkout) -> None:
    checkout.make(".venv/.platform")
    stamp = checkout.folder / ".venv" / ".platform"
    os.utime(checkout.folder / "pyproject.toml", (stamp.stat().st_mtime + 2,) * 2)
    assert checkout.make(".venv/.platform")[1][-1] == BY_PIP.format("console")


def test_a_venv_that_pip_made_is_used_as_it_is(checkout: Checkout) -> None:
    (checkout.folder / ".venv" / "bin").mkdir(parents=True)
    checkout.write(checkout.folder / ".venv" / "bin" / "python", PYTHON)
    assert "python -m venv .venv" not in checkout.make("setup")[1]
