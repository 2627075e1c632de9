"""Puts Java plugins into a folder of `plugin.path`, from Maven, an archive or a jar; lists and removes them."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path

from moldau.connect.errors import ConnectError
from moldau.connect.jvm import libs
from moldau.connect.jvm.catalogue import Entry, locations, scanned
from moldau.connect.jvm.host import Host

ARTIFACT = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+")
SUFFIXES = (".tar.gz", ".tgz", ".zip", ".jar")
CONNECTS_OWN = re.compile(r"(connect-(api|json|transforms|runtime)|kafka-clients|slf4j-(api|simple))-[\d.]+\.jar")


def install(what: str, folder: Path, host: Host) -> list[Entry]:
    """Install what a user names; return the classes of the plugin. ConnectError where it cannot be."""
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
            _fetch(what, made)
        else:
            _unpack(file, made)
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


def _fetch(artifact: str, into: Path) -> None:
    """Fetch the archive of a plugin, as Debezium publishes it, or else its jar with all that it needs."""
    group, name, version = artifact.split(":")
    with tempfile.TemporaryDirectory() as scratch:
        try:
            libs.run_maven("dependency:copy", f"-Dartifact={artifact}:tar.gz:plugin", f"-DoutputDirectory={scratch}")
        except libs.Unavailable:
            libs.fetch(((group, name, version),), into)
        else:
            _unpack(next(Path(scratch).iterdir()), into)
    for one in into.rglob("*.jar"):
        if CONNECTS_OWN.fullmatch(one.name):
            one.unlink()  # the host has them


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
