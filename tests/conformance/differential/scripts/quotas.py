"""Client quotas: set, removed and described."""

from __future__ import annotations

from typing import Any

from tests.conformance.differential.case import Case, Script

USER = [("user", "x")]
INFINITE = float("inf")


def text(row: Any) -> str:
    return " ".join(str(part) for part in row)


def set_to(name: str, *entries: Any, validate: bool = False, version: int = 1) -> Case:
    return Case(name, "AlterClientQuotas", version, (list(entries), validate))


def find(components: Any, strict: bool = False, versions: Any = 1) -> Case:
    shown = ", ".join(map(text, components)) or "all"
    return Case(f"find {shown}{' strictly' if strict else ''}", "DescribeClientQuotas", versions, (components, strict))


GIVEN: list[tuple[list[tuple[str, str | None]], str, float]] = [
    ([("user", "u")], "producer_byte_rate", 10.0),
    ([("user", None)], "consumer_byte_rate", 10.0),
    ([("user", "u"), ("client-id", "c")], "request_percentage", 1.5),
    ([("user", "u"), ("client-id", None)], "controller_mutation_rate", 1.5),
    ([("client-id", "c")], "producer_byte_rate", 7.0),
    ([("ip", "1.2.3.4")], "connection_creation_rate", 7.0),
    ([("ip", None)], "connection_creation_rate", 70.0),
]
VALUES: list[list[tuple[str, float, bool]]] = [
    *([("producer_byte_rate", value, False)] for value in (1.5, 0.0, -1.0, INFINITE, 1e19, 9.3e18, 2.0**63, 1.0000001)),
    [("request_percentage", INFINITE, False)],
    [("nope", 1.0, False)],
    [("nope", 1.0, True)],
    [("nope", -1.0, True)],
    [("producer_byte_rate", 1.0, False), ("producer_byte_rate", 2.0, False)],
    [("producer_byte_rate", 1.0, False), ("producer_byte_rate", 2.0, True)],
    [],
    [("connection_creation_rate", 7.0, False)],
    [("SCRAM-SHA-256", 1.0, False)],
    [("", 1.0, False)],
]
ENTITIES: list[list[tuple[str, str | None]]] = [
    [("ip", "1.2.3.4"), ("user", "u")],
    *([("ip", name)] for name in ("not an ip", "", "localhost", "::1", "nosuchhost.invalid", "1.2.3", "1.2.3.999")),
    [("user", "")],
    [("client-id", "")],
    [],
    [("foo", "u")],
    [("user", "u"), ("user", "v")],
    [("user", "u"), ("foo", "v")],
    [("", "u")],
    [("USER", "u")],
]
EXACT, DEFAULT, ANY = 0, 1, 2
FILTERS: list[list[tuple[str, int, str | None]]] = [
    *([("user", EXACT, name)] for name in ("u", "", None)),
    *([("user", kind, name)] for kind in (DEFAULT, ANY) for name in (None, "u")),
    [("user", 3, None)],
    [("client-id", ANY, None)],
    [("ip", ANY, None)],
    [("user", EXACT, "u"), ("client-id", DEFAULT, None)],
    [("user", EXACT, "u"), ("client-id", ANY, None)],
    [("user", ANY, None), ("user", ANY, None)],
    [("foo", ANY, None)],
    [("", ANY, None)],
    [("ip", ANY, None), ("user", ANY, None)],
]


def rate(value: float) -> list[tuple[str, float, bool]]:
    return [("connection_creation_rate", value, False)]


CASES = [
    find([], versions=(0, 1)),
    *(set_to(f"{text(map(text, who))}: {key}", (who, [(key, value, False)])) for who, key, value in GIVEN),
    *(set_to(f"value {', '.join(map(text, rows))}", (USER, rows)) for rows in VALUES),
    *(set_to(f"entity {', '.join(map(text, who))}", (who, rate(7.0)), validate=True) for who in ENTITIES),
    *(set_to(f"{', '.join(map(text, who))}, too large", (who, rate(2.0**31)), validate=True) for who in ENTITIES),
    set_to(
        "an entity twice", (USER, [("producer_byte_rate", 1.0, False)]), (USER, [("producer_byte_rate", 2.0, False)])
    ),
    find([]),
    set_to(
        "a good and a bad one", (USER, [("producer_byte_rate", 1.0, False)]), ([("user", "y")], [("nope", 2.0, False)])
    ),
    set_to("in thought", ([("user", "v")], [("producer_byte_rate", 1.0, False)]), validate=True),
    set_to("nothing", version=0),
    set_to("oldest version", (USER, [("producer_byte_rate", 5.0, False)]), version=0),
    find([], versions=(0, 1)),
    find([], strict=True),
    *(find(components, strict) for components in FILTERS for strict in (False, True)),
    *(set_to(f"{text(map(text, who))}: {key} goes", (who, [(key, 0.0, True)])) for who, key, _ in GIVEN),
    find([]),
]
SCRIPT = Script("quotas", CASES)
