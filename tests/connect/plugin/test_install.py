"""`moldau connect plugin`, as its page has it; what cannot be installed leaves nothing behind."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import pytest

from moldau.connect.errors import ConnectError
from moldau.connect.jvm import install, libs
from tests.connect.plugin.conftest import Java
from tests.needs import find
from tests.test_docs import BLOCKS, DOCS, Place, run

pytestmark = pytest.mark.needs("java", "sample-plugin")


@pytest.fixture
def sample_jar(tmp_path: Path) -> Path:
    return Path(shutil.make_archive(str(tmp_path / "sample"), "zip", f"{find('sample-plugin').path}/sample")).rename(
        tmp_path / "sample.jar"
    )


def test_the_blocks_of_the_page_run(sample_jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOLDAU_PLUGIN_LIBS", str(find("kafka-jars").path))
    place = Place("127.0.0.1:9", "http://127.0.0.1:9")
    for _, text in BLOCKS.findall((DOCS / "connect" / "java-plugins.md").read_text()):
        run(place, text, sample_jar.parent)
    assert not list((sample_jar.parent / "plugins").iterdir())


def test_what_is_no_plugin_is_refused_and_leaves_nothing(java: Java, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jar"
    with zipfile.ZipFile(empty, "w") as made:
        made.writestr("readme.txt", "nothing")
    folder = tmp_path / "plugins"
    with pytest.raises(ConnectError, match="There is no plugin of Connect"):
        install.install(str(empty), folder, java.host)
    (tmp_path / "broken.zip").write_text("not an archive")
    with pytest.raises(ConnectError, match="cannot be unpacked"):
        install.install(str(tmp_path / "broken.zip"), folder, java.host)
    with pytest.raises(ConnectError, match="neither a file nor"):
        install.install("nothing", folder, java.host)
    assert not list(folder.iterdir())


def test_a_plugin_is_installed_once_and_removed_by_its_name(java: Java, tmp_path: Path, sample_jar: Path) -> None:
    folder = tmp_path / "plugins"
    assert len(install.install(str(sample_jar), folder, java.host)) == 5
    with pytest.raises(ConnectError, match="already; remove it first"):
        install.install(str(sample_jar), folder, java.host)
    with pytest.raises(ConnectError, match=r"There is no plugin \.\./plugins in .* There are: sample"):
        install.remove("../plugins", folder)
    install.remove("sample", folder)
    assert not list(folder.iterdir())


def test_a_plugin_may_be_a_link(java: Java, tmp_path: Path, sample_jar: Path) -> None:
    """As deployments do it: the folder of a release, and a link to the one that runs."""
    real, folder = tmp_path / "releases" / "one", tmp_path / "plugins"
    real.mkdir(parents=True)
    folder.mkdir()
    (real / "sample.jar").symlink_to(sample_jar)
    (folder / "sample").symlink_to(real)
    assert len(install.installed(folder, java.host)) == 5


@pytest.mark.needs("mvn")
def test_what_a_plugin_does_not_name_comes_along(java: Java, tmp_path: Path, sample_jar: Path) -> None:
    folder = tmp_path / "plugins"
    with pytest.raises(ConnectError, match=r"slf4j is not GROUP:ARTIFACT:VERSION\."):
        install.install(str(sample_jar), folder, java.host, ["slf4j"])
    assert len(install.install(str(sample_jar), folder, java.host, ["org.apache.kafka:connect-api:4.3.1"])) == 5
    more = {path.name for path in (folder / "sample" / "more").iterdir()}
    assert any(name.startswith("snappy-java-") for name in more), "what it needs"
    assert not any(name.startswith(("connect-api-", "kafka-clients-")) for name in more), "the host has them"


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(libs.Unavailable, match="there is no connect-api"):
        libs.connect_jars(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(libs.Unavailable, match="there is no java on PATH"):
        libs.program("java")
    with pytest.raises(libs.Unavailable, match="there is no mvn on PATH"):
        libs.run_maven("x")
