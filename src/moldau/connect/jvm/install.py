"""Puts Java plugins into a folder of `plugin.path`, from Maven, an archive or a jar; lists and removes them."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from moldau.connect.errors import ConnectError
from moldau.connect.jvm import libs
from moldau.connect.jvm.catalogue import Entry, locations, scanned
from moldau.connect.jvm.host import Host

ARTIFACT = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
SUFFIXES = (".tar.gz", ".tgz", ".zip", ".jar")
CONNECTS_OWN = re.compile(r"(connect-(api|json|transforms|runtime)|kafka-clients|slf4j-(api|simple))-[\d.]+\.jar")


def install(what: str, folder: Path, host: Host, more: Sequence[str] = ()) -> list[Entry]:
    """Install what a user names, with more artifacts that it does not name itself; return the classes of the plugin.

    ConnectError where it cannot be.
    """
    for one in more:
        if ARTIFACT.fullmatch(one) is None:
            raise ConnectError(f"{one} is not GROUP:ARTIFACT:VERSION.")
    file = Path(what)
    is_artifact = not file.exists() and ARTIFACT.fullmatch(what) is not None
    if not is_artifact and not file.is_file():
        raise ConnectError(f"{what} is neither a file nor GROUP:ARTIFACT:VERSION.")
    name = "-".join(what.split(":")[1:]) if is_artifact else _stem(file.name)
    target = folder / name
    if target.exists():
        raise ConnectError(f"{name} is in {folder} already; remove it first.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as scratch:
        made = Path(scratch) / "plugin"
        if is_artifact:
            _fetch(what, more, made)
        else:
            _unpack(file, made)
            _add(more, made)
        made.rename(target)
    try:
        found = scanned(host, target.absolute())
        if not found:
            raise ConnectError(f"There is no plugin of Connect in {what}.")
    except BaseException:
        shutil.rmtree(target)
        raise
    return found


def _stem(name: str) -> str:
    suffix = next((one for one in SUFFIXES if name.endswith(one)), None)
    if suffix is None:
        raise ConnectError(f"{name} is none of {', '.join(SUFFIXES)}.")
    return name.removesuffix(suffix).removesuffix("-plugin")


def _fetch(artifact: str, more: Sequence[str], into: Path) -> None:
    """Fetch the archive of a plugin, as Debezium publishes it, or else its jar with all that it needs."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            libs.run_maven("dependency:copy", f"-Dartifact={artifact}:tar.gz:plugin", f"-DoutputDirectory={scratch}")
        except libs.Unavailable:
            _take([artifact, *more], into)
        else:
            _unpack(next(Path(scratch).iterdir()), into)
            _add(more, into)


def _add(more: Sequence[str], into: Path) -> None:
    if more:
        _take(more, into / "more")


def _take(artifacts: Sequence[str], into: Path) -> None:
    """Fetch artifacts with all that they need, in versions that fit each other, but for what the host has."""
    libs.fetch(tuple((group, name, version) for group, name, version in (one.split(":") for one in artifacts)), into)
    for one in into.glob("*.jar"):
        if CONNECTS_OWN.fullmatch(one.name):
            one.unlink()


def _unpack(file: Path, into: Path) -> None:
    into.mkdir(parents=True)
    try:
        if file.suffix == ".jar":
            shutil.copy(file, into)
        elif file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                archive.extractall(into)
        else:
            with tarfile.open(file) as archive:
                archive.extractall(into, filter="data")
    except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise ConnectError(f"{file} cannot be unpacked: {error}") from None


def installed(folder: Path, host: Host) -> list[Entry]:
    """Return the classes of all plugins in a folder."""
    return [one for place in locations(folder) for one in scanned(host, place)]


def remove(name: str, folder: Path) -> None:
    """Remove a plugin; workers that run have it until they end."""
    place = folder / name
    if Path(name).name != name or not place.exists():
        known = ", ".join(one.name for one in locations(folder)) if folder.is_dir() else ""
        raise ConnectError(f"There is no plugin {name} in {folder}." + (f" There are: {known}." if known else ""))
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
