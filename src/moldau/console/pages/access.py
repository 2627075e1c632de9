"""The page Access: ACLs, quotas, users with SCRAM credentials, and what `moldau secure check` finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from nicegui import ui

from moldau.admin import acls, quotas, users, weaknesses
from moldau.client import ClientError, Error
from moldau.console import frame, paths
from moldau.console.model import access
from moldau.console.page_context import Desk

DELETE_CELL = """
<q-td :props="props"><q-btn flat dense round icon="delete" color="negative" aria-label="Delete"
  @click="$parent.$emit('gone', props.row.id)"></q-btn></q-td>
"""
RULE = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
Limits = dict[quotas.Entity, dict[str, float]]
Section = frame.Section[Any]


def show(desk: Desk) -> None:
    """Show the page."""
    frame.heading("Access and limits")
    with frame.panel("ACLs"):
        _acls(desk)
    with frame.panel("Quotas"):
        _quotas(desk)
    with frame.panel("Users"):
        frame.Section(desk, lambda: users.described(desk.client), _users)
    if desk.may_act:  # open doors are nobody else's business
        with frame.panel("Security check"):
            frame.Section(desk, lambda: findings(desk), partial(_findings, desk))


def _delete_buttons(
    desk: Desk, table: ui.table, section: Section, items: Sequence[Any], delete: Callable[[Any], Awaitable[bool]]
) -> None:
    """Add a last column with a button that deletes the item of its row, if the user may act."""

    async def go(event: Any) -> None:
        if await delete(items[int(event.args)]):
            await section.reload()

    if desk.may_act:
        table.columns = [*table.columns, {"name": "act", "label": "", "field": "id", "align": "right"}]
        table.add_slot("body-cell-act", DELETE_CELL)
        table.on("gone", go)


def _new_button(desk: Desk, title: str, form: Callable[[Desk, Section], ui.dialog], section: Section) -> None:
    """Add a button that opens a form, if the user may act."""
    if desk.may_act:
        with ui.row().classes("w-full justify-end"):
            ui.button(title, icon="add", on_click=form(desk, section).open).props("outline")


def rules(desk: Desk) -> list[acls.Acl] | None:
    """Return all rules; None if the brokers have no authorizer."""
    try:
        return acls.described(desk.client, acls.Filter())
    except ClientError as error:
        if error.error is Error.SECURITY_DISABLED:
            return None
        raise


def _acls(desk: Desk) -> None:
    def delete(rule: acls.Acl) -> Awaitable[bool]:
        only = access.only(rule)
        gone = lambda: not acls.described(desk.client, only)  # noqa: E731
        return frame.attempt(desk, "Rule deleted.", acls.delete, desk.client, [only], seen=gone)

    def show_rules(found: list[acls.Acl] | None) -> None:
        if found is None:
            remedy = "Set authorizer.class.name and restart them."
            frame.empty("The brokers have no authorizer: everybody may do everything.", remedy, "lock_open")
            return
        if not found:
            frame.empty("There are no rules.", "Only super users may do anything.", "lock")
        else:
            table = frame.table(*RULE, key="id").props("wrap-cells")
            frame.link_cell(table, "name")
            table.rows = [
                {"id": number, "link": _path(one), **{name: getattr(one, name) for name in RULE}}
                for number, one in enumerate(found)
            ]
            _delete_buttons(desk, table, section, found, delete)
        _new_button(desk, "New rule", _new_rule, section)

    section: Section = frame.Section(desk, lambda: rules(desk), show_rules)


def _path(rule: acls.Acl) -> str | None:
    """Return the address of the topic or group that a rule names."""
    path = {"TOPIC": paths.topic, "GROUP": paths.group}.get(rule.resource)
    return path(rule.name) if path and rule.pattern == "LITERAL" and rule.name != "*" else None


def _new_rule(desk: Desk, section: Section) -> ui.dialog:
    def rule() -> acls.Acl:
        return access.rule({name: box.value for name, box in boxes.items()})

    async def go() -> None:
        await frame.submit(
            dialog, section, desk, "Rule added.", lambda: acls.create(desk.client, [rule()]),
            seen=lambda: bool(acls.described(desk.client, access.only(rule()))),
        )  # fmt: skip

    boxes: dict[str, Any] = {}
    with frame.dialog("New rule") as dialog:
        boxes["principal"] = ui.input("Principal", value="User:")
        boxes["permission"] = ui.select(access.PERMISSION_WORDS, value="ALLOW", label="Permission")
        boxes["operation"] = ui.select(access.OPERATION_WORDS, value="READ", label="Operation")
        boxes["resource"] = ui.select(access.RESOURCE_WORDS, value="TOPIC", label="Resource")
        boxes["name"] = ui.input("Name")
        boxes["pattern"] = ui.select(access.PATTERN_WORDS, value="LITERAL", label="Pattern")
        boxes["host"] = ui.input("Host", value="*")
        for box in boxes.values():
            box.classes("w-full")
        with frame.buttons(dialog):
            ui.button("Add", on_click=go)
    return dialog


def _quotas(desk: Desk) -> None:
    def delete(limit: tuple[quotas.Entity, str, float]) -> Awaitable[bool]:
        entity, key, _ = limit
        gone = lambda: access.limit_of(limits(desk), entity, key) is None  # noqa: E731
        return frame.attempt(desk, "Limit deleted.", quotas.alter, desk.client, entity, {}, [key], seen=gone)

    def show_limits(found: Limits) -> None:
        known = [(entity, key, value) for entity, mine in found.items() for key, value in mine.items()]
        if not known:
            frame.empty("There are no limits.", "Everybody may use as much as there is.", "speed")
        else:
            table = frame.table("of", "limit", "value", key="id", numbers=("value",)).props("wrap-cells")
            table.rows = [
                {"id": number, "of": access.words(entity), "limit": key, "value": f"{value:,g}"}
                for number, (entity, key, value) in enumerate(known)
            ]
            _delete_buttons(desk, table, section, known, delete)
        _new_button(desk, "New limit", _new_limit, section)

    section: Section = frame.Section(desk, lambda: limits(desk), show_limits)


def limits(desk: Desk) -> Limits:
    """Return all limits of all entities."""
    return quotas.described(desk.client, [], strict=False)


def _new_limit(desk: Desk, section: Section) -> ui.dialog:
    def whose() -> quotas.Entity:
        return access.entity(user.value or "", client.value or "")

    async def go() -> None:
        key, most = str(limit.value), float(value.value or 0)
        await frame.submit(
            dialog, section, desk, "Limit set.", lambda: quotas.alter(desk.client, whose(), {key: most}),
            seen=lambda: access.limit_of(limits(desk), whose(), key) == most,
        )  # fmt: skip

    with frame.dialog("New limit") as dialog:
        user = ui.input("User")
        client = ui.input("Client id")
        limit = ui.select(list(access.QUOTAS), value=access.QUOTAS[0], label="Limit")
        value = ui.number("Value", min=0)
        for box in (user, client, limit, value):
            box.classes("w-full")
        ui.label(f"{access.DEFAULT} stands for all that have no limit of their own.").classes("quiet text-sm wrap")
        with frame.buttons(dialog):
            ui.button("Set", on_click=go)
    return dialog


def _users(found: list[users.Credentials]) -> None:
    if not found:
        frame.empty("No user has SCRAM credentials.", "`moldau user create NAME` creates some.", "person")
        return
    table = frame.table("user", "credentials").props("wrap-cells")
    table.rows = [
        {"user": one.user, "credentials": ", ".join(f"{c.mechanism} ({c.iterations:,})" for c in one.credentials)}
        for one in found
    ]


def findings(desk: Desk) -> list[dict[str, str]]:
    """Return what is weak in the settings of the brokers, and in the folder of a secured platform.

    The brokers are asked as the user: who may not see their settings does not see the folder either.
    """
    live = weaknesses.find_in_brokers(desk.client)
    return access.finding_rows(live, weaknesses.find_in(desk.console.secured) if desk.console.secured else ())


def _findings(desk: Desk, found: list[dict[str, str]]) -> None:
    if found:
        table = frame.table("where", "problem", "to do", "seen at", key="id", if_wide=("seen at",)).props("wrap-cells")
        table.rows = found
    else:
        frame.empty("Nothing is open that could be closed.", icon="verified_user")
    if desk.console.secured is None:
        note = "Brokers do not show certificates, passwords and super users: run `moldau secure check` where they run."
        frame.prose(note, "quiet text-sm")
