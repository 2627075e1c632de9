"""What all pages have around them: navigation, search, the switch between light and dark.

And how a part of a page comes to be: a wheel that turns, then what was found, or a sentence that says what went wrong
and what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

from nicegui import ui

from moldau.admin import topics
from moldau.console import paths
from moldau.console.desk import Desk
from moldau.console.model.problems import EXPECTED, Problem

T = TypeVar("T")
COLOURS = {"primary": "#0b6e8f", "secondary": "#5b6b7a", "accent": "#b5651d", "positive": "#2f855a"}
COLOURS |= {"negative": "#c53030", "warning": "#b7791f", "info": "#2b6cb0", "dark": "#1b232b", "dark_page": "#11171d"}
NARROW = 1024  # pixels; below, the navigation hides behind a button
SUGGESTIONS = 8
WIDE = "max-sm:hidden"
CSS = """
body { font-variant-numeric: tabular-nums; }
.body--light { background: #f4f6f8; color: #16202b; }
.body--light .q-drawer { background: #ffffff; }
.body--dark { color: #e6ebf0; }
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
a.link { color: #0b6e8f; text-decoration: none; }
.body--dark a.link { color: #6cc6e2; }
a.link:hover { text-decoration: underline; }
:focus-visible { outline: 2px solid #0b6e8f; outline-offset: 2px; }
.body--dark :focus-visible { outline-color: #6cc6e2; }
.body--dark { --q-primary: #2b93b7 !important; }
.q-table th { font-weight: 600; }
.q-table td, .q-table th { padding: 6px 10px; }
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
        with ui.link(target="/").classes("plain row items-center no-wrap gap-2").props('aria-label="Moldau, overview"'):
            ui.image("/favicon.ico").classes("w-7 h-7").props("no-spinner no-transition")
            ui.label("Moldau").classes("text-lg font-semibold max-sm:hidden")
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
        ui.badge("read-only", color="warning").tooltip("Nothing can be changed here.").classes("max-sm:hidden")
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


def panel(title: str = "") -> ui.card:
    """A card with a title, for use in a `with`."""
    card = ui.card().classes("panel q-pa-md gap-2")
    if title:
        with card:
            ui.label(title).classes("text-base font-semibold").props("role=heading aria-level=2")
    return card


def table(*columns: str, key: str | None = None, numbers: Sequence[str] = (), if_wide: Sequence[str] = ()) -> ui.table:
    """A table without rows yet; `numbers` are columns that stand at the right, `if_wide` those that a telephone does
    not show.
    """
    rows = [
        {
            "name": name,
            "label": name[:1].upper() + name[1:],
            "field": name,
            "align": "right" if name in numbers else "left",
            "classes": WIDE if name in if_wide else "",
            "headerClasses": WIDE if name in if_wide else "",
        }
        for name in columns
    ]
    made = ui.table(columns=rows, rows=[], row_key=key or columns[0])
    return made.props('flat dense hide-pagination :rows-per-page-options="[0]"').classes("w-full bg-transparent")


def link_cell(of: ui.table, column: str) -> None:
    """Let the cells of a column lead to the `link` of their rows."""
    of.add_slot(
        f"body-cell-{column}",
        '<q-td :props="props"><a class="link" :href="props.row.link">{{ props.value }}</a></q-td>',
    )


def empty(sentence: str, remedy: str = "", icon: str = "inbox") -> None:
    """Where there is nothing yet: what would be here, and how it comes to be."""
    with ui.column().classes("w-full items-center q-pa-lg gap-1 text-center"):
        ui.icon(icon, size="40px").classes("quiet")
        ui.label(sentence).classes("text-base")
        if remedy:
            ui.label(remedy).classes("quiet wrap")


def tell(problem: Problem) -> None:
    """A problem, in place of what was to be shown."""
    with ui.row().classes("w-full items-start no-wrap gap-3 q-pa-sm").props("role=alert"):
        ui.icon("error_outline", color="negative", size="28px")
        with ui.column().classes("gap-1"):
            ui.label(problem.sentence).classes("wrap")
            if problem.remedy:
                ui.label(problem.remedy).classes("quiet wrap")


class Section(Generic[T]):
    """A part of a page that is loaded by itself: `load` waits in a thread, `show` makes what is seen of its answer.

    What fails is told in its place, with a way to try again; other parts go on. `reload` does it once more.
    """

    def __init__(self, desk: Desk, load: Callable[[], T], show: Callable[[T], None]) -> None:
        self._desk, self._load, self._show = desk, load, show
        self.place = ui.column().classes("w-full gap-2")
        with self.place:
            ui.spinner(size="28px").props('aria-label="Loading"')
        ui.timer(0, self.reload, once=True)

    async def reload(self) -> None:
        problem, found = None, None
        try:
            found = await self._desk.ask(self._load)
        except EXPECTED as error:
            problem = self._desk.problem(error)
        self.place.clear()
        with self.place:
            if problem is not None:
                tell(problem)
                ui.button("Try again", icon="refresh", on_click=self.reload).props("flat no-caps")
            else:
                self._show(found)  # type: ignore[arg-type]


async def attempt(desk: Desk, done: str, function: Callable[..., Any], *arguments: Any) -> bool:
    """Change something, and say so; what is refused is told. Whether it was done."""
    try:
        await desk.act(function, *arguments)
    except EXPECTED as error:
        problem = desk.problem(error)
        ui.notify(" ".join(filter(None, (problem.sentence, problem.remedy))), type="negative", multi_line=True)
        return False
    ui.notify(done, type="positive")
    return True


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
