"""What all pages have around them: navigation, search, the switch between light and dark.

And how a part of a page comes to be: a wheel that turns, then what was found, or a sentence that says what went wrong
and what to do.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
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
SEEN_S, LOOK_EVERY_S = 10.0, 0.1
WIDE = "max-sm:hidden"
CSS = """
body { font-variant-numeric: tabular-nums; }
.body--light { background: #f4f6f8; color: #16202b; --ink: #16202b; --soft: #55636f; --paper: #fff; }
.body--light .q-drawer { background: #ffffff; }
.body--dark { color: #e6ebf0; --ink: #e6ebf0; --soft: #a9b6c2; --paper: #1b232b; }
.body--dark .q-drawer, .body--dark .q-header { background: #1b232b !important; }
.body--light .q-header { background: #ffffff !important; color: #16202b; border-bottom: 1px solid #dde3e9; }
.body--dark .q-header { border-bottom: 1px solid #2c3742; }
.q-drawer { border-right: 1px solid rgba(128, 140, 152, .25); }
.nav-link { border-radius: 8px; margin: 2px 0; min-height: 40px; width: 100%; }
.nav-link.here { background: rgba(11, 110, 143, .13); font-weight: 600; }
.body--dark .nav-link.here { background: rgba(76, 183, 216, .18); }
.panel { border-radius: 10px; box-shadow: none; border: 1px solid rgba(128, 140, 152, .28); width: 100%; }
.body--light .panel { background: #fff; }
.mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .85rem; }
.quiet { opacity: .72; }
.figure { font-size: 1.6rem; font-weight: 600; line-height: 1.2; }
.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
a.plain { color: inherit; text-decoration: none; }
.link { color: #0b6e8f; text-decoration: none; }
.body--dark .link { color: #6cc6e2; }
.link:hover { text-decoration: underline; }
button.link { background: none; border: 0; padding: 3px 0; font: inherit; text-align: left; cursor: pointer; }
:focus-visible { outline: 2px solid #0b6e8f; outline-offset: 2px; }
.body--dark :focus-visible { outline-color: #6cc6e2; }
.body--dark { --q-primary: #1d7a9c !important; }
.body--dark .text-primary { --q-primary: #6cc6e2; }
.body--dark .text-negative { --q-negative: #ff8f85; }
.q-table th { font-weight: 600; }
.q-table td, .q-table th { padding: 6px 10px; }
.q-table td.apart, .q-table th.apart { padding-left: 32px; }
.q-table__container:not(.q-table--no-wrap) td { overflow-wrap: anywhere; }
.q-table td.text-right, .q-table th { white-space: nowrap; overflow-wrap: normal; }
.q-tab-panel { padding-left: 0; padding-right: 0; }
.halves table { table-layout: fixed; }
.halves th:first-child { width: 48%; }
@media (max-width: 639px) {
  .q-table td, .q-table th { padding: 6px 7px; }
  .q-table td.mono, .q-table td .mono { font-size: .78rem; }
  .q-tab { padding: 0 7px; }
  .q-tab__label { font-size: 13px; }
}
@media (max-width: 767px) { .figures > :last-child:nth-child(odd) { grid-column: span 2; } }
.nicegui-echart text { fill: var(--soft); }
.graph text { fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 4px; stroke-linejoin: round; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .92em; padding: 1px 5px;
  border-radius: 4px; background: rgba(128, 140, 152, .18); }
"""


class Page(NamedTuple):
    """A page: where it is, what it is called, and what makes it. One without an icon is not in the navigation."""

    path: str
    title: str
    icon: str | None
    show: Callable[[Desk], None]


@contextmanager
def around(desk: Desk, page: Page, known: Sequence[Page]) -> Iterator[None]:
    """The frame of a page; what is made inside is the page."""
    ui.add_css(CSS)
    ui.colors(**COLOURS)
    mode = ui.dark_mode(desk.dark)
    with ui.left_drawer(value=None).props(f"width=216 breakpoint={NARROW}").classes("q-pa-none q-pt-md") as drawer:
        _navigation(page, known)
    with ui.header().classes("items-center no-wrap q-px-md q-py-sm gap-2"):
        menu = ui.button(icon="menu", on_click=drawer.toggle).props("flat round color=primary aria-label=Navigation")
        menu.classes("lg:hidden")
        with (
            ui.link(target="/")
            .classes("plain row items-center no-wrap gap-2")
            .props('aria-label="Moldau, overview"') as home
        ):
            ui.image("/favicon.ico").classes("w-7 h-7").props("no-spinner no-transition")
            ui.label("Moldau").classes("text-lg font-semibold max-sm:hidden")
        if not desk.may_act or desk.account:
            home.classes("gt-xs")  # on a telephone there is no room for all
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
    """Topics by a part of their name: the first few as one types, all of them with Enter."""

    async def suggest() -> None:
        text = (box.value or "").strip().lower()
        with menu:
            menu.clear()
            try:
                known = await desk.ask(topics.listed, desk.client) if text else []
            except EXPECTED:
                return
            found = [topic.name for topic in known if text in topic.name.lower()][:SUGGESTIONS]
            for name in found:
                ui.menu_item(name, partial(ui.navigate.to, paths.topic(name)))
        menu.set_value(bool(found))

    def look() -> None:
        ui.navigate.to(f"/topics?search={quote((box.value or '').strip())}")

    box = ui.input(placeholder="Find a topic  ( / )").props(
        'dense outlined rounded debounce=200 aria-label="Find a topic"'
    )
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
    """Light or dark, remembered in a cookie; without one the browser's own wish counts."""
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
            ui.menu_item(f"{desk.account.name}").props("disable")
            ui.menu_item("Log out", lambda: ui.run_javascript(LOG_OUT))


LOG_OUT = "fetch('/logout', {method: 'POST', redirect: 'manual'}).then(() => location.assign('/login'))"


def heading(title: str, note: str = "") -> ui.row:
    """The head of a page; what is made in the row it returns stands at the right."""
    with ui.row().classes("w-full items-center gap-3"):
        ui.label(title).classes("text-2xl font-semibold wrap").props("role=heading aria-level=1")
        if note:
            ui.label(note).classes("quiet")
        ui.space()
        return ui.row().classes("items-center gap-2")


def lineage_button(name: str) -> None:
    """The way to all that something comes from and leads to."""
    go = partial(ui.navigate.to, paths.lineage(name))
    ui.button("Lineage", icon="account_tree", on_click=go).props("no-caps outline")


def panel(title: str = "") -> ui.card:
    """A card with a title, for use in a `with`."""
    card = ui.card().classes("panel q-pa-md gap-2")
    if title:
        with card:
            ui.label(title).classes("text-base font-semibold").props("role=heading aria-level=2")
    return card


def table(
    *columns: str,
    key: str | None = None,
    numbers: Sequence[str] = (),
    if_wide: Sequence[str] = (),
    none: str = "There is nothing here yet.",
) -> ui.table:
    """A table without rows yet; `numbers` are columns that stand at the right, `if_wide` those that a telephone does
    not show. `none` is told where there are no rows.
    """
    rows = []
    for before, name in zip((None, *columns), columns, strict=False):
        apart = "apart" if before in numbers and name not in numbers else ""
        classes = " ".join(filter(None, (apart, WIDE if name in if_wide else "")))
        rows.append(
            {
                "name": name,
                "label": name[:1].upper() + name[1:],
                "field": name,
                "align": "right" if name in numbers else "left",
                "classes": classes,
                "headerClasses": classes,
            }
        )
    made = ui.table(columns=rows, rows=[], row_key=key or columns[0])
    with made.add_slot("no-data"):
        ui.label(none).classes("quiet q-py-sm wrap")
    return made.props('flat dense hide-pagination :rows-per-page-options="[0]"').classes("w-full bg-transparent")


def paged(of: ui.table) -> None:
    """Show a long table in pages."""
    of.props(remove="hide-pagination").props(':rows-per-page-options="[50, 200]" rows-per-page-label="Rows"')
    of.pagination = {"rowsPerPage": 50}


def link_cell(of: ui.table, column: str, to: str = "link") -> None:
    """Let the cells of a column lead to the `link` of their rows, or to what `to` names there."""
    of.add_slot(
        f"body-cell-{column}",
        f'<q-td :props="props"><a v-if="props.row.{to}" class="link" :href="props.row.{to}">{{{{ props.value }}}}</a>'
        "<span v-else>{{ props.value }}</span></q-td>",
    )


def empty(sentence: str, remedy: str = "", icon: str = "inbox") -> None:
    """Where there is nothing yet: what would be here, and how it comes to be."""
    with ui.column().classes("w-full items-center q-pa-lg gap-1 text-center"):
        ui.icon(icon, size="40px").classes("quiet")
        ui.label(sentence).classes("text-base")
        if remedy:
            prose(remedy, "quiet")


def prose(text: str, classes: str = "") -> None:
    """A sentence; what stands between backticks is shown as code."""
    with ui.element("div").classes(f"wrap {classes}"):
        for number, piece in enumerate(text.split("`")):
            Words("code" if number % 2 else "span", piece)


class Words(TextElement):
    """A piece of a sentence, always as text."""

    def __init__(self, tag: str, text: str) -> None:
        super().__init__(tag=tag, text=text)


def tell(problem: Problem) -> None:
    """A problem, in place of what was to be shown."""
    with ui.row().classes("w-full items-start no-wrap gap-3 q-pa-sm").props("role=alert"):
        ui.icon("error_outline", color="negative", size="28px")
        with ui.column().classes("gap-1"):
            prose(problem.sentence)
            if problem.remedy:
                prose(problem.remedy, "quiet")


class Section(Generic[T]):
    """A part of a page that is loaded by itself: `load` waits in a thread, `show` makes what is seen of its answer.

    What fails is told in its place, with a way to try again; other parts go on. `reload` does it once more. The first
    answer is asked for while the page is still on its way to the browser.
    """

    def __init__(self, desk: Desk, load: Callable[[], T], show: Callable[[T], None]) -> None:
        self._desk, self._load, self._show = desk, load, show
        self.place = ui.column().classes("w-full gap-2")
        with self.place:
            ui.spinner(size="28px").props('aria-label="Loading"')
        first = asyncio.ensure_future(desk.ask(load))
        first.add_done_callback(_looked_at)
        ui.timer(0, lambda: self._fill(first), once=True)

    async def reload(self) -> None:
        await self._fill(self._desk.ask(self._load))

    async def _fill(self, answer: Awaitable[T]) -> None:
        problem, found = None, None
        try:
            found = await answer
        except EXPECTED as error:
            problem = self._desk.problem(error)
        self.place.clear()
        with self.place:
            if problem is not None:
                tell(problem)
                ui.button("Try again", icon="refresh", on_click=self.reload).props("flat no-caps")
            else:
                self._show(found)  # type: ignore[arg-type]


def _looked_at(answer: asyncio.Future[Any]) -> None:
    """A browser that never came back has asked for nothing: its answer is not missed in the log."""
    if not answer.cancelled():
        answer.exception()


async def attempt(
    desk: Desk, done: str, function: Callable[..., Any], *arguments: Any, seen: Callable[[], bool] | None = None
) -> bool:
    """Change something, and say so once it is `seen`; what is refused is told. Whether it was done."""
    try:
        await desk.act(function, *arguments)
        if seen is not None:
            await desk.ask(await_seen, seen)
    except EXPECTED as error:
        problem = desk.problem(error)
        ui.notify(" ".join(filter(None, (problem.sentence, problem.remedy))), type="negative", multi_line=True)
        return False
    ui.notify(done, type="positive")
    return True


def await_seen(seen: Callable[[], bool]) -> None:
    """Brokers learn a moment later what the controller has done: until they tell it, for a while."""
    until = time.monotonic() + SEEN_S
    while not seen() and time.monotonic() < until:
        time.sleep(LOOK_EVERY_S)


def confirm(title: str, warning: str, name: str, act: Callable[[], Awaitable[Any]]) -> ui.dialog:
    """A dialog that does something only once the name was typed."""

    async def go() -> None:
        if box.value == name:
            dialog.close()
            await act()

    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-96 max-w-full"):
        ui.label(title).classes("text-lg font-semibold wrap")
        ui.label(warning).classes("wrap")
        ui.label(f"Type {name} to go on:").classes("wrap")
        box = ui.input().props('dense outlined autofocus aria-label="Type the name"').classes("w-full")
        box.on("keydown.enter", go)
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            button = ui.button("Delete", color="negative", on_click=go).props("no-caps")
            button.bind_enabled_from(box, "value", lambda text: text == name)
    return dialog
