"""What all pages share: the frame with navigation and search, and the parts of which pages are built.

A part of a page is loaded by itself: it shows a spinner, then its content or a sentence that says what went wrong and
what to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from moldau.admin import topics
from moldau.console import paths
from moldau.console.model.problems import EXPECTED, Problem
from moldau.console.page_context import Desk

T = TypeVar("T")
COLOURS = {"primary": "#0b6e8f", "secondary": "#5b6b7a", "accent": "#b5651d", "positive": "#2f855a"}
COLOURS |= {"negative": "#c53030", "warning": "#b7791f", "info": "#2b6cb0", "dark": "#1b232b", "dark_page": "#11171d"}
NARROW = 1024  # pixels; below, the navigation hides behind a button
SUGGESTIONS = 8
SEEN_S, LOOK_EVERY_S = 10.0, 0.1  # how long, and how often, a change is looked for
SHARE = 4  # what takes a second to load is loaded again after four
WIDE = "max-sm:hidden"
CSS = (Path(__file__).parent / "frame.css").read_text()

ui.button.default_props("no-caps")
for _box in (ui.input, ui.number, ui.select, ui.textarea):
    _box.default_props("dense outlined")


class Page(NamedTuple):
    """A page: its path, its title, and the function that makes it. A page without an icon is not in the navigation."""

    path: str
    title: str
    icon: str | None
    show: Callable[[Desk], None]


@contextmanager
def around(desk: Desk, page: Page, known: Sequence[Page]) -> Iterator[None]:
    """Make the frame of a page; the body of the `with` makes the page."""
    ui.add_css(CSS)
    ui.colors(**COLOURS)
    mode = ui.dark_mode(desk.dark)
    with ui.left_drawer(value=None).props(f"width=216 breakpoint={NARROW}").classes("q-pa-none q-pt-md") as drawer:
        _navigation(page, known)
    with ui.header().classes("items-center no-wrap q-px-md q-py-sm gap-2"):
        menu = ui.button(icon="menu", on_click=drawer.toggle).props("flat round color=primary aria-label=Navigation")
        menu.classes("lg:hidden")
        home = (
            ui.link(target="/").classes("plain row items-center no-wrap gap-2").props('aria-label="Moldau, overview"')
        )
        with home:
            ui.image("/favicon.ico").classes("w-7 h-7").props("no-spinner no-transition")
            ui.label("Moldau").classes("text-lg font-semibold max-sm:hidden")
        if not desk.may_act or desk.account:
            home.classes("gt-xs")  # a phone has no room for all of them
        ui.space()
        _search(desk)
        _switch(mode)
        _person(desk)
    with ui.column().classes("w-full max-w-[1500px] mx-auto gap-4 p-1 sm:p-3").props("role=main"):
        yield


def _navigation(here: Page, known: Sequence[Page]) -> None:
    with ui.element("nav").props('aria-label="Pages"').classes("w-full q-px-sm"):
        for page in known:
            if not page.icon:
                continue
            is_here = page is here or (here.path.startswith(page.path) and page.path != "/")
            with ui.link(target=page.path).classes("plain").props('aria-current="page"' if is_here else ""):  # noqa: SIM117
                with ui.item().classes("nav-link items-center" + (" here" if is_here else "")).props("dense"):
                    ui.icon(page.icon, size="20px").classes("q-mr-md")
                    ui.label(page.title)


def _search(desk: Desk) -> None:
    """Find topics by a part of their name: suggest the first few while typing, list all of them on Enter."""

    async def suggest() -> None:
        text = (box.value or "").strip().lower()
        with menu:
            menu.clear()
            try:
                known = await desk.ask(topics.listed, desk.client) if text else []
            except EXPECTED:
                return
            names = [topic.name for topic in known if text in topic.name.lower()][:SUGGESTIONS]
            for name in names:
                ui.menu_item(name, partial(ui.navigate.to, paths.topic(name)))
        menu.set_value(bool(names))

    def look() -> None:
        ui.navigate.to(f"/topics?search={quote((box.value or '').strip())}")

    box = ui.input(placeholder="Find a topic  ( / )").props('rounded debounce=200 aria-label="Find a topic"')
    box.classes("w-40 sm:w-64")
    with box.add_slot("prepend"):
        ui.icon("search", size="20px")
    with box:
        menu = ui.menu().props("no-focus no-parent-event fit no-refocus")
    box.on_value_change(suggest)
    box.on("keydown.enter", look)
    ui.keyboard(lambda event: _slash(event, box))


def _slash(event: Any, box: ui.input) -> None:
    if event.action.keydown and not event.action.repeat and event.key == "/":
        box.run_method("focus")


def _switch(mode: ui.dark_mode) -> None:
    """Switch between light and dark. A cookie remembers the choice; without one the browser decides."""
    script = (
        "() => { const on = !document.body.classList.contains('body--dark');"
        "document.cookie = 'moldau_dark=' + (on ? 1 : 0) + ';path=/;max-age=31536000;samesite=lax'; emit(on); }"
    )
    button = ui.button(icon="contrast").props('flat round color=primary aria-label="Light or dark"')
    button.on("click", lambda event: mode.set_value(bool(event.args)), js_handler=script)


def _person(desk: Desk) -> None:
    if not desk.may_act:
        ui.badge("read-only", color="warning").tooltip("Nothing can be changed here.")
    if desk.account is not None:
        with ui.button(icon="account_circle").props('flat round color=primary aria-label="You"'), ui.menu():
            ui.menu_item(desk.account.name).props("disable")
            ui.menu_item("Log out", lambda: ui.run_javascript(LOG_OUT))


LOG_OUT = "fetch('/logout', {method: 'POST', redirect: 'manual'}).then(() => location.assign('/login'))"


def heading(title: str, note: str = "") -> ui.row:
    """Make the heading of a page, and return the row at its right."""
    with ui.row().classes("w-full items-center gap-3"):
        ui.label(title).classes("text-2xl font-semibold wrap").props("role=heading aria-level=1")
        if note:
            ui.label(note).classes("quiet")
        ui.space()
        return ui.row().classes("items-center gap-2")


def link_button(title: str, icon: str, path: str, style: str = "outline") -> None:
    """Add a button that leads to another page."""
    ui.button(title, icon=icon, on_click=partial(ui.navigate.to, path)).props(style)


def lineage_button(name: str) -> None:
    """Add a button that leads to everything upstream and downstream of a name."""
    link_button("Lineage", "account_tree", paths.lineage(name))


def panel(title: str = "") -> ui.card:
    """Make a card with a title, for use in a `with`."""
    card = ui.card().classes("panel q-pa-md gap-2")
    if title:
        with card:
            ui.label(title).classes("text-base font-semibold").props("role=heading aria-level=2")
    return card


def subheading(title: str) -> None:
    """Make a heading within a panel."""
    ui.label(title).classes("font-semibold q-mt-sm").props("role=heading aria-level=2")


def facts(rows: Mapping[str, str]) -> None:
    """Show short texts side by side, each below its label."""
    with ui.row().classes("gap-6"):
        for label, text in rows.items():
            with ui.column().classes("gap-0"):
                ui.label(label).classes("quiet text-sm")
                ui.label(text).classes("font-semibold wrap")


def tabs(parts: Mapping[str, Callable[[], None]], first: str | None = None) -> None:
    """Show one of several parts at a time, `first` to begin with; a function makes each part."""
    with ui.tabs().props("no-caps dense align=left").classes("w-full") as bar:
        for title in parts:
            ui.tab(title)
    with ui.tab_panels(bar, value=first if first in parts else next(iter(parts))).classes("w-full bg-transparent"):
        for title, make in parts.items():
            with ui.tab_panel(title).classes("q-px-none"):
                make()


def table(
    *columns: str,
    key: str | None = None,
    numbers: Sequence[str] = (),
    if_wide: Sequence[str] = (),
    none: str = "There is nothing here yet.",
) -> ui.table:
    """Make a table without rows. `numbers` are right-aligned columns, `if_wide` those that a phone does not show, and
    `none` is shown while there are no rows.
    """
    cells = []
    for before, name in zip((None, *columns), columns, strict=False):
        apart = "apart" if before in numbers and name not in numbers else ""
        classes = " ".join(filter(None, (apart, WIDE if name in if_wide else "")))
        align = "right" if name in numbers else "left"
        cell = {"name": name, "label": name[:1].upper() + name[1:], "field": name, "align": align}
        cells.append({**cell, "classes": classes, "headerClasses": classes})
    made = ui.table(columns=cells, rows=[], row_key=key or columns[0])
    with made.add_slot("no-data"):
        ui.label(none).classes("quiet q-py-sm wrap")
    return made.props('flat dense hide-pagination :rows-per-page-options="[0]"').classes("w-full bg-transparent")


def search_table(*columns: str, paged: bool = True, **options: Any) -> ui.table:
    """Make a table with a search box above it, shown in pages unless told otherwise."""
    box = ui.input("Search").props("clearable debounce=150").classes("w-full")
    made = table(*columns, **options).props("wrap-cells")
    made.bind_filter_from(box, "value", lambda text: text or "")
    if paged:
        paged_by(made, 50)
    return made


def paged_by(of: ui.table, rows: int) -> None:
    """Show a table in pages."""
    of.props(remove="hide-pagination")
    of.props(f':rows-per-page-options="[{rows}, {4 * rows}]" rows-per-page-label="Rows"')
    of.pagination = {"rowsPerPage": rows}


def link_cell(of: ui.table, column: str, to: str = "link") -> None:
    """Make the cells of a column links. `to` is the field of a row that has the address."""
    of.add_slot(
        f"body-cell-{column}",
        f'<q-td :props="props"><a v-if="props.row.{to}" class="link" :href="props.row.{to}">{{{{ props.value }}}}</a>'
        "<span v-else>{{ props.value }}</span></q-td>",
    )


def badge_cell(of: ui.table, column: str) -> None:
    """Show the cells of a column as badges, in the colour that the field `<column>_colour` of a row has."""
    of.add_slot(
        f"body-cell-{column}",
        f'<q-td :props="props"><q-badge :color="props.row.{column}_colour">{{{{ props.value }}}}</q-badge></q-td>',
    )


def progress_cell(of: ui.table, column: str) -> None:
    """Show the cells of a column as bars; the field `share` of a row is from 0 to 1, the cell says it in words."""
    of.add_slot(
        f"body-cell-{column}",
        '<q-td :props="props"><div class="row items-center no-wrap" style="gap: 10px; min-width: 150px">'
        '<q-linear-progress :value="props.row.share" size="8px" rounded style="flex: 1 1 60px" />'
        '<span style="white-space: nowrap">{{ props.value }}</span></div></q-td>',
    )


def empty(sentence: str, remedy: str = "", icon: str = "inbox") -> None:
    """Say that there is nothing to show, and what to do about it."""
    with ui.column().classes("w-full items-center q-pa-lg gap-1 text-center"):
        ui.icon(icon, size="40px").classes("quiet")
        ui.label(sentence).classes("text-base")
        if remedy:
            prose(remedy, "quiet")


def prose(text: str, classes: str = "") -> None:
    """Show a sentence, with text between backticks as code."""
    with ui.element("div").classes(f"wrap {classes}"):
        for number, piece in enumerate(text.split("`")):
            Words("code" if number % 2 else "span", piece)


class Words(TextElement):
    """A piece of a sentence, never taken for HTML."""

    def __init__(self, tag: str, text: str) -> None:
        super().__init__(tag=tag, text=text)


def tell(problem: Problem) -> None:
    """Show a problem where the content would be."""
    with ui.row().classes("w-full items-start no-wrap gap-3 q-pa-sm").props("role=alert"):
        ui.icon("error_outline", color="negative", size="28px")
        with ui.column().classes("gap-1"):
            prose(problem.sentence)
            if problem.remedy:
                prose(problem.remedy, "quiet")


def loading() -> None:
    ui.spinner(size="28px").props('aria-label="Loading"')


async def fill(place: ui.element, desk: Desk, answer: Awaitable[T], show: Callable[[T], None]) -> bool:
    """Show an answer in its place, or the problem if there is none. Return whether there was an answer."""
    try:
        make, succeeded = partial(show, await answer), True
    except EXPECTED as error:
        make, succeeded = partial(tell, desk.problem(error)), False
    place.clear()
    with place:
        make()
    return succeeded


class Section(Generic[T]):
    """A part of a page that is loaded by itself: `load` runs in a thread, `show` displays its result.

    A failure is shown in its place, with a button to try again; other parts are not affected. `reload` loads it again.
    The first load begins while the page is still on its way to the browser. With `every_s` it is loaded again and
    again, more rarely if that takes long; and shown again, if it is to be `still`, only when something has changed: a
    button that is replaced while it is pressed does nothing, and a trace is read and copied at leisure. While a dialog
    is open, what is shown stays.
    """

    def __init__(
        self,
        desk: Desk,
        load: Callable[[], T],
        show: Callable[[T], None],
        every_s: float | None = None,
        *,
        still: bool = False,
    ) -> None:
        self._desk, self._load, self._show, self._still = desk, load, show, still
        self._shown: T | None = None
        self.place = ui.column().classes("w-full gap-2")
        with self.place:
            loading()
        first = asyncio.ensure_future(desk.ask(load))
        first.add_done_callback(_ignore_error)
        ui.timer(0, lambda: self._fill(first), once=True)
        if every_s is not None:
            self._timer, self._every_s = ui.timer(every_s, self._again, immediate=False), every_s

    async def reload(self) -> None:
        answer = asyncio.ensure_future(self._desk.ask(self._load))
        answer.add_done_callback(_ignore_error)
        await asyncio.wait([answer])
        while self._is_behind_a_dialog() and not self.place.is_deleted:
            await asyncio.sleep(LOOK_EVERY_S)
        await self._fill(answer)

    async def _again(self) -> None:
        began = time.monotonic()
        answer = asyncio.ensure_future(self._desk.ask(self._load))
        answer.add_done_callback(_ignore_error)
        await asyncio.wait([answer])
        if not (self._is_shown(answer) or self._is_behind_a_dialog()):
            await self._fill(answer)
        self._timer.interval = max(self._every_s, SHARE * (time.monotonic() - began))

    def _is_shown(self, answer: asyncio.Future[T]) -> bool:
        known = self._still and self._shown is not None and not answer.cancelled() and answer.exception() is None
        return known and answer.result() == self._shown

    def _is_behind_a_dialog(self) -> bool:
        """Return whether a dialog is open: NiceGUI keeps dialogs apart, but deletes them with what made them."""
        return any(isinstance(one, ui.dialog) and one.value for one in self.place.client.layout.default_slot.children)

    async def _fill(self, answer: Awaitable[T]) -> None:
        def show(found: T) -> None:
            self._shown = found
            self._show(found)

        self._shown = None
        if not await fill(self.place, self._desk, answer, show):
            with self.place:
                ui.button("Try again", icon="refresh", on_click=self.reload).props("flat")


def _ignore_error(answer: asyncio.Future[Any]) -> None:
    """Keep the error of an answer out of the log if the browser never came back for it."""
    if not answer.cancelled():
        answer.exception()


async def attempt(
    desk: Desk,
    done: str,
    function: Callable[..., Any],
    *arguments: Any,
    seen: Callable[[], bool] | None = None,
    then: str | None = None,
) -> bool:
    """Change something, and confirm it once it is `seen`, or show why it was refused. Return whether it was done.

    If it was, go to the page `then`. The browser is told, not the section that asked: that one may be loaded again
    meanwhile, and what asked is gone with it.
    """
    browser = ui.context.client
    try:
        await desk.act(function, *arguments)
        if seen is not None:
            await desk.ask(_await_seen, seen)
    except EXPECTED as error:
        problem = desk.problem(error)
        with browser:
            ui.notify(" ".join(filter(None, (problem.sentence, problem.remedy))), type="negative", multi_line=True)
        return False
    with browser:
        ui.notify(done, type="positive")
        if then is not None:
            ui.navigate.to(then)
    return True


def _await_seen(seen: Callable[[], bool]) -> None:
    """Wait until the brokers know of a change: they learn a moment later than the controller."""
    until = time.monotonic() + SEEN_S
    while not seen() and time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)


async def submit(of: ui.dialog, section: Section[Any], *change: Any, seen: Callable[[], bool] | None = None) -> None:
    """Make a change as `attempt` does; if it was done, close the dialog and reload the section."""
    if await attempt(*change, seen=seen):
        of.close()
        await section.reload()


@contextmanager
def dialog(title: str, width: str = "w-96") -> Iterator[ui.dialog]:
    """Make a dialog with a title; the body of the `with` makes the rest."""
    with ui.dialog() as made, ui.card().classes(f"q-pa-md gap-3 {width} max-w-full"):
        ui.label(title).classes("text-lg font-semibold wrap")
        yield made


def buttons(of: ui.dialog, cancel: str = "Cancel") -> ui.row:
    """Make the row of buttons at the end of a dialog; the first one closes it."""
    with ui.row().classes("w-full justify-end") as row:
        ui.button(cancel, on_click=of.close).props("flat")
    return row


def delete_button(
    desk: Desk,
    name: str,
    warning: str,
    back: str,
    *change: Any,
    seen: Callable[[], bool] | None = None,
    title: str = "Delete",
) -> None:
    """Add a button that deletes something by `change`, once its name was typed, and then goes `back`."""

    async def go() -> None:
        if box.value == name:
            made.close()
            await attempt(desk, f"{title.removesuffix('e')}ed {name}.", *change, seen=seen, then=back)

    with dialog(f"{title} {name}?") as made:
        ui.label(warning).classes("wrap")
        ui.label(f"Type {name} to confirm:").classes("wrap")
        box = ui.input().props('autofocus aria-label="Type the name"').classes("w-full")
        box.on("keydown.enter", go)
        with buttons(made):
            sure = ui.button(title, color="negative", on_click=go)
            sure.bind_enabled_from(box, "value", lambda text: text == name)
    ui.button(title, icon="delete", on_click=made.open).props("outline color=negative")
