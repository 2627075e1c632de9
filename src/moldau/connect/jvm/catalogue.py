"""Which Java plugins there are: what stands in the folders of `plugin.path`.

Each folder in a folder of `plugin.path`, and each jar, is a plugin with a class loader of its own, as in Connect. What
is in it is found by the host once; the answer is kept in the user's cache until the files change.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from moldau.connect.errors import ConnectError
from moldau.connect.jvm import libs
from moldau.connect.jvm.host import Host

log = logging.getLogger(__name__)
PATH, OPTIONS = "plugin.path", "moldau.plugin.java.options"
ARCHIVES = {".jar", ".zip"}
PROBLEM = "problem"
CONNECTS_OWN = "org.apache.kafka.connect."  # its converters and transforms are ours already, and quicker


class Entry(NamedTuple):
    """A class of a plugin. `kind` is source, sink, converter, header_converter, transformation or predicate."""

    class_name: str
    kind: str
    version: str
    location: str


class Catalogue:
    """The plugins of a worker, and the JVM that runs them."""

    def __init__(self, host: Host, entries: Iterable[Entry]) -> None:
        self.host, self.entries = host, tuple(entries)


_open: list[Catalogue] = []


def found(*kinds: str) -> Iterator[tuple[Entry, Host]]:
    """Yield the plugins of some kinds of the workers of this process."""
    for one in _open:
        for entry in one.entries:
            is_ours = entry.class_name.startswith(CONNECTS_OWN) and entry.kind not in ("source", "sink")
            if entry.kind in kinds and not is_ours:
                yield entry, one.host


@contextmanager
def use(given: Mapping[str, str]) -> Iterator[None]:
    """Offer the plugins of a worker's `plugin.path` for the length of a `with`."""
    paths = [Path(one.strip()) for one in given.get(PATH, "").split(",") if one.strip()]
    places = [place for path in paths for place in locations(path)]
    if not places:
        yield
        return
    host = Host(given.get(libs.LIBS, ""), given.get(OPTIONS, ""))
    made = Catalogue(host, _entries(host, places))
    _open.append(made)
    try:
        yield
    finally:
        _open.remove(made)
        host.close()


def locations(path: Path) -> list[Path]:
    """Return the plugins of a folder of `plugin.path`."""
    if path.is_file():
        return [path.absolute()]
    if not path.is_dir():
        log.warning("%s names %s, which is not there", PATH, path)
        return []
    if any(path.glob("*.class")):
        return [path.absolute()]
    return [one.absolute() for one in sorted(path.iterdir()) if one.suffix in ARCHIVES or _has_classes(one)]


def _has_classes(folder: Path) -> bool:
    return folder.is_dir() and any(one.suffix in (*ARCHIVES, ".class") for one in folder.rglob("*"))


def _entries(host: Host, places: Iterable[Path]) -> Iterator[Entry]:
    for place in places:
        try:
            yield from scanned(host, place)
        except ConnectError as error:  # the worker works without; whoever names the plugin is told
            log.error("the Java plugins in %s cannot be used: %s", place, error)


def scanned(host: Host, place: Path) -> list[Entry]:
    """Return what is in a plugin, from the cache or by the host."""
    kept = libs.cache() / "plugins" / f"{_digest(host.key(), place)}.json"
    if kept.exists():
        rows = json.loads(kept.read_text())
    else:
        rows = host.scan(str(place))
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{id(rows)}")
        fresh.write_text(json.dumps(rows))
        fresh.replace(kept)
    for name, kind, version in rows:
        if kind == PROBLEM:
            log.warning("the class %s of %s cannot be used: %s", name, place, version)
    return [Entry(name, kind, version, str(place)) for name, kind, version in rows if kind != PROBLEM]


def _digest(key: str, place: Path) -> str:
    files = [place] if place.is_file() else sorted(one for one in place.rglob("*") if one.is_file())
    rows = [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in files]
    return hashlib.sha256(json.dumps([key, str(place), rows]).encode()).hexdigest()[:32]
