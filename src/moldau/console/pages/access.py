"""Who may do what, and how much: ACLs, quotas, and users with SCRAM credentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicegui import ui

from moldau.admin import acls, quotas, users
from moldau.client import ClientError, Error
from moldau.console import frame, paths
from moldau.console.model import access
from moldau.console.model.problems import EXPECTED
from moldau.console.page_context import Desk

DELETE_CELL = """
<q-td :props="props"><q-btn flat dense round icon="delete" color="negative" aria-label="Delete"
  @click="$parent.$emit('gone', props.row.id)"></q-btn></q-td>
"""
Limits = dict[quotas.Entity, dict[str, float]]


def show(desk: Desk) -> None:
    """The page."""
    frame.heading("Access and limits")
    with frame.panel("ACLs"):
        _acls(desk)
    with frame.panel("Quotas"):
        _quotas(desk)
    with frame.panel("Users"):
        frame.Section(desk, lambda: users.described(desk.client), _users)


def _deletions(table: ui.table, desk: Desk, delete: Any) -> None:
    """A last column with a button, for who may."""
    if desk.may_act:
        table.columns = [*table.columns, {"name": "act", "label": "", "field": "id", "align": "right"}]
        table.add_slot("body-cell-act", DELETE_CELL)
        table.on("gone", lambda event: delete(int(event.args)))


def rules(desk: Desk) -> list[acls.Acl] | None:
    """All rules; None where the brokers have no authorizer."""
    try:
        return acls.described(desk.client, acls.Filter())
    except ClientError as error:
        if error.error is Error.SECURITY_DISABLED:
            return None
        raise


def _acls(desk: Desk) -> None:
    known: list[acls.Acl] = []

    async def delete(number: int) -> None:
        gone = access.only(known[number])
        if await frame.attempt(
            desk,
            "The rule is gone.",
            acls.delete,
            desk.client,
            [gone],
            seen=lambda: not acls.described(desk.client, gone),
        ):
            await section.reload()

    def shown(found: list[acls.Acl] | None) -> None:
        known[:] = found or []
        if found is None:
            frame.empty(
                "The brokers have no authorizer: everybody may do everything.",
                "Set authorizer.class.name and start them again.",
                "lock_open",
            )
            return
        if not found:
            frame.empty("There is no rule.", "Who is no super user may do nothing then.", "lock")
        else:
            names = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
            table = frame.table(*names, key="id").props("wrap-cells")
            frame.link_cell(table, "name")
            table.rows = [
                {"id": number, "link": _path(one), **{name: getattr(one, name) for name in names}}
                for number, one in enumerate(found)
            ]
            _deletions(table, desk, delete)
        if desk.may_act:
            with ui.row().classes("w-full justify-end"):
                ui.button("New rule", icon="add", on_click=_new_rule(desk, section).open).props("no-caps outline")

    section: frame.Section[list[acls.Acl] | None] = frame.Section(desk, lambda: rules(desk), shown)


def _path(rule: acls.Acl) -> str | None:
    """Where that has its page which a rule names."""
    path = {"TOPIC": paths.topic, "GROUP": paths.group}.get(rule.resource)
    return path(rule.name) if path and rule.pattern == "LITERAL" and rule.name != "*" else None


def _new_rule(desk: Desk, section: frame.Section[Any]) -> ui.dialog:
    async def go() -> None:
        try:
            made = access.rule({name: box.value for name, box in boxes.items()})
        except EXPECTED as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        seen: Callable[[], bool] = lambda: bool(acls.described(desk.client, access.only(made)))  # noqa: E731
        if await frame.attempt(desk, "The rule holds.", acls.create, desk.client, [made], seen=seen):
            dialog.close()
            await section.reload()

    boxes: dict[str, Any] = {}
    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-96 max-w-full"):
        ui.label("New rule").classes("text-lg font-semibold")
        boxes["principal"] = ui.input("Principal", value="User:")
        boxes["permission"] = ui.select(access.PERMISSION_WORDS, value="ALLOW", label="Permission")
        boxes["operation"] = ui.select(access.OPERATION_WORDS, value="READ", label="Operation")
        boxes["resource"] = ui.select(access.RESOURCE_WORDS, value="TOPIC", label="Resource")
        boxes["name"] = ui.input("Name")
        boxes["pattern"] = ui.select(access.PATTERN_WORDS, value="LITERAL", label="Pattern")
        boxes["host"] = ui.input("Host", value="*")
        for box in boxes.values():
            box.props("dense outlined").classes("w-full")
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            ui.button("Add", on_click=go).props("no-caps")
    return dialog


def _quotas(desk: Desk) -> None:
    known: list[tuple[quotas.Entity, str, float]] = []

    async def delete(number: int) -> None:
        entity, key, _ = known[number]
        seen: Callable[[], bool] = lambda: access.limit_of(limits(desk), entity, key) is None  # noqa: E731
        if await frame.attempt(desk, "The limit is gone.", quotas.alter, desk.client, entity, {}, [key], seen=seen):
            await section.reload()

    def shown(found: Limits) -> None:
        known[:] = [(entity, key, value) for entity, mine in found.items() for key, value in mine.items()]
        if not known:
            frame.empty("There is no limit.", "Everybody may use as much as there is.", "speed")
        else:
            table = frame.table("of", "limit", "value", key="id", numbers=("value",)).props("wrap-cells")
            table.rows = [
                {"id": number, "of": access.words(entity), "limit": key, "value": f"{value:,g}"}
                for number, (entity, key, value) in enumerate(known)
            ]
            _deletions(table, desk, delete)
        if desk.may_act:
            with ui.row().classes("w-full justify-end"):
                ui.button("New limit", icon="add", on_click=_new_limit(desk, section).open).props("no-caps outline")

    section: frame.Section[Limits] = frame.Section(desk, lambda: limits(desk), shown)


def limits(desk: Desk) -> Limits:
    """All limits of everybody."""
    return quotas.described(desk.client, [], strict=False)


def _new_limit(desk: Desk, section: frame.Section[Any]) -> ui.dialog:
    async def go() -> None:
        try:
            whose = access.entity(user.value or "", client.value or "")
        except EXPECTED as error:
            ui.notify(str(error), type="negative", multi_line=True)
            return
        key, most = str(limit.value), float(value.value or 0)
        seen: Callable[[], bool] = lambda: access.limit_of(limits(desk), whose, key) == most  # noqa: E731
        if await frame.attempt(desk, "The limit holds.", quotas.alter, desk.client, whose, {key: most}, seen=seen):
            dialog.close()
            await section.reload()

    with ui.dialog() as dialog, ui.card().classes("q-pa-md gap-3 w-96 max-w-full"):
        ui.label("New limit").classes("text-lg font-semibold")
        user = ui.input("User")
        client = ui.input("Client id")
        limit = ui.select(list(access.QUOTAS), value=access.QUOTAS[0], label="Limit")
        value = ui.number("Value", min=0)
        for box in (user, client, limit, value):
            box.props("dense outlined").classes("w-full")
        ui.label(f"{access.DEFAULT} stands for all that have no limit of their own.").classes("quiet text-sm wrap")
        with ui.row().classes("w-full justify-end"):
            ui.button("Leave it", on_click=dialog.close).props("flat no-caps")
            ui.button("Set", on_click=go).props("no-caps")
    return dialog


def _users(found: list[users.Credentials]) -> None:
    if not found:
        frame.empty("No user has SCRAM credentials.", "`moldau user create NAME` gives some.", "person")
        return
    table = frame.table("user", "credentials").props("wrap-cells")
    table.rows = [
        {"user": one.user, "credentials": ", ".join(f"{c.mechanism} ({c.iterations:,})" for c in one.credentials)}
        for one in found
    ]
