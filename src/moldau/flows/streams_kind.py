"""Deployed streams applications: their code is a zip, and a child process makes an application of it.

Code of users is loaded in the child alone, which has a limit of time, memory and output, and ends. What it hands over
is the plan, with the functions themselves and not the names of their modules. So two versions and two applications do
not meet, whatever their modules are called, and code that hangs or exits when it is loaded harms nobody.
"""

from __future__ import annotations

import pickle
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.admin import groups, topics
from moldau.client import Client
from moldau.flows import catalog, code
from moldau.flows.definition import Definition, FlowError, versions, versions_of
from moldau.flows.kinds import Place, Query
from moldau.flows.lanes import of_the_application
from moldau.flows.loader import LOADER
from moldau.plan.home import local

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application

FILE = "file"  # in what is to run: the file of the zip that makes the builder
SIZE, AT = "size", "at"  # of the zip, and the offset of its first piece
LOADING_S = 60.0
LONGEST_OUTPUT = 4000
OWN = ("-changelog", "-repartition")  # suffixes of an application's internal topics


class StreamsKind:
    """Streams applications."""

    def prepare(self, flow: Definition, place: Place) -> Query:
        from moldau.plan.conveyor.start import Reported

        reported = Reported(self.load(flow, place))
        return Query(reported, reported.observe)

    def load(self, flow: Definition, place: Place) -> Application:
        folder = unpacked(flow, place)
        made = loaded(folder / str(flow.what[FILE]), settings_of(flow, place))
        return replace(made, moves=True, begin=flow.begin)

    def clear(self, flow: Definition, place: Place) -> None:
        forget_state(flow, place)
        unpacked = list(place.folder.iterdir()) if place.folder.exists() else []
        with place.client() as client:
            code.forget_unused(client, [kept_of(*one) for one in versions_of(flow)], lambda: used(client))
            still = used(client)
        for folder in unpacked:
            if folder.name not in still:
                shutil.rmtree(folder, ignore_errors=True)


KIND = StreamsKind()


def forget_state(flow: Definition, place: Place) -> None:
    """Delete the state, the internal topics and the offsets of a flow. The folder of a state that is not on this
    machine stays; nobody meets it, since it goes by the serial.
    """
    from moldau.spark.sink.markers import TOPIC as MARKERS

    with suppress(ValueError):
        shutil.rmtree(local(state_dir_of(flow, place)), ignore_errors=True)
    with place.client() as client:
        reset(client, flow.name, MARKERS, flow.topics)


def kept_of(version: str, what: Mapping[str, Any]) -> code.Kept:
    """Return where the code of a version is."""
    return code.Kept(version, int(what[SIZE]), int(what.get(AT, 0)))


def used(client: Client) -> Collection[str]:
    return versions(catalog.read(client))


def unpacked(flow: Definition, place: Place) -> Path:
    """Return the folder with the code of a flow."""
    folder = place.folder / flow.version
    if not folder.exists():
        with place.client() as client:
            data = code.get(client, kept_of(flow.version, flow.what))
        if data is None:
            raise FlowError(f"The code of {flow.name} is not in {code.TOPIC}: deploy it again.")
        code.unpack(data, folder)
    return folder


def settings_of(flow: Definition, place: Place) -> dict[str, str]:
    """Return the settings of an application: where it runs is the worker's matter."""
    own = {"application.id": flow.name, "state.dir": state_dir_of(flow, place)}
    return {**of_the_application(flow.settings), **place.settings, **own}


def state_dir_of(flow: Definition, place: Place) -> str:
    return f"{place.state_dir.rstrip('/')}/{flow.name}-{flow.serial}"


def loaded(file: Path, settings: dict[str, str]) -> Application:
    """Let a child process load a file and make an application of it; FlowError says what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="moldau-flow-") as scratch:
        out, said = Path(scratch, "application"), Path(scratch, "output")
        code = LOADER.load(file, out, said, settings, LOADING_S)
        if code is None:
            raise FlowError(f"{file.name} was not loaded within {LOADING_S:.0f} s.")
        if code or not out.exists():
            text = said.read_bytes()[-LONGEST_OUTPUT:].decode(errors="replace").strip()
            how = f"code {code}" if code >= 0 else f"signal {-code}"
            raise FlowError(f"{file.name} cannot be loaded ({how}).\n{text}".strip())
        application: Any = pickle.loads(out.read_bytes())
        return application


def reset(client: Client, application: str, markers_topic: str, own: Collection[str] = ()) -> list[str]:
    """Delete an application's internal topics, its offsets and its marks, but not its output; returns the topics.

    `own` are names of its internal topics. Where they are not known, they are told by their prefix, as Kafka does.
    """
    from moldau.spark.sink.marker_topic import Ledger, exists

    there = [topic.name for topic in topics.listed(client)]
    ids = [group.id for group in groups.listed(client)]
    found = [name for name in there if name in own] if own else internal_of(application, there, ids)
    if found:
        topics.delete(client, found)
    groups.delete(client, [application])
    if exists(client, markers_topic):
        ledger = Ledger(client, markers_topic, application)
        ledger.catch_up()
        ledger.forget()
    return found


def internal_of(application: str, topics: Iterable[str], groups: Iterable[str]) -> list[str]:
    """Return which topics are internal ones of an application by their names, without those of other applications whose
    ids begin as this one does.
    """
    others = tuple(f"{group}-" for group in groups if group.startswith(f"{application}-"))
    return [
        name
        for name in topics
        if name.startswith(f"{application}-") and name.endswith(OWN) and not name.startswith(others)
    ]
