"""Code is packed and unpacked within bounds, and loaded where it can do no harm."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Client
from moldau.flows import code, streams_kind
from moldau.flows.code import Kept
from moldau.flows.definition import FlowError
from moldau.flows.loader import Loader
from moldau.flows.streams_kind import loaded
from moldau.testing import broker

APP = """
from moldau.streams import StreamsBuilder, String
from words import split

builder = StreamsBuilder("counts", {"default.key.serde": String(), "default.value.serde": String()})
builder.stream("lines").flat_map_values(split).to("words")
builder.run()
"""
SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "application.id": "counts", "state.dir": "x"}


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "app.py"


def test_a_zip_of_the_same_files_is_the_same_and_comes_back_whole(tmp_path: Path) -> None:
    app = written(tmp_path, app=APP, words="x = 1\n")
    first = code.pack(app, [tmp_path / "words.py"])
    app.touch()
    assert code.pack(app, [tmp_path / "words.py"]) == first
    code.unpack(first, tmp_path / "out")
    code.unpack(first, tmp_path / "out")  # somebody else was quicker
    assert (tmp_path / "out" / "app.py").read_text() == APP
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.py", "out", "words.py"]


def zipped(*names: str, size: int = 1) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, b"\0" * size)
    return out.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense",
        zipped("../out.py"),
        zipped("/etc/out.py"),
        zipped("a/../../out.py"),
        zipped("large.py", size=code.MOST_UNPACKED + 1),
        zipped(*(f"{number}.py" for number in range(code.MOST_FILES + 1))),
    ],
)
def test_a_zip_that_would_do_harm_is_refused(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(FlowError):
        code.unpack(data, tmp_path / "code" / "v")
    assert not list((tmp_path / "code").iterdir())


def test_too_much_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "MOST_BYTES", 100)
    with pytest.raises(FlowError, match="100 are allowed"):
        code.pack(written(tmp_path, app=APP))


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with broker() as started, Client({"bootstrap.servers": started.bootstrap_servers}) as made:
        yield made


def test_code_is_kept_in_pieces(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "PIECE", 50)
    data = code.pack(written(tmp_path, app=APP))
    assert code.get(client, Kept("nobody", 10)) is None
    kept = code.put(client, data)
    assert code.get(client, kept) == code.get(client, kept._replace(at=0)) == data
    code.forget(client, kept)
    later = code.put(client, data)
    assert later.at > kept.at and code.get(client, kept) == data  # it is found from where it was before, too
    code.forget(client, later)
    assert code.get(client, Kept(*kept[:2], at=later.at + 3)) is None


def test_only_what_comes_after_the_first_piece_is_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (code.put(client, bytes([number]) * 900_000) for number in (1, 2))
    read = list[int]()

    class Counting(code.Reader[Any]):
        def read(self, *words: Any, **more: Any) -> dict[int, int]:
            read.append(self.states[0].position)
            return super().read(*words, **more)

    monkeypatch.setattr(code, "Reader", Counting)
    assert len(code.get(client, second) or b"") == 900_000
    assert min(read) == second.at > first.at


def test_code_of_a_topic_that_was_made_again_is_looked_for_from_its_start(client: Client) -> None:
    assert code.get(client, Kept("gone", 10, 1_000_000)) is None


@pytest.mark.parametrize("deployed_meanwhile", [False, True])
def test_code_that_nobody_refers_to_goes_unless_it_is_deployed_at_that_moment(
    client: Client, deployed_meanwhile: bool
) -> None:
    data = b"code" + bytes([deployed_meanwhile])
    kept, used = code.put(client, data), code.put(client, b"used")
    looks = iter([{used.version}, {used.version}, {used.version, kept.version} if deployed_meanwhile else set[str]()])
    code.forget_unused(client, [used, kept], lambda: next(looks))
    assert code.get(client, used) == b"used"
    assert code.get(client, kept) == (data if deployed_meanwhile else None)


def test_functions_of_modules_beside_the_file_come_along(tmp_path: Path) -> None:
    """Whoever gets the application has none of the files."""
    app = written(
        tmp_path, app=APP, words="import re\nSPACE = re.compile(' ')\ndef split(line):\n    return SPACE.split(line)\n"
    )
    made = loaded(app, SETTINGS)
    assert made.id == "counts" and "words" not in sys.modules
    [node] = [node for node in made.plan.nodes if "FLATMAP" in node.name]
    assert node.name.startswith("KSTREAM-FLATMAPVALUES")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("import no_such_module", "no_such_module"),
        ("raise SystemExit(7)", "code 7"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("x = 1", "creates 0 builders"),
        ("x = bytearray(20 << 30)", "MemoryError"),
        ("import sys; sys.stderr.write('x' * (100 << 20))", "xxx"),
        ("import time; time.sleep(600)", "not loaded within"),
        (f"{APP.replace('from words import split', 'split = str.split')}\nbuilder.stream('lines', value=3)", "lines"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told(
    text: str, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in text:
        monkeypatch.setattr(streams_kind, "LOADING_S", 1.0)
    with pytest.raises(FlowError, match=match):
        loaded(written(tmp_path, app=text), SETTINGS)


def test_threads_that_a_file_starts_and_all_that_it_prints_do_not_hold_it_up(tmp_path: Path) -> None:
    started = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint('x' * 10**9)\n"
    text = started + APP.replace("from words import split", "split = str.split")
    assert loaded(written(tmp_path, app=text), SETTINGS).id == "counts"


def test_files_are_loaded_by_forks_of_one_process_that_is_started_again_when_it_has_ended(tmp_path: Path) -> None:
    app, loader = written(tmp_path, app=APP.replace("from words import split", "split = str.split")), Loader()

    def load(name: str) -> int | None:
        return loader.load(app, tmp_path / name, tmp_path / f"{name}.said", SETTINGS, 60.0)

    assert load("one") == 0
    first = loader.process
    assert first is not None and load("two") == 0 and loader.process is first
    first.kill()
    assert load("three") == 0 and loader.process is not first
    assert loader.process is not None and loader.process.stdin is not None
    loader.process.stdin.close()
    assert loader.process.wait(60) == 0, "it ends with whoever has started it"
