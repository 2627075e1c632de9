"""`moldau schema`: schemas of any Confluent-compatible registry, over HTTP."""

from __future__ import annotations

import difflib
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from moldau.admin.mistakes import NO, Mistake
from moldau.cli.commands import Sure, noun, verb
from moldau.cli.output import Output
from moldau.cli.session import Session
from moldau.records.subjects import ask, pretty, quoted

KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
LARGEST = 10 << 20
NO_CLUSTER = ("bootstrap_servers",)

cli = noun()

User = Annotated[
    str | None,
    typer.Option(
        "--user",
        envvar="SCHEMA_REGISTRY_USER",
        metavar="NAME:PASSWORD",
        help="For basic authentication.",
        rich_help_panel="The registry",
    ),
]
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="orders-value, say; :.context:name in a context.")]
File = Annotated[
    Path, typer.Argument(metavar="FILE", help="The schema: .avsc, .json or .proto; - reads stdin.", allow_dash=True)
]
References = Annotated[
    list[str] | None,
    typer.Option("--reference", metavar="NAME=SUBJECT:VERSION", help="A schema that this one uses; repeatable."),
]


class Kind(StrEnum):
    """Types of schemas."""

    avro = "AVRO"
    json = "JSON"
    protobuf = "PROTOBUF"


Type = Annotated[Kind | None, typer.Option("--type", case_sensitive=False, help="By the file's name if not given.")]


@verb(
    cli,
    "register",
    (
        "moldau schema register orders-value order.avsc",
        "moldau schema register orders-value - --type avro < order.avsc",
    ),
    without=NO_CLUSTER,
)
def register(
    session: Session,
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Equal texts for equal meanings.")] = False,
    user: User = None,
) -> None:
    """Make a schema the next version of a subject, and print its id and version."""
    path = f"/subjects/{quoted(subject)}/versions" + ("?normalize=true" if normalize else "")
    answer = _ask(session, user, "POST", path, _candidate(file, kind, references))
    version = answer.get("version") or _latest(session, user, subject)["version"]
    session.done(f"id {answer['id']}, version {version}", subject=subject, id=answer["id"], version=version)


@verb(cli, "lookup", ("moldau schema lookup orders-value order.avsc",), without=NO_CLUSTER)
def lookup(
    session: Session,
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    user: User = None,
) -> None:
    """Find the version of a subject that a schema is."""
    found = _ask(session, user, "POST", f"/subjects/{quoted(subject)}", _candidate(file, kind, references))
    session.done(
        f"id {found['id']}, version {found['version']}", subject=subject, id=found["id"], version=found["version"]
    )


@verb(cli, "list", ("moldau schema list", "moldau schema list orders --deleted -o json"), without=NO_CLUSTER)
def list_subjects(
    session: Session,
    prefix: Annotated[str, typer.Argument(metavar="[PREFIX]", help="Only subjects that begin so.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft deleted ones too.")] = False,
    user: User = None,
) -> None:
    """List subjects."""
    given = {"subjectPrefix": prefix if prefix.startswith(":") else f":*:{prefix}", "deleted": str(deleted).lower()}
    found = _ask(session, user, "GET", f"/subjects?{httpx.QueryParams(given)}")
    _print_lines(session, found, "No subjects.")


@verb(cli, "versions", ("moldau schema versions orders-value",), without=NO_CLUSTER)
def versions(
    session: Session,
    subject: Subject,
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft deleted ones too.")] = False,
    user: User = None,
) -> None:
    """List the versions of a subject, with ids and types."""
    more = "?deleted=true" if deleted else ""
    numbers = _ask(session, user, "GET", f"/subjects/{quoted(subject)}/versions{more}")
    rows = []
    for number in numbers:
        found = _ask(session, user, "GET", f"/subjects/{quoted(subject)}/versions/{number}{more}")
        references = [f"{one['name']}={one['subject']}:{one['version']}" for one in found.get("references") or ()]
        kind = found.get("schemaType", "AVRO")
        rows.append({"version": number, "id": found["id"], "type": kind, "references": references})
    session.show(rows)


