"""`moldau schema`: schemas of any Confluent-compatible registry, over HTTP."""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
import typer

from moldau.admin.mistakes import NO, Mistake
from moldau.cli.commands import Sure, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.session import Session
from moldau.records.subjects import ask, pretty, quoted

KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
LARGEST = 10 << 20

cli, verb = noun(without=("bootstrap_servers",))

Subject = Annotated[
    str, typer.Argument(metavar="SUBJECT", help="The subject: orders-value, or :.context:name in a context.")
]
SubjectOrId = Annotated[str, typer.Argument(metavar="SUBJECT|ID", help="A subject, or an id.")]
Version = Annotated[str, typer.Argument(metavar="[VERSION]", help="A version, or latest.")]
Deleted = Annotated[bool, typer.Option("--deleted", help="Include soft-deleted ones.")]
Reset = Annotated[bool, typer.Option("--reset", help="Remove the value of the subject; the global one holds then.")]
Kind = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(slots=True)
class Candidate:
    """The options that give a schema, and its document for the registry."""

    file: Path = argument("The schema: .avsc, .json or .proto; - reads stdin.", metavar="FILE", allow_dash=True)
    kind: Kind | None = option("--type", "Type of the schema; the file name decides otherwise.", case_sensitive=False)
    references: list[str] | None = option(
        "--reference", "Name a schema that this one uses; repeatable.", metavar="NAME=SUBJECT:VERSION"
    )

    def document(self) -> dict[str, Any]:
        try:
            text = sys.stdin.read(LARGEST + 1) if str(self.file) == "-" else self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise Mistake(f"{self.file} cannot be read: {why}.") from None
        if len(text) > LARGEST:
            raise Mistake(f"{self.file} is larger than {LARGEST} characters: it is not a schema.")
        rows = [_reference(one) for one in self.references or ()]
        kind = self.kind or KINDS.get(self.file.suffix, "AVRO")
        return {"schema": text, "schemaType": kind, **({"references": rows} if rows else {})}


def _reference(text: str) -> dict[str, Any]:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not (equals and colon and version.isdecimal()):
        raise Mistake(f"{text!r} is not a reference: write NAME=SUBJECT:VERSION.")
    return {"name": name, "subject": subject, "version": int(version)}


@verb(
    "register",
    "moldau schema register orders-value order.avsc",
    "moldau schema register orders-value - --type avro < order.avsc",
)
def register(
    session: Session,
    subject: Subject,
    candidate: Candidate,
    normalize: bool = flag("--normalize", "Treat schemas with the same meaning as the same schema."),
) -> None:
    """Register a schema as the next version of a subject, and print its id and version."""
    path = f"/subjects/{quoted(subject)}/versions" + ("?normalize=true" if normalize else "")
    answer = _ask(session, "POST", path, candidate.document())
    version = answer.get("version") or _ask(session, "GET", f"/subjects/{quoted(subject)}/versions/latest")["version"]
    session.done(f"id {answer['id']}, version {version}", subject=subject, id=answer["id"], version=version)


@verb("lookup", "moldau schema lookup orders-value order.avsc")
def lookup(session: Session, subject: Subject, candidate: Candidate) -> None:
    """Find the version of a subject that has this schema."""
    answer = _ask(session, "POST", f"/subjects/{quoted(subject)}", candidate.document())
    number, version = answer["id"], answer["version"]
    session.done(f"id {number}, version {version}", subject=subject, id=number, version=version)


@verb("list", "moldau schema list", "moldau schema list orders --deleted -o json")
def list_subjects(
    session: Session,
    prefix: str = argument("Only subjects that start with this.", "", metavar="[PREFIX]"),
    deleted: Deleted = False,
) -> None:
    """List subjects."""
    given = {"subjectPrefix": prefix if prefix.startswith(":") else f":*:{prefix}", "deleted": str(deleted).lower()}
    found = _ask(session, "GET", f"/subjects?{httpx.QueryParams(given)}")
    _print_lines(session, found, "There are no subjects.")


@verb("versions", "moldau schema versions orders-value")
def versions(session: Session, subject: Subject, deleted: Deleted = False) -> None:
    """List the versions of a subject, with ids and types."""
    more = "?deleted=true" if deleted else ""
    numbers = _ask(session, "GET", f"/subjects/{quoted(subject)}/versions{more}")
    rows = []
    for number in numbers:
        found = _ask(session, "GET", f"/subjects/{quoted(subject)}/versions/{number}{more}")
        references = [f"{one['name']}={one['subject']}:{one['version']}" for one in found.get("references") or ()]
        kind = found.get("schemaType", "AVRO")
        rows.append({"version": number, "id": found["id"], "type": kind, "references": references})
    session.show(rows)


@verb(
    "show",
    "moldau schema show orders-value",
    "moldau schema show orders-value 1 -o json",
    "moldau schema show 7  (by id)",
)
def show(session: Session, subject: SubjectOrId, version: Version = "latest") -> None:
    """Show a schema by subject and version, or by id."""
    path = f"/schemas/ids/{subject}" if subject.isdecimal() else f"/subjects/{quoted(subject)}/versions/{version}"
    found = _ask(session, "GET", path)
    if session.for_people:
        print(pretty(found["schema"]))
    else:
        session.show(found)


