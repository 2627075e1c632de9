"""The message table, row by row, against the JSON definitions inside Kafka's own jars."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.wire import schema
from moldau.wire.schema import FIXED, NEW, ZERO, Field, Message, Range, Struct

# The table a jar's definitions stand in; requests and responses are told apart by whether clients may send them.
JARS = {
    "kafka-clients": None,
    "kafka-raft": None,
    "kafka-storage": None,
    "kafka-group-coordinator": "__consumer_offsets",
    "kafka-transaction-coordinator": "__transaction_state",
    "kafka-share-coordinator": "__share_group_state",
    "kafka-metadata": "__cluster_metadata",
}
TIERED = "Remote"  # records of tiered storage, which has no place here


@pytest.fixture(scope="module")
def definitions(kafka_libs: Path) -> dict[str, dict[str, Any]]:
    return {found["name"]: found for jar, table in JARS.items() for found in read_jar(kafka_libs, jar, table)}


def read_jar(libs: Path, jar: str, table: str | None) -> Iterator[dict[str, Any]]:
    (path,) = libs.glob(f"{jar}-[0-9]*.jar")
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if re.search(r"(^|/)(message|metadata)/\w+\.json$", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                definition = json.loads(re.sub(r'//[^"\n]*$', "", text, flags=re.MULTILINE))
                if definition["validVersions"] != "none" and not definition["name"].startswith(TIERED):
                    yield {**definition, "table": table}


def versions(text: str) -> Range:
    low, _, high = text.rstrip("+").partition("-")
    return int(low), 1 << 15 if text.endswith("+") else int(high or low)


def meet(a: Range, b: Range) -> Range | None:
    low, high = max(a[0], b[0]), min(a[1], b[1])
    return (low, high) if low <= high else None


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def kafka_rows(fields: list[dict[str, Any]], within: Range, shared: dict[str, Any]) -> list[dict[str, Any]]:
    """Definitions of fields in the shape of `rows`, without what no valid version has."""
    found: list[dict[str, Any]] = []
    for field in fields:
        item = field["type"].removeprefix("[]")
        here = meet(versions(field.get("versions") or field["taggedVersions"]), within)
        if here is None:
            continue
        if "tag" in field:
            assert meet(versions(field["taggedVersions"]), here) == here, "a field that is not tagged throughout"
        inner, outer = (shared[item], shared[""]) if item in shared else (field.get("fields"), here)
        found.append(
            {
                "name": snake(field["name"]),
                "type": field["type"],
                "versions": here,
                "nullable": meet(versions(field["nullableVersions"]), here) if "nullableVersions" in field else None,
                "tag": field.get("tag"),
                "default": kafka_default(field),
                "ignorable": bool(field.get("ignorable")) and here != within,
                "inflexible": field.get("flexibleVersions") == "none",
                "fields": None if inner is None else kafka_rows(inner, outer, shared),
            }
        )
    return found


def kafka_default(field: dict[str, Any]) -> Any:
    """What Kafka's generator makes of a default: only the string "null" is null, JSON's own null is no default."""
    kind, text = field["type"], field.get("default")
    if text == "null":
        return None
    if kind.startswith("[]"):
        return ()
    if kind == "records":
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    if kind in ZERO or kind in FIXED:
        return ZERO.get(kind, 0) if text in (None, "") else int(str(text), 0) if kind in FIXED else text
    return NEW


def rows(fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type,
            "versions": field.versions,
            "nullable": field.nullable,
            "tag": field.tag,
            "default": our_default(field),
            "ignorable": field.ignorable,
            "inflexible": field.inflexible,
            "fields": None if field.struct is None else rows(field.struct.fields),
        }
        for field in fields
    ]


def our_default(field: Field) -> Any:
    """As the row says it; None stands also for a tagged struct of defaults, and for records that are not there."""
    if field.struct is not None and not field.is_array and field.nullable is None:
        return NEW
    return None if field.type == "records" else field.default


def kafka_head(definition: dict[str, Any]) -> tuple[Any, ...]:
    flexible = definition["flexibleVersions"].rstrip("+")
    return (
        definition["type"],
        definition.get("apiKey", -1),
        versions(definition["validVersions"]),
        None if flexible == "none" else int(flexible),
        definition.get("latestVersionUnstable", False),
    )


def our_head(head: Message) -> tuple[Any, ...]:
    return head.kind, head.key, head.versions, head.flexible, head.unstable


def test_the_table_has_the_messages_of_kafka_and_no_others(definitions: dict[str, dict[str, Any]]) -> None:
    assert sorted(schema.heads()) == sorted(definitions)


def test_every_head_line_says_what_kafka_says(definitions: dict[str, dict[str, Any]]) -> None:
    for name, (head, _) in schema.heads().items():
        assert our_head(head) == kafka_head(definitions[name]), name


def test_every_row_says_what_kafka_says(definitions: dict[str, dict[str, Any]]) -> None:
    for name in schema.heads():
        definition = definitions[name]
        within = versions(definition["validVersions"])
        shared = {common["name"]: common["fields"] for common in definition.get("commonStructs", [])}
        expected = kafka_rows(definition["fields"], within, {**shared, "": within})
        assert rows(schema.message(name).fields) == expected, name


def test_records_stand_in_the_table_of_their_topic(definitions: dict[str, dict[str, Any]]) -> None:
    for name, (head, _) in schema.heads().items():
        if definitions[name]["table"] is not None:
            assert head.table == definitions[name]["table"], name


def test_what_clients_may_send_stands_in_their_table(definitions: dict[str, dict[str, Any]]) -> None:
    for name, (head, _) in schema.heads().items():
        if head.kind == "request":
            assert (head.table == "clients") == ("broker" in definitions[name]["listeners"]), name


def test_no_struct_is_empty_on_the_wire() -> None:
    """An element of no bytes would let a count claim any number of them."""
    from moldau.wire.codec_source import least_size

    def arrays(owner: Struct | schema.Message) -> Iterator[Field]:
        for field in owner.fields:
            if field.is_array:
                yield field
            if field.struct is not None:
                yield from arrays(field.struct)

    for name in schema.heads():
        spec = schema.message(name)
        for field in arrays(spec):
            for version in range(field.versions[0], field.versions[1] + 1):
                assert least_size(field.item, field, version, spec.is_flexible(version)) > 0, (name, field.name)
