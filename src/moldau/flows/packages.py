"""Packages that a flow brings along: installed where it is deployed, shipped in its zip, and loaded for it alone.

They lie in the folder `packages` of the zip. Only processes of the flow's own import them: the child that loads its
file, and the Python workers of its lane, which has an environment and so Python workers of its own. The worker itself
never does. Whatever is of a package, or made by one, is sealed for it: bytes that only the flow's Python workers open.
So two flows may bring different versions of a package.

What Moldau itself needs (pandas, pyarrow, ...) is the worker's, also for such a flow, since its code runs between
Moldau's; requirements that want another version of these are refused when the flow is deployed.
"""

from __future__ import annotations

import importlib.util
import io
import json
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import BuiltinMethodType, MethodType, ModuleType
from typing import Any

from moldau.flows.definition import FlowError

FOLDER = "packages"  # in a zip
MADE_FOR = ".made-for.json"  # in the folder: what compiled packages fit
COMPILED = (".so", ".pyd", ".dylib")
LEFT_OUT = ("__pycache__", "bin", "share")  # of what an installer writes
INSTALL_S = 900.0
LONGEST_OUTPUT = 3000
OWN, EXTRA = "moldau", "spark"
NAME = re.compile(r"[A-Za-z0-9._-]+")


# Where a flow is deployed.


def install(requirements: Path, folder: Path) -> None:
    """Install what a file of requirements names into a folder; FlowError with what the installer says."""
    if not requirements.is_file():
        raise FlowError(f"There is no file {requirements}.")
    folder.mkdir(parents=True, exist_ok=True)
    ours, pins = pinned(), folder.with_name(f"{folder.name}.pins")
    pins.write_text("".join(f"{name}=={version}\n" for name, version in ours.items()))
    command = [*installer(), "--quiet", "--target", str(folder), "--requirement", str(requirements.resolve())]
    try:
        done = subprocess.run(
            [*command, "--constraint", str(pins)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
            cwd=requirements.resolve().parent,
        )
    except subprocess.TimeoutExpired:
        raise FlowError(f"The packages of {requirements} were not installed within {INSTALL_S:.0f} s.") from None
    finally:
        pins.unlink(missing_ok=True)
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".replace(str(pins), "what Moldau needs").strip()
        raise FlowError(f"The packages of {requirements} cannot be installed:\n{said[-LONGEST_OUTPUT:]}")
    remove(folder, ours)
    tidy(folder)
    (folder / MADE_FOR).write_text(json.dumps(here()))


def installer() -> list[str]:
    """Return the command that installs packages: pip of this Python, otherwise uv."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
    if (uv := shutil.which("uv")) is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    raise FlowError("Neither pip nor uv is installed here, so --requirements cannot install anything: install pip.")


def pinned() -> dict[str, str]:
    """Return the packages that Moldau needs on a worker, with their versions here."""
    found: dict[str, str] = {}
    waiting = [(OWN, EXTRA)]
    while waiting:
        name, extra = waiting.pop()
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform, or an extra that is not installed
        if normal(name) in found:
            continue
        found[normal(name)] = one.version
        for text in one.requires or ():
            wanted, _, condition = text.partition(";")
            if "extra" not in condition or (extra and f'"{extra}"' in condition.replace("'", '"')):
                match = NAME.match(wanted)
                waiting += [] if match is None else [(match[0], "")]
    found.pop(OWN, None)
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def remove(folder: Path, names: Iterable[str]) -> None:
    """Remove packages of these names from a folder: workers have them."""
    wanted = set(names) | {OWN}
    for one in list(metadata.distributions(path=[str(folder)])):
        if normal(str(one.metadata["Name"])) in wanted:
            for file in one.files or ():
                Path(str(one.locate_file(file))).unlink(missing_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def tidy(folder: Path) -> None:
    for path in [path for path in folder.rglob("*") if path.is_dir() and path.name == LEFT_OUT[0]]:
        shutil.rmtree(path)
    for name in LEFT_OUT[1:]:
        shutil.rmtree(folder / name, ignore_errors=True)


def files_of(folder: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the files of a folder of packages, with their names in a zip."""
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.is_file():
            yield f"{FOLDER}/{path.relative_to(folder or path).as_posix()}", path


def are_in(data: bytes) -> bool:
    """Whether a zip has packages."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as made:
            return any(name.startswith(f"{FOLDER}/") for name in made.namelist())
    except zipfile.BadZipFile:
        return False


# Where a flow runs.


def here() -> dict[str, str]:
    return {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "platform": sysconfig.get_platform()}


def beside(file: Path) -> Path | None:
    """Return the folder of packages that came with a file; FlowError if they do not fit this machine."""
    folder = file.parent / FOLDER
    if not folder.is_dir():
        return None
    made_for = folder / MADE_FOR
    wanted: Mapping[str, str] = json.loads(made_for.read_text()) if made_for.exists() else here()
    compiled = next((path for path in sorted(folder.rglob("*")) if path.name.endswith(COMPILED)), None)
    if compiled is not None and wanted != here():
        raise FlowError(
            f"The packages of this flow are for Python {wanted['python']} on {wanted['platform']}, and this worker has "
            f"Python {here()['python']} on {here()['platform']}, which cannot load {compiled.name}: deploy it from a "
            "machine like the workers."
        )
    return folder


class Sealed:
    """Something of a package, as bytes. Pickled once more it is opened where it arrives."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.data,)

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("This is of a package that only the Python workers of its flow have.")


def sealing(data: Any, folder: Path) -> bytes:
    """Pickle something, and seal what is of packages in a folder."""
    import_pickler: Any = __import__("pyspark.cloudpickle", fromlist=["cloudpickle"])
    names = frozenset(name for name, module in list(sys.modules.items()) if is_of(module, folder))

    class Pickler(import_pickler.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if is_foreign(obj, names):
                return Sealed, (import_pickler.dumps(obj),)
            return super().reducer_override(obj)

    out = io.BytesIO()
    Pickler(out).dump(data)
    return out.getvalue()


def is_of(module: ModuleType | None, folder: Path) -> bool:
    """Whether a module lies in a folder; a package without a file of its own has only the places of its parts."""
    spec = getattr(module, "__spec__", None)
    places = [getattr(module, "__file__", None), *(getattr(spec, "submodule_search_locations", None) or ())]
    return any(isinstance(place, str) and folder in Path(place).parents for place in places)


def is_foreign(obj: Any, names: frozenset[str]) -> bool:
    """Whether something cannot be made without modules of these names."""
    if isinstance(obj, ModuleType):
        return obj.__name__ in names
    if isinstance(obj, (MethodType, BuiltinMethodType)):
        owner: Any = obj.__self__
        return owner is not None and is_foreign(owner, names)
    kind = obj if isinstance(obj, type) else type(obj)
    owners = [str(getattr(base, "__module__", "")) for base in kind.__mro__]
    if not isinstance(obj, type):
        owners.append(str(getattr(obj, "__module__", "")))
    return any(owner in names for owner in owners)
