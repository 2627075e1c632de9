"""Packages that a flow brings along are shipped with it, and nobody but the flow's own processes imports them."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import cloudpickle

from moldau.admin import topics
from moldau.client import Client
from moldau.flows import code, deploying, packages
from moldau.flows.definition import FlowError
from moldau.flows.lanes import STEPS, is_shared, lane_of
from moldau.flows.streams_kind import loaded
from moldau.operators.record import Raw
from moldau.plan.blobs import OUTSIDE, Blob, of_raw, rows
from moldau.plan.conveyor.start import scheduled
from moldau.plan.stateless_pass import Passing, passing_groups, wall_clock_interval
from moldau.testing import broker

BLOB = Blob("lines", 0, OUTSIDE, 0, next(of_raw([Raw("lines", 0, 0, b"k", b"Hey", 0)])))
VOICES = """
class Voice:
    def __init__(self, mark):
        self.mark = mark

    def shout(self, text):
        return text.upper() + self.mark


def whisper(text):
    return text.lower()


LOUD = Voice("!")
"""
APP = """
import voices
from moldau.streams import StreamsBuilder, String
from voices import LOUD, Voice


class Polite(Voice):
    def shout(self, text):
        return super().shout(text) + " please"


polite = Polite("!")
builder = StreamsBuilder("loud", {"default.key.serde": String(), "default.value.serde": String()})
lines = builder.stream("lines").map_values(voices.whisper).map_values(LOUD.shout)
lines.map_values(lambda text: polite.shout(text)).to("shouts")
"""


def wheel(folder: Path, name: str, version: str, **modules: str) -> Path:
    """Write a wheel of pure Python."""
    folder.mkdir(exist_ok=True)
    path, info = folder / f"{name}-{version}-py3-none-any.whl", f"{name}-{version}.dist-info"
    files = {f"{module}.py": text for module, text in modules.items()}
    files |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as made:
        for file, text in (*files.items(), (f"{info}/RECORD", record)):
            made.writestr(file, text)
    return path


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    with broker() as started:
        with Client({"bootstrap.servers": started.bootstrap_servers}) as client:
            topics.create(client, [topics.NewTopic(name, 1) for name in ("lines", "shouts")])
        yield {"bootstrap.servers": started.bootstrap_servers, "application.id": "loud", "state.dir": "x"}


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A file with its packages, as a worker has unpacked them."""
    folder = tmp_path / "code"
    (folder / packages.FOLDER).mkdir(parents=True)
    (folder / packages.FOLDER / "voices.py").write_text(VOICES)
    (folder / "app.py").write_text(APP)
    return folder / "app.py"


def test_what_is_installed_goes_along_without_what_workers_have(tmp_path: Path) -> None:
    ours = packages.pinned()
    assert {"pandas", "pyarrow", "pyspark", "py4j"} <= ours.keys() and "moldau" not in ours
    wheel(tmp_path / "wheels", "voices", "1.0", voices=VOICES)
    wheel(tmp_path / "wheels", "pyarrow", ours["pyarrow"], pyarrow="raise ImportError('this must not be used')")
    wheel(tmp_path / "old", "pyarrow", "0.1", pyarrow="")
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("--no-index\n--find-links wheels\nvoices>=1\npyarrow\n")
    packages.install(wanted, tmp_path / "made")
    found = {path.name for path in (tmp_path / "made").iterdir()}
    assert found == {"voices.py", "voices-1.0.dist-info", packages.MADE_FOR}
    (tmp_path / "app.py").write_text(APP)
    data = code.pack(tmp_path / "app.py", packages=tmp_path / "made")
    assert packages.are_in(data) and not packages.are_in(code.pack(tmp_path / "app.py"))
    code.unpack(data, tmp_path / "out")
    assert (tmp_path / "out" / packages.FOLDER / "voices.py").read_text() == VOICES
    wanted.write_text("--no-index\n--find-links old\npyarrow\n")
    with pytest.raises(FlowError, match=r"cannot be installed:[\s\S]*pyarrow"):
        packages.install(wanted, tmp_path / "refused")
    with pytest.raises(FlowError, match="There is no file"):
        packages.install(tmp_path / "nowhere.txt", tmp_path / "refused")


def test_only_processes_of_the_flow_import_its_packages(
    app: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = loaded(app, settings)
    assert "voices" not in sys.modules and made.packages == str(app.parent / packages.FOLDER)
    conveyed = scheduled(made, {"lines": 1, "shouts": 1})
    assert conveyed.known is not None and passing_groups(conveyed) == {0} and wall_clock_interval(conveyed) is None
    with pytest.raises(RuntimeError, match="only the Python workers of its flow"):
        list(Passing(conveyed, {}).through(BLOB))
    sent = cloudpickle.dumps(conveyed)
    assert "voices" not in sys.modules
    monkeypatch.syspath_prepend(app.parent / packages.FOLDER)
    try:
        (out,) = Passing(pickle.loads(sent), {}).through(BLOB)
    finally:
        sys.modules.pop("voices", None)
    assert [value for _, value, *_ in rows(out.data or b"")] == [b"HEY!! please"]


def test_a_flow_with_packages_has_a_lane_of_its_own(app: Path, settings: dict[str, str], tmp_path: Path) -> None:
    brought = app.parent / packages.FOLDER
    one = deploying.made_of(loaded(app, settings), app.name, code.pack(app, packages=brought))
    with Client({"bootstrap.servers": settings["bootstrap.servers"]}) as client:
        flow, _ = deploying.defined(one, {}, client, None)
        assert flow.what[STEPS] is None and not is_shared(lane_of(flow))
        plain, _ = deploying.defined(one._replace(alone=False), {}, client, None)
        assert plain.what[STEPS] == 0


def test_compiled_packages_for_another_python_are_refused(app: Path) -> None:
    folder = app.parent / packages.FOLDER
    (folder / packages.MADE_FOR).write_text(json.dumps({"python": "2.7", "platform": "vax"}))
    assert packages.beside(app) == folder, "pure Python runs everywhere"
    (folder / "fast.so").touch()
    with pytest.raises(FlowError, match=r"for Python 2.7 on vax.*cannot load fast.so"):
        packages.beside(app)