@verb(
    cli,
    "show",
    ("moldau schema show orders-value", "moldau schema show orders-value 1 -o json", "moldau schema show 7  (by id)"),
    without=NO_CLUSTER,
)
def show(
    session: Session,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT|ID", help="A subject, or an id.")],
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="A number, or latest.")] = "latest",
    user: User = None,
) -> None:
    """Show a schema by subject and version, or by id."""
    path = f"/schemas/ids/{subject}" if subject.isdecimal() else f"/subjects/{quoted(subject)}/versions/{version}"
    found = _ask(session, user, "GET", path)
    if session.output is Output.table:
        print(pretty(found["schema"]))
    else:
        session.show(found)


@verb(cli, "diff", ("moldau schema diff orders-value 1", "moldau schema diff orders-value 1 2"), without=NO_CLUSTER)
def diff(
    session: Session,
    subject: Subject,
    old: Annotated[str, typer.Argument(metavar="VERSION", help="A version.")],
    new: Annotated[str, typer.Argument(metavar="[VERSION]", help="Another version.")] = "latest",
    user: User = None,
) -> None:
    """Show what changed between two versions."""
    texts = [
        pretty(_ask(session, user, "GET", f"/subjects/{quoted(subject)}/versions/{version}")["schema"]).splitlines()
        for version in (old, new)
    ]
    before, after = texts
    lines = list(difflib.unified_diff(before, after, f"{subject} {old}", f"{subject} {new}", lineterm=""))
    _print_lines(session, lines)


@verb(
    cli,
    "check",
    ("moldau schema check orders-value newer.avsc", "moldau schema check orders-value newer.avsc --version 1"),
    without=NO_CLUSTER,
)
def check(
    session: Session,
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    version: Annotated[str | None, typer.Option("--version", help="Only against this version.")] = None,
    user: User = None,
) -> None:
    """Tell whether a schema may follow; the exit code is 3 if not, and what stands against it is printed."""
    path = f"/compatibility/subjects/{quoted(subject)}/versions{f'/{version}' if version else ''}?verbose=true"
    answer = _ask(session, user, "POST", path, _candidate(file, kind, references))
    fits, messages = answer["is_compatible"], answer.get("messages") or []
    words = "compatible" if fits else "\n".join(messages or ["not compatible"])
    session.done(words, compatible=fits, messages=messages)
    if not fits:
        raise typer.Exit(NO)


@verb(
    cli,
    "delete",
    (
        "moldau schema delete orders-value 1",
        "moldau schema delete orders-value",
        "moldau schema delete orders-value --permanent",
    ),
    without=NO_CLUSTER,
)
def delete(
    session: Session,
    subject: Subject,
    version: Annotated[str | None, typer.Argument(metavar="[VERSION]", help="One version; else all.")] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="For good, after it was deleted softly.")] = False,
    sure: Sure = False,
    user: User = None,
) -> None:
    """Delete a subject or a version: softly first, so that data can still be read."""
    if permanent:
        session.confirm(
            f"Delete {subject}{f' {version}' if version else ''} for good? Its data cannot be read then.", sure
        )
    path = f"/subjects/{quoted(subject)}{f'/versions/{version}' if version else ''}"
    done = _ask(session, user, "DELETE", path + ("?permanent=true" if permanent else ""))
    numbers = done if isinstance(done, list) else [done]
    session.done(f"deleted {', '.join(map(str, numbers))}", subject=subject, deleted=numbers, permanent=permanent)


