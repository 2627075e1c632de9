"""Runs a dlt source and writes Singer's lines. It is a program of its own, for any interpreter that has dlt.

    python dlt_runner.py SPEC.json

Whatever the source prints goes to the error output. The state follows at the end of a run and not before: a source
need not yield in the order of its cursor, so a state in the middle could skip rows.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any


def main(place: str) -> None:
    with open(place) as file:
        spec = json.load(file)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[0] = spec["path"] or os.getcwd()  # not this folder: its modules are not the source's

    from dlt.common.configuration.container import Container
    from dlt.common.configuration.specs.config_section_context import ConfigSectionContext
    from dlt.common.pipeline import StateInjectableContext
    from dlt.extract.pipe_iterator import PipeIterator

    encode = json.JSONEncoder(default=shown).encode

    def write(**message: Any) -> None:
        out.write(encode(message) + "\n")

    state: Any = spec["state"] or {}
    with Container().injectable_context(StateInjectableContext(state=state)):
        made = found(spec["source"])(**spec["arguments"])
        resources = chosen(made, spec["resources"])
        for name, one in resources.items():
            columns = one.compute_table_schema().get("columns", {}) if not callable(one._hints) else {}
            keys = [column for column, hints in columns.items() if hints.get("primary_key")]
            write(type="SCHEMA", stream=name, schema={}, key_properties=keys)
        section = ConfigSectionContext(sections=("sources", made.section, made.name), source_state_key=made.name)
        with Container().injectable_context(section):
            pipes = [one._pipe for one in resources.values()]
            with PipeIterator.from_pipes(pipes, yield_parents=True) as items:
                for item in items:
                    if item.pipe.name in resources:
                        start = f'{{"type": "RECORD", "stream": {encode(item.pipe.name)}, "record": '
                        out.writelines([f"{start}{encode(row)}}}\n" for row in rows(item.item)])
    write(type="STATE", value=state)
    out.flush()


def found(name: str) -> Any:
    """Import what is named: package.module.function."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def chosen(made: Any, names: list[str]) -> dict[str, Any]:
    """Return the resources to read, by name."""
    resources = dict(made.selected_resources) if hasattr(made, "selected_resources") else {made.name: made}
    unknown = [name for name in names if name not in resources]
    if unknown:
        sys.exit(f"The source has no resource {unknown[0]}; it has {', '.join(resources)}.")
    return {name: one for name, one in resources.items() if not names or name in names}


def rows(item: Any) -> list[Any]:
    """Return the rows of what a resource yields: a dict, a list, a table of Arrow or pandas."""
    if hasattr(item, "to_pylist"):
        return item.to_pylist()
    if hasattr(item, "to_dict") and not isinstance(item, dict):
        return item.to_dict("records")
    return item if isinstance(item, list) else [item]


def shown(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


if __name__ == "__main__":
    main(sys.argv[1])
