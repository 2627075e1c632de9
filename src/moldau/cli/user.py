"""`moldau user`: users with SCRAM credentials."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from moldau.admin import users
from moldau.admin.mistakes import Mistake, misused
from moldau.cli.commands import Sure, noun, verb
from moldau.cli.session import Session

cli = noun()

LONGEST = 4096


class Mechanism(StrEnum):
    """How a password is proved."""

    sha256 = "SCRAM-SHA-256"
    sha512 = "SCRAM-SHA-512"


Names = Annotated[list[str], typer.Argument(metavar="USER...", help="Users.")]
Mechanisms = Annotated[
    list[Mechanism] | None, typer.Option("--mechanism", "-m", case_sensitive=False, help="Repeatable.")
]


@verb(
    cli,
    "create",
    (
        "moldau user create ada  (asks for the password)",
        "echo secret | moldau user create ada --password-stdin --mechanism SCRAM-SHA-256",
    ),
)
def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="USER", help="The user.")],
    mechanism: Mechanisms = None,
    iterations: Annotated[
        int,
        typer.Option(min=users.LEAST_ITERATIONS, max=users.MOST_ITERATIONS, help="How often the password is hashed."),
    ] = users.ITERATIONS,
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
) -> None:
    """Make a user, or give one a new password."""
    password = _password(password_stdin)
    chosen = [one.value for one in mechanism or [Mechanism.sha512]]
    users.alter(session.client, name, dict.fromkeys(chosen, (password, iterations)))
    session.done(f"User {name} has {', '.join(chosen)}.", user=name, mechanisms=chosen, iterations=iterations)


def _password(from_stdin: bool) -> str:
    """Never an argument: those stand in the shell's history and in the list of processes."""
    if from_stdin:
        found = sys.stdin.readline(LONGEST).rstrip("\n")
    elif sys.stdin.isatty():
        import getpass

        found = getpass.getpass("Password: ")
        if found != getpass.getpass("Again: "):
            raise Mistake("The two are not the same; nothing was changed.")
    else:
        raise misused("Without a terminal the password comes from stdin: give --password-stdin.")
    if not found:
        raise misused("The password is empty.")
    return found


@verb(cli, "list", ("moldau user list", "moldau user list -o json"))
def list_users(session: Session) -> None:
    """List users that have credentials."""
    rows = [
        {"user": one.user, "mechanism": credential.mechanism, "iterations": credential.iterations}
        for one in users.described(session.client)
        for credential in one.credentials
    ]
    session.show(sorted(rows, key=lambda row: (row["user"], row["mechanism"])), empty="No users.")


@verb(cli, "delete", ("moldau user delete ada", "moldau user delete ada --mechanism SCRAM-SHA-256"))
def delete(session: Session, names: Names, mechanism: Mechanisms = None, sure: Sure = False) -> None:
    """Take away credentials: all that a user has, or those of a mechanism."""
    session.confirm(f"Delete {', '.join(names)}?", sure)
    have = {
        one.user: [credential.mechanism for credential in one.credentials] for one in users.described(session.client)
    }
    for name in names:
        if name not in have:
            raise Mistake(f"There is no user {name}. `moldau user list` shows who there is.")
        users.alter(session.client, name, removed=[one.value for one in mechanism] if mechanism else have[name])
    session.done(f"Deleted {', '.join(names)}.", deleted=names)
