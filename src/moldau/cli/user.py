"""`moldau user`: users with SCRAM credentials."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from moldau.admin import users
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Sure, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.output import pick
from moldau.cli.session import Session

cli, verb = noun()

LONGEST = 4096


class Mechanism(StrEnum):
    """The mechanisms by which a password is proved."""

    sha256 = "SCRAM-SHA-256"
    sha512 = "SCRAM-SHA-512"


Mechanisms = Annotated[
    list[Mechanism] | None,
    typer.Option("--mechanism", "-m", case_sensitive=False, help="Only this mechanism; repeatable."),
]


@verb(
    "create",
    "moldau user create ada  (asks for the password)",
    "echo secret | moldau user create ada --password-stdin --mechanism SCRAM-SHA-256",
)
def create(
    session: Session,
    name: str = argument("The user.", metavar="USER"),
    mechanism: Mechanisms = None,
    iterations: int = option(
        "--iterations",
        "Number of times the password is hashed.",
        users.ITERATIONS,
        min=users.LEAST_ITERATIONS,
        max=users.MOST_ITERATIONS,
    ),
    password_stdin: bool = flag("--password-stdin", "Read the password from stdin."),
) -> None:
    """Create a user, or set a new password."""
    password = _password(password_stdin)
    chosen = [one.value for one in mechanism or [Mechanism.sha512]]
    users.alter(session.client, name, dict.fromkeys(chosen, (password, iterations)))
    session.done(f"User {name} has {', '.join(chosen)}.", user=name, mechanisms=chosen, iterations=iterations)


def _password(from_stdin: bool) -> str:
    """Ask for the password. It is never an argument: those can be read in the history and the list of processes."""
    if from_stdin:
        password = sys.stdin.readline(LONGEST).rstrip("\n")
    elif sys.stdin.isatty():
        import getpass

        password = getpass.getpass("Password: ")
        if password != getpass.getpass("Repeat the password: "):
            raise Mistake("The two passwords differ; nothing was changed.")
    else:
        raise misused("Without a terminal the password comes from stdin: give --password-stdin.")
    if not password:
        raise misused("The password is empty.")
    return password


@verb("list", "moldau user list", "moldau user list -o json")
def list_users(session: Session) -> None:
    """List users with credentials."""
    rows = [
        {"user": one.user, **pick(credential, "mechanism", "iterations")}
        for one in users.described(session.client)
        for credential in one.credentials
    ]
    session.show(sorted(rows, key=lambda row: (row["user"], row["mechanism"])), empty="There are no users.")


@verb("delete", "moldau user delete ada", "moldau user delete ada --mechanism SCRAM-SHA-256")
def delete(
    session: Session,
    names: list[str] = argument("The users.", metavar="USER..."),
    mechanism: Mechanisms = None,
    sure: Sure = False,
) -> None:
    """Delete the credentials of users: all of them, or those of a mechanism."""
    session.confirm(f"Delete {', '.join(names)}?", sure)
    have = {
        one.user: [credential.mechanism for credential in one.credentials] for one in users.described(session.client)
    }
    for name in names:
        if name not in have:
            raise Mistake(f"There is no user {name}. `moldau user list` shows all users.")
        users.alter(session.client, name, removed=[one.value for one in mechanism] if mechanism else have[name])
    session.done(f"Deleted {', '.join(names)}.", deleted=names)
