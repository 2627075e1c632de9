"""The form that writes a record: key, value and headers, as text or by a field for each of the topic's schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from nicegui import ui

from moldau.admin import topics
from moldau.client import Client
from moldau.console import frame
from moldau.console.model.problems import EXPECTED, Refused
from moldau.console.page_context import Desk
from moldau.console.schema_form import schema_form
from moldau.records import formats
from moldau.records.lines import Item
from moldau.records.partitioners import PARTITIONERS
from moldau.records.writing import Writer
from moldau.serdes.context import Context, Headers

NULL = "null"
FORMATS = ("string", "json", "avro", "json-schema", "protobuf", "hex", "base64", NULL)
LARGEST = 1 << 20  # characters that are taken from a form


@dataclass(slots=True)
class Half:
    """The key or the value in the dialog: its text, its format, its form, and what is wrong with that."""

    box: ui.textarea
    kind: ui.select
    place: ui.column
    wrong: str = ""

    def write(self, text: str, wrong: str) -> None:
        """What a form says goes into the text, where it can still be changed by hand."""
        self.wrong = wrong
        if not wrong:
            self.box.value = text

    def edited(self) -> None:
        """Somebody has written the text by hand, whatever the form says."""
        self.wrong = ""

    def check(self) -> None:
        if self.wrong:
            raise Refused(self.wrong)


def production(desk: Desk, topic: str, then: Callable[[], Awaitable[Any]]) -> ui.dialog:
    """The dialog; `then` is called when a record was written."""

    async def go() -> None:
        def act() -> None:
            for half in halves.values():
                half.check()
            key, value = halves["key"], halves["value"]
            write(desk, topic, key.box.value or "", key.kind.value, value.box.value or "", value.kind.value,
                  more.value or "", partition.value)  # fmt: skip

        if await frame.attempt(desk, f"Written to {topic}.", act):
            await then()

    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-[44rem] max-w-full"):
        ui.label(f"Produce to {topic}").classes("text-lg font-semibold wrap")
        halves = {field: _half(desk, topic, field, kind) for field, kind in (("key", NULL), ("value", "string"))}
        more = ui.textarea("Headers, name: value a line").props("dense outlined autogrow").classes("w-full mono")
        partition = ui.number("Partition (by the key)", min=0, precision=0).props("dense outlined").classes("w-48")
        with ui.row().classes("w-full justify-end"):
            ui.button("Close", on_click=dialog.close).props("flat no-caps")
            ui.button("Send", icon="send", on_click=go).props("no-caps")
    return dialog


def _half(desk: Desk, topic: str, field: str, kind: str) -> Half:
    async def fill() -> None:
        half.place.clear()
        try:
            found = await desk.ask(desk.console.registry.latest, f"{topic}-{field}")
            half.kind.value = formats.TYPES.get(found.schema.type, "avro")
            with half.place:
                schema_form(found.schema, half.write)
        except EXPECTED as error:
            ui.notify(desk.problem(error).sentence, type="warning")

    place = ui.column().classes("w-full gap-2")
    with ui.row().classes("w-full items-start sm:flex-nowrap gap-2"):
        box = ui.textarea(field.capitalize()).props("dense outlined autogrow").classes("grow max-sm:w-full mono")
        with ui.row().classes("gap-1 items-center sm:flex-col sm:items-start"):
            chosen = ui.select(list(FORMATS), value=kind, label="Format").props("dense outlined")
            chosen.classes("w-36").props(f'aria-label="Format of the {field}"')
            button = ui.button("From schema", icon="edit_note", on_click=fill).props("flat dense no-caps")
            button.tooltip("A form by the latest schema of the topic")
    half = Half(box, chosen, place)
    box.on("update:model-value", half.edited)
    return half


def headers(text: str) -> Headers:
    """Headers as they are typed; Refused where a line is none."""
    found: Headers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Refused(f"{line!r:.80} is no header: write name: value, one a line.")
        found.append((name.strip(), value.strip().encode()))
    return found


def write(
    desk: Desk, topic: str, key: str, key_format: str, value: str, value_format: str, more: str, partition: float | None
) -> None:
    """Write one record, and wait until it is acknowledged."""
    if len(key) + len(value) + len(more) > LARGEST:
        raise Refused(f"A form takes at most {LARGEST} characters; `moldau produce` takes more.")
    carried = headers(more)
    item = Item(
        _encoded(desk, topic, "key", key, key_format, carried),
        _encoded(desk, topic, "value", value, value_format, carried),
        tuple(carried),
        None if partition is None else int(partition),
    )
    _send(desk.client, topic, item)


def _encoded(desk: Desk, topic: str, field: Any, text: str, format: str, carried: Headers) -> bytes | None:
    if format == NULL:
        return None
    if format not in FORMATS:
        raise Refused(f"There is no format {format!r:.40}.")
    codec = formats.codec(formats.Wanted(format), lambda: desk.console.registry, writing=True)
    return codec.parsed(text.encode(), Context(topic, field, carried))


def _send(client: Client, topic: str, item: Item) -> None:
    [state] = topics.described(client, [topic])
    writer = Writer(client, topic, len(state.partitions), PARTITIONERS["murmur2"])
    try:
        writer.put([item])
        writer.close()
    except BaseException:
        writer.abort()
        raise
