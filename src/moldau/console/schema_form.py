"""A form with an input for each field of a schema; every change reports the whole document."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from nicegui import ui

from moldau.console.model.form import Entry, Kind, Path, document, entries, firsts
from moldau.console.model.problems import Refused
from moldau.serdes.registry import Schema


def schema_form(schema: Schema, written: Callable[[str, str], None]) -> None:
    """Make the form. `written` is called with the document as JSON, and with an error, empty if there is none."""
    form = entries(schema)
    given = firsts(form)

    def tell() -> None:
        try:
            written(json.dumps(document(form, given), indent=2, ensure_ascii=False), "")
        except Refused as error:
            written("", str(error))

    def change(path: Path, value: Any) -> None:
        given[path] = None if value is None else str(value)
        tell()

    with ui.element("div").classes("w-full grid grid-cols-1 sm:grid-cols-2 gap-2"):
        for entry in form:
            _box(entry, change)
    tell()


def _box(entry: Entry, change: Callable[[Path, Any], None]) -> None:
    """Make the input of an entry. Labels come from a schema, and are shown as text."""
    label = f"{entry.label}{'' if entry.optional else ' *'}"
    match entry.kind:
        case Kind.FLAG | Kind.CHOICE:
            options = list(entry.choices) or ["true", "false"]
            value = entry.first if entry.first in options else None
            box: Any = ui.select(options, value=value, label=label, clearable=entry.optional)
        case Kind.JSON:
            box = ui.textarea(f"{label} (JSON)", value=entry.first).props("autogrow")
        case _:
            box = ui.input(label, value=entry.first)
    box.classes("w-full mono")
    box.on_value_change(lambda event: change(entry.path, event.value))
