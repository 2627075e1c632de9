"""Parts of a page that are loaded by themselves, without a browser."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import pytest

pytest.importorskip("nicegui")
from nicegui import Client, core, ui
from nicegui.page import page

from moldau.console import frame
from moldau.console.model.problems import Problem
from moldau.console.page_context import Desk
from moldau.flows.definition import FlowError

WAIT_S = 60.0


class Answers:
    """Answers what a page asks at once."""

    async def ask(self, function: Callable[[], Any]) -> Any:
        return function()


async def in_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    numbers, shown, dialogs = count(1), list[int](), list[ui.dialog]()

    def show(number: int) -> None:
        shown.append(number)
        with frame.dialog("Delete it?") as dialog:
            dialogs.append(dialog)

    with Client(page("/tested"), request=None):
        section = frame.Section(cast(Desk, Answers()), lambda: next(numbers), show)
        await section.reload()
        dialogs[-1].open()
        reload = asyncio.ensure_future(section.reload())
        await asyncio.sleep(3 * frame.LOOK_EVERY_S)
        assert len(shown) == 1 and not reload.done() and not dialogs[-1].is_deleted
        dialogs[-1].close()
        await asyncio.wait_for(reload, WAIT_S)
        assert len(shown) == 2


def test_a_section_that_is_reloaded_waits_until_its_dialog_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(in_a_page(monkeypatch))


class Acts(Answers):
    """Changes what a page asks for, once the part of the page that asked is gone."""

    def __init__(self, section: ui.column) -> None:
        self.section = section

    async def act(self, function: Callable[[], Any]) -> Any:
        self.section.clear()
        function()

    def problem(self, error: BaseException) -> Problem:
        return Problem(str(error))


def refuse() -> None:
    raise FlowError("No.")


@pytest.mark.parametrize(("change", "is_done"), [(lambda: None, True), (refuse, False)])
def test_a_change_is_confirmed_though_the_section_that_asked_was_loaded_again(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[], None], is_done: bool
) -> None:
    told = list[tuple[str, str | None]]()

    async def asked() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        with Client(page("/tested"), request=None) as client:
            monkeypatch.setattr(client.outbox, "enqueue_message", lambda kind, data, _: told.append((kind, data)))
            section = ui.column()
            with section:
                button = ui.button().default_slot  # as a handler has it: the button itself may go
            with button:
                assert await frame.attempt(cast(Desk, Acts(section)), "Done.", change, then="/there") is is_done

    asyncio.run(asked())
    assert [kind for kind, _ in told] == (["notify", "open"] if is_done else ["notify"])
