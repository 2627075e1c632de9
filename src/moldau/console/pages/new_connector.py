"""The page New connector: a plugin, a form of its settings that the worker validates, and the config as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin.connector_wizard import validated
from moldau.console import frame, paths
from moldau.console.model import connector_form as form
from moldau.console.model import connectors as model
from moldau.console.model.connector_form import CLASS, FIRST, Field, Kind
from moldau.console.model.problems import EXPECTED, Problem
from moldau.console.page_context import READ_ONLY, Desk
from moldau.console.pages.connectors import ask

DEBOUNCE_MS = 400  # from the last key to the validation
GRID = "w-full grid grid-cols-1 md:grid-cols-2 gap-x-4 gap-y-2 items-start"
Change = Callable[[str, str], Any]


def show(desk: Desk) -> None:
    """Show the page."""
    with frame.heading("New connector"):
        frame.link_button("Connectors", "cable", "/connectors")
    with frame.panel():
        if desk.may_act:
            frame.Section(desk, lambda: ask(desk, "GET", "/connector-plugins"), partial(_show_form, desk))
        else:
            frame.tell(Problem(READ_ONLY))


def _show_form(desk: Desk, plugins: list[dict[str, str]]) -> None:
    New(desk, plugins)


class Box:
    """The input of a setting, with its errors and what it means below.

    Errors are beside the input, not in it: whatever changes in an input also sets its text, and keys that were pressed
    meanwhile would be lost.
    """

    def __init__(self, field: Field, change: Change, folded: ui.expansion | None) -> None:
        self._kind, self._folded = field.kind, folded
        label = f"{field.name}{' *' if field.is_required else ''}"
        with ui.column().classes("w-full gap-0") as self._whole:
            match field.kind:
                case Kind.CHOICE:
                    self._input: Any = ui.select([], label=label, with_input=True, new_value_mode="add-unique")
                    self._input.props("clearable")
                case Kind.SECRET:
                    self._input = ui.input(label, password=True, password_toggle_button=True)
                    self._input.props(f"autocomplete=new-password debounce={DEBOUNCE_MS}")
                case Kind.TEXT:
                    self._input = ui.input(label).props(f"autocomplete=off debounce={DEBOUNCE_MS}")
            self._input.classes("w-full mono")
            self._errors = error_label()
            ui.label(field.hint).classes("quiet text-xs wrap q-px-sm")
        self._input.on_value_change(lambda event: change(field.name, event.value or ""))

    def update(self, field: Field, value: str, *, is_strict: bool) -> None:
        """Show the value, and the errors: if it is strict, also that a value is missing."""
        if self._kind is Kind.CHOICE:
            options = list(dict.fromkeys((*field.choices, *([value] if value else ()))))
            if options != self._input.options or (self._input.value or "") != value:
                self._input.set_options(options, value=value or None)
        elif self._input.value != value:
            self._input.set_value(value)
        errors = field.problems if is_strict else field.question.errors
        set_error(self._errors, " ".join(errors))
        self._whole.classes(add="wrong") if errors else self._whole.classes(remove="wrong")
        if errors and self._folded is not None:
            self._folded.open()
        self.set_visible(field.is_visible)

    def set_visible(self, is_visible: bool) -> None:
        self._whole.set_visibility(is_visible)


def error_label() -> ui.label:
    made = ui.label().classes("text-negative text-xs wrap q-px-sm").props("role=alert")
    made.set_visibility(False)
    return made


def set_error(label: ui.label, text: str) -> None:
    label.set_text(text)
    label.set_visibility(bool(text))


class New:
    """The whole form. The config is what counts: inputs and JSON write it, and show it.

    Inputs stay the same ones while the worker's answers come, so that they keep the focus. An answer that comes after
    a further change is not shown.
    """

    def __init__(self, desk: Desk, plugins: list[dict[str, str]]) -> None:
        self._desk = desk
        self._config: dict[str, str] = {}
        self._definitions: list[Mapping[str, Any]] = []
        self._boxes: dict[str, Box] = {}
        self._groups: dict[str, tuple[ui.element, ui.expansion | None]] = {}
        self._turn, self._strict, self._written = 0, False, ""
        self._classes = [one["class"] for one in plugins]
        names = {one["class"]: form.title(one["class"], one["type"]) for one in plugins}
        self._plugin = ui.select(names, label="Plugin", with_input=True).classes("w-full")
        self._plugin.on_value_change(lambda event: self._choose(event.value))
        frame.tabs({"Form": self._make_form, "JSON": self._make_json})
        with ui.row().classes("w-full items-center gap-3"):
            self._state = ui.label().classes("wrap").props("role=status")
            ui.space()
            self._stopped = ui.checkbox("Do not start it yet")
            ui.button("Create", icon="add", on_click=self._create)
        if (first := form.plugin_of(desk.query.get("plugin", ""), self._classes)) is not None:
            self._plugin.set_value(first)

    def _make_form(self) -> None:
        self._place = ui.column().classes("w-full gap-3")
        with self._place:
            ui.label("Choose a plugin, or paste a config as JSON.").classes("quiet")

    def _make_json(self) -> None:
        self._json = ui.textarea().props(f'autogrow outlined aria-label="Config" debounce={DEBOUNCE_MS}')
        self._json.classes("w-full mono").on_value_change(lambda event: self._paste(event.value))
        self._json_error = error_label()
        self._write_json()

    async def _choose(self, plugin: str | None) -> None:
        if plugin is None or plugin == form.plugin_of(self._config.get(CLASS, ""), self._classes):
            return
        kept = {"name": self._config["name"]} if "name" in self._config else {}
        self._config = {**kept, CLASS: plugin}
        self._begin()
        self._write_json()
        await self._validate()

    async def _change(self, name: str, value: str) -> None:
        if self._config.get(name, "") == value:
            return
        if value:
            self._config[name] = value
        else:
            self._config.pop(name, None)
        self._write_json()
        await self._validate()

    async def _paste(self, text: str | None) -> None:
        if text == self._written:
            return
        self._written = text or ""
        try:
            config = form.pasted(self._written, self._config, self._secrets())
        except EXPECTED as error:
            set_error(self._json_error, str(error))
            return
        set_error(self._json_error, "")
        is_other = config.get(CLASS) != self._config.get(CLASS)
        self._config = config
        if is_other:
            self._begin()
            self._plugin.set_value(form.plugin_of(config.get(CLASS, ""), self._classes))
        await self._validate()

    def _begin(self) -> None:
        """Begin a form for another plugin."""
        self._strict = False
        self._definitions = []
        self._boxes.clear()
        self._groups.clear()
        self._place.clear()

    def _write_json(self) -> None:
        self._written = json.dumps(model.shown(self._config, self._secrets()), indent=2, ensure_ascii=False)
        self._json.set_value(self._written)
        set_error(self._json_error, "")

    def _secrets(self) -> set[str]:
        return model.secrets_of(self._config, self._definitions)

    async def _validate(self) -> str | None:
        """Let the worker validate the config, and show what it says. Return what is wrong, None if nothing is known."""
        self._turn += 1
        turn = self._turn
        if CLASS not in self._config:
            self._state.set_text(f"Missing: {CLASS}.")
            return None
        try:
            found = await self._desk.act(validated, partial(ask, self._desk), dict(self._config))
        except EXPECTED as error:
            if turn == self._turn:
                self._state.set_text(self._refusal(error))
            return None
        if turn != self._turn:
            return None
        self._definitions = [row["definition"] for row in found["configs"]]
        return self._fill(form.fields(found, self._config))

    def _refusal(self, error: Exception) -> str:
        name = self._config[CLASS]
        if form.plugin_of(name, self._classes) is None:  # the worker lists all that it has, in Java's words
            return f"The worker has no plugin {name}."
        return self._desk.problem(error).sentence

    def _fill(self, fields: list[Field]) -> str:
        for field in fields:
            if field.name not in self._boxes:
                place, folded = self._group(field.group)
                with place:
                    self._boxes[field.name] = Box(field, self._change, folded)
            box = self._boxes[field.name]
            box.update(field, self._config.get(field.name, ""), is_strict=self._strict)
        for name in self._boxes.keys() - {field.name for field in fields}:
            self._boxes[name].set_visible(False)
        said = form.sentence(fields, self._config)
        self._state.set_text(said or "The config is valid.")
        return said

    def _group(self, title: str) -> tuple[ui.element, ui.expansion | None]:
        """Return the place of a group, and what folds it; the first group is always open."""
        if title not in self._groups:
            with self._place:
                folded = None if title == FIRST else ui.expansion(title).classes("w-full")
                with folded or self._place:
                    self._groups[title] = ui.element("div").classes(GRID), folded
        return self._groups[title]

    async def _create(self) -> None:
        self._strict = True
        wrong = await self._validate()
        if wrong is None or wrong:
            ui.notify(self._state.text, type="negative", multi_line=True)
            return
        name = self._config["name"]
        body = {"name": name, "config": self._config, **({"initial_state": "STOPPED"} if self._stopped.value else {})}
        change = (ask, self._desk, "POST", "/connectors", body)
        await frame.attempt(self._desk, f"Created {name}.", *change, then=paths.connector(name))
