"""Loads a file that makes a StreamsBuilder: for commands, and as a process that makes applications of files.

`python -m moldau.flows.loading` reads requests from stdin (`loader.py`), a line of JSON each, and forks two processes
for each: one loads the file and writes the application, the other waits for it, ends it when its time is over, and
writes what became of it. Functions and classes of the file, and of modules beside it, are written whole instead of by
name, so that whoever reads them needs none of these files.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import select
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moldau.flows.definition import FlowError

if TYPE_CHECKING:
    from moldau.streams import StreamsBuilder

MODULE = "moldau.streams.application_file"  # the name of a file while it is loaded
MEMORY = 8 << 30  # of addresses; libraries map much that they do not use
OUTPUT = 64 << 20  # bytes of a file, also of what is printed
IDLE_S = 120.0  # after which the process ends
LOOK_S = 0.01  # between two looks for the end of a child
NEEDED = ("moldau.streams.application", "moldau.flows.code", "pyspark.cloudpickle")  # to make an application


def builder_of(file: str) -> StreamsBuilder:
    """Return the builder that a file creates; while the file is read, its run() does nothing."""
    from moldau.streams import StreamsBuilder
    from moldau.streams.builder import looking

    if not os.path.exists(file):
        raise FlowError(f"There is no file {file}.")
    sys.path.insert(0, str(Path(file).resolve().parent))
    try:
        with looking():
            names = runpy.run_path(file, run_name=MODULE)
    finally:
        sys.path.pop(0)
    builders = [value for value in names.values() if isinstance(value, StreamsBuilder)]
    if len(builders) != 1:
        raise FlowError(f"{file} creates {len(builders)} builders with names of their own; exactly one is needed.")
    return builders[0]


def serve() -> None:
    """Answer requests until stdin ends, or until none came for a while."""
    for name in NEEDED:
        import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    left = b""
    while select.select([sys.stdin], [], [], IDLE_S)[0] and (read := os.read(sys.stdin.fileno(), 1 << 16)):
        *lines, left = (left + read).split(b"\n")
        for line in lines:
            if not os.fork():
                guard(json.loads(line))
                os._exit(0)


def guard(request: Mapping[str, Any]) -> None:
    """Let a child load a file, and write its exit code, or that it took too long."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if not child:
        child_of(request)
    until, code = time.monotonic() + request["longest_s"], None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            break
        time.sleep(LOOK_S)
    out = Path(request["status"])
    out.with_suffix(".new").write_text(json.dumps(code))
    out.with_suffix(".new").rename(out)


def child_of(request: Mapping[str, Any]) -> None:
    """Load a file, as the program of a process. Threads that the file has started do not hold it up."""
    nothing, said = os.open(os.devnull, os.O_RDWR), os.open(request["said"], os.O_WRONLY | os.O_CREAT)
    for target, file in enumerate((nothing, nothing, said)):
        os.dup2(file, target)
    code = 1
    try:
        make(request["file"], request["out"], request["settings"])
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    finally:
        if (error := sys.exception()) is not None:
            traceback.print_exception(error)
        sys.stderr.flush()
        os._exit(code & 0xFF)


def make(file: str, out: str, settings: Mapping[str, str]) -> None:
    """Write the application that a file makes; exits with a sentence for what users can mend."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    from moldau.flows import packages
    from moldau.flows.code import modules_beside
    from moldau.operators.context import TopologyError
    from moldau.plan.conveyor.start import instantiated
    from moldau.streams.application import application

    import_pickler: Any = __import__("pyspark.cloudpickle", fromlist=["cloudpickle"])
    before = set(sys.modules)
    try:
        folder = packages.beside(Path(file))
        if folder is not None:
            sys.path.insert(0, str(folder))
        made = application(builder_of(file).build(), settings)
        if folder is not None:
            made = instantiated(made, str(folder))
    except (FlowError, TopologyError) as error:
        sys.exit(f"{error}")
    found = modules_beside(Path(file), sys.modules.keys() - before)
    own = {str(path) for path in found if folder is None or folder.resolve() not in path.parents}
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", None)) in own:
            import_pickler.register_pickle_by_value(module)
    data: bytes = import_pickler.dumps(made) if folder is None else packages.sealing(made, folder)
    Path(f"{out}.tmp").write_bytes(data)
    os.replace(f"{out}.tmp", out)


if __name__ == "__main__":
    serve()