@verb(
    cli,
    "level",
    ("moldau schema level", "moldau schema level orders-value --set FULL", "moldau schema level orders-value --reset"),
    without=NO_CLUSTER,
)
def level(
    session: Session,
    subject: Annotated[
        str | None, typer.Argument(metavar="[SUBJECT]", help="A subject; else all that have no level of their own.")
    ] = None,
    wanted: Annotated[
        str | None, typer.Option("--set", metavar="LEVEL", help="NONE, BACKWARD, FORWARD, FULL, or those _TRANSITIVE.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to what all have.")] = False,
    user: User = None,
) -> None:
    """Show or set how versions must fit each other."""
    path = _change(session, user, "config", subject, {"compatibility": wanted} if wanted else None, reset)
    found = _ask(session, user, "GET", f"{path}?defaultToGlobal=true")["compatibilityLevel"]
    session.done(found, subject=subject, level=found)


@verb(
    cli,
    "mode",
    ("moldau schema mode", "moldau schema mode orders-value --set READONLY", "moldau schema mode orders-value --reset"),
    without=NO_CLUSTER,
)
def mode(
    session: Session,
    subject: Annotated[
        str | None, typer.Argument(metavar="[SUBJECT]", help="A subject; else all that have no mode of their own.")
    ] = None,
    wanted: Annotated[
        str | None, typer.Option("--set", metavar="MODE", help="READWRITE, READONLY, READONLY_OVERRIDE or IMPORT.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to what all have.")] = False,
    user: User = None,
) -> None:
    """Show or set whether schemas may be registered."""
    path = _change(session, user, "mode", subject, {"mode": wanted} if wanted else None, reset)
    found = _ask(session, user, "GET", f"{path}?defaultToGlobal=true")["mode"]
    session.done(found, subject=subject, mode=found)


@verb(cli, "users", ("moldau schema users 7  (of an id)", "moldau schema users orders-value 1"), without=NO_CLUSTER)
def users(
    session: Session,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT|ID", help="A subject, or an id.")],
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="A number, or latest.")] = "latest",
    user: User = None,
) -> None:
    """Show where an id is used; or which ids reference a version of a subject."""
    if subject.isdecimal():
        rows = _ask(session, user, "GET", f"/schemas/ids/{subject}/versions")
        session.show(rows, empty="It is used nowhere.")
        return
    found = _ask(session, user, "GET", f"/subjects/{quoted(subject)}/versions/{version}/referencedby")
    session.show([{"id": one} for one in found], empty="Nothing references it.")


def _change(
    session: Session, user: str | None, what: str, subject: str | None, body: dict[str, str] | None, reset: bool
) -> str:
    """Set or forget a level or a mode; the path of it."""
    path = f"/{what}" if subject is None else f"/{what}/{quoted(subject)}"
    if body:
        _ask(session, user, "PUT", path, body)
    elif reset:
        _ask(session, user, "DELETE", path)
    return path


def _print_lines(session: Session, found: list[str], empty: str = "") -> None:
    """Names or lines: as they are for people."""
    if session.output is Output.table and found:
        print("\n".join(found))
    elif session.output is not Output.table:
        session.show(found)
    elif empty:
        session.tell(empty)


def _latest(session: Session, user: str | None, subject: str) -> Any:
    return _ask(session, user, "GET", f"/subjects/{quoted(subject)}/versions/latest")


def _candidate(file: Path, kind: Kind | None, references: list[str] | None) -> dict[str, Any]:
    try:
        text = sys.stdin.read(LARGEST + 1) if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.") from None
    if len(text) > LARGEST:
        raise Mistake(f"{file} is larger than {LARGEST} characters: it is no schema.")
    found = kind.value if kind else KINDS.get(file.suffix, "AVRO")
    rows = [_reference(text) for text in references or ()]
    return {"schema": text, "schemaType": found, **({"references": rows} if rows else {})}


def _reference(text: str) -> dict[str, Any]:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not (equals and colon and version.isdecimal()):
        raise Mistake(f"{text!r} is no reference: it is written NAME=SUBJECT:VERSION.")
    return {"name": name, "subject": subject, "version": int(version)}


def _ask(session: Session, user: str | None, method: str, path: str, body: Any = None) -> Any:
    """The registry's answer; what it refuses, or that it is not there, is a sentence."""
    return ask(session.connection, method, path, body, user)
