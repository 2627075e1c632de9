"""`moldau schema`: schemas of any Confluent-compatible registry, over HTTP."""

from __future__ import annotations

import difflib
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn
from urllib.parse import quote

import httpx
import typer

URL = "http://127.0.0.1:8081"
KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
FAILED = 1
NOT_COMPATIBLE = 3

cli = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

Registry = Annotated[
    str, typer.Option("--registry", envvar="SCHEMA_REGISTRY_URL", metavar="URL", help="Where the registry is.")
]
User = Annotated[
    str | None, typer.Option(envvar="SCHEMA_REGISTRY_USER", metavar="NAME:PASSWORD", help="For basic authentication.")
]
Subject = Annotated[str, typer.Argument(help="orders-value, say; :.context:name in a context.")]
File = Annotated[Path, typer.Argument(help="The schema: .avsc, .json or .proto; - reads stdin.", allow_dash=True)]
References = Annotated[
    list[str] | None,
    typer.Option("--reference", metavar="NAME=SUBJECT:VERSION", help="A schema that this one uses; repeatable."),
]


class Kind(StrEnum):
    """Types of schemas."""

    avro = "AVRO"
    json = "JSON"
    protobuf = "PROTOBUF"


class Output(StrEnum):
    """How answers are written."""

    text = "text"
    json = "json"


Type = Annotated[Kind | None, typer.Option("--type", case_sensitive=False, help="By the file's name if not given.")]


