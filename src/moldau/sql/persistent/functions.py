"""Functions in Python that a query on Spark calls: the files that declare them are kept with its plan.

A worker loads them as it loads the code of deployed applications, in a child process, which makes the topology. Only
the functions that the topology calls come out of it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from moldau.flows.streams_kind import loaded
from moldau.sql.functions.python_functions import install, load_file
from moldau.sql.lowering import build
from moldau.sql.plan_json import decoded, encoded
from moldau.sql.steps import QueryPlan

if TYPE_CHECKING:
    from moldau.plan.conveyor.start import Application
    from moldau.streams.builder import StreamsBuilder

APP = """from moldau.sql.persistent.functions import builder_of
builder = builder_of(__file__)
"""
PLAN, FILES = "plan.json", "functions"
NO_LOGIN: Mapping[str, Any] = MappingProxyType({})


def application_of(
    plan: QueryPlan, service_id: str, settings: dict[str, str], login: Mapping[str, Any] = NO_LOGIN
) -> Application:
    """Let a child process load the functions of a query and make its application; FlowError if that fails."""
    with tempfile.TemporaryDirectory(prefix="moldau-query-") as scratch:
        return loaded(written(plan, service_id, Path(scratch), login), settings)


def written(plan: QueryPlan, service_id: str, folder: Path, login: Mapping[str, Any] = NO_LOGIN) -> Path:
    """Write a query and its functions as an application, and return its file."""
    (folder / FILES).mkdir()
    for name, text in plan.run.functions:
        (folder / FILES / Path(name).name).write_text(text, "utf-8")
    (folder / PLAN).write_text(json.dumps({"service": service_id, "plan": encoded(plan), "login": dict(login)}))
    file = folder / "query.py"
    file.write_text(APP)
    return file


def builder_of(file: str) -> StreamsBuilder:
    """Return the topology of what `written` has written. The functions are added to the table of this process."""
    from moldau.sql.persistent.kind import registry_of

    folder = Path(file).parent
    document: Any = json.loads((folder / PLAN).read_text())
    plan: QueryPlan = decoded(document["plan"])
    install([row for path in sorted((folder / FILES).glob("*.py")) for row in load_file(path)])
    return build(plan, registry_of(plan, document["login"]), service_id=document["service"])
