"""The pages of the site say what is true: their shell and Python blocks run, and the site is whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from moldau.cli.kafka import TOOLS
from moldau.testing import broker
from tests.console.browser.shop import AUTHORIZER
from tests.services import Service

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [DOCS / "start.md", DOCS / "balancer.md", *sorted((DOCS / "concepts").glob("*.md"))]
PAGES += sorted((DOCS / "coming-from").glob("*.md"))
BLOCKS = re.compile(r"```(python|sh)\n(.*?)```", re.DOTALL)
WAIT_S = 240
NAMES = [f"{name}{end}" for name in TOOLS for end in ("", ".sh")]
COMMANDS = "\n".join(
    [
        f'moldau() {{ {sys.executable} -m moldau "$@"; }}',
        *(f'{name}() {{ {sys.executable} -m moldau {name} "$@"; }}' for name in NAMES),
    ]
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a broker and a registry are, in place of the usual ports."""

    broker: str
    registry: str

    def moved(self, text: str) -> str:
        return text.replace("127.0.0.1:9092", self.broker).replace("http://127.0.0.1:8081", self.registry)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with broker(AUTHORIZER) as kafka:
        registry = Service("registry", "--bootstrap-servers", kafka.bootstrap_servers, "--listen", "127.0.0.1:0")
        yield Place(kafka.bootstrap_servers, registry.url)
        registry.stop()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).with_suffix("").as_posix())
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, place: Place, tmp_path: Path) -> None:
    names: dict[str, object] = {}
    for kind, text in BLOCKS.findall(page.read_text()):
        if kind == "python":
            exec(compile(place.moved(text), str(page), "exec"), names)
        else:
            run(place, text, tmp_path)


def run(place: Place, text: str, folder: Path) -> None:
    """A shell block; its lines that begin with # are lines of what it prints, in order."""
    environment = {
        **os.environ,
        "MOLDAU_BOOTSTRAP_SERVERS": place.broker,
        "SCHEMA_REGISTRY_URL": place.registry,
        "XDG_CONFIG_HOME": str(folder),
    }
    script = f"{COMMANDS}\n{place.moved(text)}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=environment,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    expected = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
    printed = iter(done.stdout.splitlines())
    assert all(line in printed for line in expected), f"{expected}\n{done.stdout}"


def test_the_navigation_leads_to_pages_and_every_picture_is_shown() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    assert [page for page in re.findall(r": (\S+\.md)$", site, re.MULTILINE) if not (DOCS / page).exists()] == []
    words = site + "".join(page.read_text() for page in (*DOCS.rglob("*.md"), ROOT / "README.md"))
    assert [path.name for path in (DOCS / "pictures").iterdir() if path.name not in words] == []


def test_links_between_pages_lead_somewhere() -> None:
    def broken() -> Iterator[str]:
        for page in DOCS.rglob("*.md"):
            for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
                if "://" not in target and not (page.parent / target).exists():
                    yield f"{page.relative_to(DOCS)}: {target}"

    assert list(broken()) == []
