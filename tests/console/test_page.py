"""docs/console.md: what it tells people to type is taken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.console import accounts
from moldau.console.search.expression import condition

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "console.md").read_text()
CONDITIONS = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", CONDITIONS)
def test_every_condition_of_the_page_is_one(text: str) -> None:
    assert condition(text).columns


def test_the_page_has_conditions_and_its_pictures_are_there() -> None:
    assert len(CONDITIONS) > 5
    for picture in re.findall(r"\((pictures/[\w-]+\.png)\)", PAGE):
        assert 1000 < (DOCS / picture).stat().st_size < 150_000, picture


def test_users_are_added_as_the_page_says(tmp_path: Path) -> None:
    [script] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    moldau = tmp_path / "moldau"
    moldau.write_text(f'#!/bin/sh\nexec {sys.executable} -m moldau "$@"\n')
    moldau.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e"], input=script, text=True, cwd=tmp_path, env=environment, check=True, timeout=280)
    users = accounts.read(tmp_path / "users.properties")
    assert accounts.matches(users["ada"].password, "correct horse") and users["bob"].read_only