@verb("diff", "moldau schema diff orders-value 1", "moldau schema diff orders-value 1 2")
def diff(
    session: Session,
    subject: Subject,
    old: str = argument("The old version.", metavar="VERSION"),
    new: str = argument("The new version.", "latest", metavar="[VERSION]"),
) -> None:
    """Show the differences between two versions."""
    texts = [
        pretty(_ask(session, "GET", f"/subjects/{quoted(subject)}/versions/{version}")["schema"]).splitlines()
        for version in (old, new)
    ]
    before, after = texts
    lines = list(difflib.unified_diff(before, after, f"{subject} {old}", f"{subject} {new}", lineterm=""))
    _print_lines(session, lines)


@verb("check", "moldau schema check orders-value newer.avsc", "moldau schema check orders-value newer.avsc --version 1")
def check(
    session: Session,
    subject: Subject,
    candidate: Candidate,
    version: str | None = option("--version", "Compare with this version only."),
) -> None:
    """Check whether a schema is compatible; if not, print the reasons and exit with code 3."""
    path = f"/compatibility/subjects/{quoted(subject)}/versions{f'/{version}' if version else ''}?verbose=true"
    answer = _ask(session, "POST", path, candidate.document())
    fits, messages = answer["is_compatible"], answer.get("messages") or []
    words = "compatible" if fits else "\n".join(messages or ["not compatible"])
    session.done(words, compatible=fits, messages=messages)
    if not fits:
        raise typer.Exit(NO)


@verb(
    "delete",
    "moldau schema delete orders-value 1",
    "moldau schema delete orders-value",
    "moldau schema delete orders-value --permanent",
)
def delete(
    session: Session,
    subject: Subject,
    version: str | None = argument("The version; without one, all versions.", None, metavar="[VERSION]"),
    permanent: bool = flag("--permanent", "Delete for good what is soft-deleted already."),
    sure: Sure = False,
) -> None:
    """Delete a subject or a version: softly at first, so that existing data can still be read."""
    if permanent:
        session.confirm(
            f"Delete {subject}{f' {version}' if version else ''} for good? Its data cannot be read afterwards.", sure
        )
    path = f"/subjects/{quoted(subject)}{f'/versions/{version}' if version else ''}"
    done = _ask(session, "DELETE", path + ("?permanent=true" if permanent else ""))
    numbers = done if isinstance(done, list) else [done]
    session.done(f"deleted {', '.join(map(str, numbers))}", subject=subject, deleted=numbers, permanent=permanent)


@verb(
    "level",
    "moldau schema level",
    "moldau schema level orders-value --set FULL",
    "moldau schema level orders-value --reset",
)
def show_level(
    session: Session,
    subject: str | None = argument("The subject; without one, the level of all others.", None, metavar="[SUBJECT]"),
    wanted: str | None = option(
        "--set", "Set it to NONE, BACKWARD, FORWARD or FULL; the last three also with _TRANSITIVE.", metavar="LEVEL"
    ),
    reset: Reset = False,
) -> None:
    """Show or set the compatibility level: which changes of a schema are allowed."""
    level = _setting(session, "config", "compatibilityLevel", subject, wanted, reset)
    session.done(level, subject=subject, level=level)


@verb(
    "mode",
    "moldau schema mode",
    "moldau schema mode orders-value --set READONLY",
    "moldau schema mode orders-value --reset",
)
def show_mode(
    session: Session,
    subject: str | None = argument("The subject; without one, the mode of all others.", None, metavar="[SUBJECT]"),
    wanted: str | None = option("--set", "Set it to READWRITE, READONLY, READONLY_OVERRIDE or IMPORT.", metavar="MODE"),
    reset: Reset = False,
) -> None:
    """Show or set the mode: whether schemas may be registered."""
    mode = _setting(session, "mode", "mode", subject, wanted, reset)
    session.done(mode, subject=subject, mode=mode)


@verb("users", "moldau schema users 7  (of an id)", "moldau schema users orders-value 1")
def users(session: Session, subject: SubjectOrId, version: Version = "latest") -> None:
    """Show where an id is used, or which ids reference a version of a subject."""
    if subject.isdecimal():
        rows = _ask(session, "GET", f"/schemas/ids/{subject}/versions")
        session.show(rows, empty="It is used nowhere.")
        return
    found = _ask(session, "GET", f"/subjects/{quoted(subject)}/versions/{version}/referencedby")
    session.show([{"id": one} for one in found], empty="Nothing references it.")


def _setting(session: Session, name: str, field: str, subject: str | None, value: str | None, reset: bool) -> str:
    """Set or remove a level or a mode, of a subject or of all; return the value that holds then."""
    path = f"/{name}" if subject is None else f"/{name}/{quoted(subject)}"
    if value:
        _ask(session, "PUT", path, {"compatibility" if name == "config" else name: value})
    elif reset:
        _ask(session, "DELETE", path)
    return _ask(session, "GET", f"{path}?defaultToGlobal=true")[field]


def _print_lines(session: Session, lines: list[str], empty: str = "") -> None:
    """Print names or lines, for people just as they are."""
    if session.for_people and lines:
        print("\n".join(lines))
    elif not session.for_people:
        session.show(lines)
    elif empty:
        session.tell(empty)


def _ask(session: Session, method: str, path: str, body: Any = None) -> Any:
    """Send a request to the registry; a refusal, or no answer, is a Mistake."""
    return ask(session.connection, method, path, body, session.registry_user)