@cli.command("register")
def register(
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Equal texts for equal meanings.")] = False,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Make a schema the next version of a subject, and print its id and version."""
    path = f"/subjects/{_quoted(subject)}/versions" + ("?normalize=true" if normalize else "")
    answer = _ask("POST", path, registry, user, _candidate(file, kind, references))
    version = answer.get("version") or _latest(registry, user, subject)["version"]
    print(f"id {answer['id']}, version {version}")


@cli.command("list")
def list_subjects(
    prefix: Annotated[str, typer.Argument(help="Only subjects that begin so.")] = "",
    deleted: Annotated[bool, typer.Option("--deleted", help="Soft deleted ones too.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="How they are written.")] = Output.text,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """List subjects."""
    given = {"subjectPrefix": prefix if prefix.startswith(":") else f":*:{prefix}", "deleted": str(deleted).lower()}
    found = _ask("GET", f"/subjects?{httpx.QueryParams(given)}", registry, user)
    print(json.dumps(found) if output is Output.json else "\n".join(found))


@cli.command("show")
def show(
    subject: Annotated[str, typer.Argument(help="A subject, or an id.")],
    version: Annotated[str, typer.Argument(help="A number, or latest.")] = "latest",
    output: Annotated[Output, typer.Option("--output", "-o", help="The schema, or all that is known.")] = Output.text,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Show a schema by subject and version, or by id."""
    path = f"/schemas/ids/{subject}" if subject.isdecimal() else f"/subjects/{_quoted(subject)}/versions/{version}"
    found = _ask("GET", path, registry, user)
    print(json.dumps(found, indent=2) if output is Output.json else _pretty(found["schema"]))


@cli.command("diff")
def diff(
    subject: Subject,
    old: Annotated[str, typer.Argument(help="A version.")],
    new: Annotated[str, typer.Argument(help="Another version.")] = "latest",
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Show what changed between two versions."""
    texts = [
        _pretty(_ask("GET", f"/subjects/{_quoted(subject)}/versions/{version}", registry, user)["schema"]).splitlines()
        for version in (old, new)
    ]
    before, after = texts
    for line in difflib.unified_diff(before, after, f"{subject} {old}", f"{subject} {new}", lineterm=""):
        print(line)


@cli.command("check")
def check(
    subject: Subject,
    file: File,
    kind: Type = None,
    references: References = None,
    version: Annotated[str | None, typer.Option(help="Only against this version.")] = None,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Tell whether a schema may follow; the exit code is 3 if not, and what stands against it is printed."""
    path = f"/compatibility/subjects/{_quoted(subject)}/versions{f'/{version}' if version else ''}?verbose=true"
    answer = _ask("POST", path, registry, user, _candidate(file, kind, references))
    print("compatible" if answer["is_compatible"] else "\n".join(answer.get("messages") or ["not compatible"]))
    if not answer["is_compatible"]:
        raise typer.Exit(NOT_COMPATIBLE)


@cli.command("delete")
def delete(
    subject: Subject,
    version: Annotated[str | None, typer.Argument(help="One version; else all.")] = None,
    permanent: Annotated[bool, typer.Option("--permanent", help="For good, after it was deleted softly.")] = False,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Delete a subject or a version: softly first, so that data can still be read."""
    path = f"/subjects/{_quoted(subject)}{f'/versions/{version}' if version else ''}"
    done = _ask("DELETE", path + ("?permanent=true" if permanent else ""), registry, user)
    numbers = done if isinstance(done, list) else [done]
    print(f"deleted {', '.join(map(str, numbers))}")


@cli.command("level")
def level(
    subject: Annotated[str | None, typer.Argument(help="A subject; else all that have no level of their own.")] = None,
    wanted: Annotated[
        str | None, typer.Option("--set", metavar="LEVEL", help="NONE, BACKWARD, FORWARD, FULL, or those _TRANSITIVE.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to what all have.")] = False,
    registry: Registry = URL,
    user: User = None,
) -> None:
    """Show or set how versions must fit each other."""
    path = "/config" if subject is None else f"/config/{_quoted(subject)}"
    if wanted:
        _ask("PUT", path, registry, user, {"compatibility": wanted})
    elif reset:
        _ask("DELETE", path, registry, user)
    print(_ask("GET", f"{path}?defaultToGlobal=true", registry, user)["compatibilityLevel"])


def _quoted(name: str) -> str:
    return quote(name, safe="").replace(".", "%2E") if name in (".", "..") else quote(name, safe="")


def _latest(registry: str, user: str | None, subject: str) -> Any:
    return _ask("GET", f"/subjects/{_quoted(subject)}/versions/latest", registry, user)


def _candidate(file: Path, kind: Kind | None, references: list[str] | None) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        _complain(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}.")
    found = kind.value if kind else KINDS.get(file.suffix, "AVRO")
    rows = [_reference(text) for text in references or ()]
    return {"schema": text, "schemaType": found, **({"references": rows} if rows else {})}


def _reference(text: str) -> dict[str, Any]:
    name, equals, place = text.partition("=")
    subject, colon, version = place.rpartition(":")
    if not (equals and colon and version.isdecimal()):
        _complain(f"{text!r} is no reference: it is written NAME=SUBJECT:VERSION.")
    return {"name": name, "subject": subject, "version": int(version)}


def _pretty(schema: str) -> str:
    """JSON in lines, anything else as it is."""
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except ValueError:
        return schema.rstrip("\n")


def _ask(method: str, path: str, registry: str, user: str | None, body: Any = None) -> Any:
    """The registry's answer; what it refuses, or that it is not there, ends the command with a sentence."""
    name, _, password = (user or "").partition(":")
    headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
    content = None if body is None else json.dumps(body).encode()
    try:
        answer = httpx.request(
            method,
            registry.rstrip("/") + path,
            content=content,
            headers=headers,
            auth=(name, password) if user else None,
            timeout=60.0,
        )
        found = answer.json() if answer.content else None
    except httpx.InvalidURL:
        _complain(f"{registry!r} is no URL; write --registry http://HOST:PORT.")
    except httpx.HTTPError as error:
        _complain(f"No registry at {registry}: {error}. Start one with `moldau registry`, or name it with --registry.")
    except ValueError:
        _complain(f"What answers at {registry} is no schema registry.")
    if not answer.is_success:
        what = found if isinstance(found, dict) else {}
        _complain(f"{what.get('message', answer.reason_phrase)} ({what.get('error_code', answer.status_code)})")
    return found


def _complain(sentence: str) -> NoReturn:
    print(f"moldau schema: {sentence}", file=sys.stderr)
    raise typer.Exit(FAILED)
