"""The form that produces a record: key, value and headers, as text or with an input for each field of the schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
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
LARGEST = 1 << 20  # characters that a form may have


@dataclass(slots=True)
class Half:
    """The key or the value in the dialog: its text, its format, the place of its form, and the form's error."""

    box: ui.textarea
    kind: ui.select
    place: ui.column
    wrong: str = ""

    def write(self, text: str, wrong: str) -> None:
        """Write what the form says into the text, where it can still be edited."""
        self.wrong = wrong
        if not wrong:
            self.box.value = text

    def edited(self) -> None:
        """Forget the form's error: the text was edited by hand."""
        self.wrong = ""

    def check(self) -> None:
        if self.wrong:
            raise Refused(self.wrong)


def produce_dialog(desk: Desk, topic: str, then: Callable[[], Awaitable[Any]]) -> ui.dialog:
    """Make the dialog; `then` is called after a record was written."""

    async def go() -> None:
        def act() -> None:
            for half in halves.values():
                half.check()
            texts = {field: (half.kind.value, half.box.value or "") for field, half in halves.items()}
            write(desk, topic, texts, more.value or "", partition.value)

        if await frame.attempt(desk, f"Written to {topic}.", act):
            await then()

    with frame.dialog(f"Produce to {topic}", "w-[44rem]") as dialog:
        halves = {field: _half(desk, topic, field, kind) for field, kind in (("key", NULL), ("value", "string"))}
        more = ui.textarea("Headers, one name: value per line").props("autogrow").classes("w-full mono")
        partition = ui.number("Partition (empty: by key)", min=0, precision=0).classes("w-48")
        with frame.buttons(dialog, "Close"):
            ui.button("Send", icon="send", on_click=go)
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
        box = ui.textarea(field.capitalize()).props("autogrow").classes("grow max-sm:w-full mono")
        with ui.row().classes("gap-1 items-center sm:flex-col sm:items-start"):
            chosen = ui.select(list(FORMATS), value=kind, label="Format").classes("w-36")
            chosen.props(f'aria-label="Format of the {field}"')
            button = ui.button("From schema", icon="edit_note", on_click=fill).props("flat dense")
            button.tooltip("Fill in a form made from the topic's latest schema")
    half = Half(box, chosen, place)
    box.on("update:model-value", half.edited)
    return half


def headers(text: str) -> Headers:
    """Parse headers as they are typed; Refused names a line that is not a header."""
    found: Headers = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Refused(f"{line!r:.80} is not a header: write one name: value per line.")
        found.append((name.strip(), value.strip().encode()))
    return found


def write(desk: Desk, topic: str, texts: Mapping[str, tuple[str, str]], more: str, partition: float | None) -> None:
    """Write one record, and wait until it is acknowledged. `texts` has the format and the text of key and value."""
    if sum(len(text) for _, text in texts.values()) + len(more) > LARGEST:
        raise Refused(f"A record may have at most {LARGEST} characters here; `moldau produce` takes more.")
    carried = headers(more)
    key, value = (_encoded(desk, Context(topic, field, carried), *texts[field]) for field in ("key", "value"))
    _send(desk.client, topic, Item(key, value, tuple(carried), None if partition is None else int(partition)))


def _encoded(desk: Desk, context: Context, format: str, text: str) -> bytes | None:
    if format == NULL:
        return None
    if format not in FORMATS:
        raise Refused(f"There is no format {format!r:.40}.")
    codec = formats.codec(formats.Wanted(format), lambda: desk.console.registry, writing=True)
    return codec.parse(text.encode(), context)


def _send(client: Client, topic: str, item: Item) -> None:
    [state] = topics.described(client, [topic])
    writer = Writer(client, topic, len(state.partitions), PARTITIONERS["murmur2"])
    try:
        writer.put([item])
        writer.close()
    except BaseException:
        writer.abort()
        raise
