"""`moldau secure`: a platform that encrypts and authenticates, in one command."""

from __future__ import annotations

import secrets
from enum import StrEnum
from pathlib import Path

from moldau.admin import tokens
from moldau.admin.mistakes import Mistake, misused
from moldau.cli import profiles
from moldau.cli.commands import NO_CLUSTER, Sure, noun
from moldau.cli.options import argument, flag, option
from moldau.cli.session import Session
from moldau.client import Client

cli, verb = noun(NO_CLUSTER)

FOLDER = "moldau-secure"
PORT = 9092
REGISTRY = "https://127.0.0.1:8081"
IN = argument("The folder of `moldau secure init`.", default=Path(FOLDER), metavar="FOLDER")
AT = option("--folder", "The folder of `moldau secure init`.", Path(FOLDER), metavar="FOLDER")
BROKERS = option(
    "--bootstrap-servers -b", "The brokers, if they are not where `init` has put them.", metavar="HOST:PORT"
)


class Role(StrEnum):
    """What a user may do in registry, REST Proxy, Connect, SQL server and console."""

    viewer = "viewer"
    editor = "editor"
    admin = "admin"


@verb("init", "moldau secure init", "moldau secure init /etc/moldau --host kafka.example --port 9093")
def init(
    session: Session,
    folder: Path = argument("Where the files go.", default=Path(FOLDER), metavar="FOLDER"),
    host: str = option("--host", "The host or address to listen on; clients connect to it.", "127.0.0.1"),
    port: int = option("--port", "The port of the broker.", PORT, min=1, max=65535),
    names: list[str] | None = option("--name", "Another host or address for the certificates; repeatable."),
    profile: str = option("--profile-name", "The profile that is created for the administrator.", "secure"),
) -> None:
    """Make an authority, certificates, users, and the settings of all parts. Files that exist stay."""
    from moldau.cli import secured_files

    if not profiles.NAME.fullmatch(profile):
        raise Mistake(f"{profile!r} is not a name: use letters, digits, dots, - and _.")
    file = folder / secured_files.PROPERTIES
    if file.exists():
        session.done(f"{file} exists; nothing was changed.", folder=str(folder), changed=False)
        return
    try:
        passwords = secured_files.make_files(folder, host, port, [host, *(names or ()), "localhost", "127.0.0.1"])
        _write_snippets(folder, f"{host}:{port}", secured_files.APP, passwords[secured_files.APP])
    except OSError as error:
        raise Mistake(f"{folder} cannot be written: {error.strerror}.") from None
    password, ca = passwords[secured_files.ADMINISTRATOR], str((folder / secured_files.AUTHORITY).resolve())
    settings = {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": ca,
        "sasl.mechanism": "PLAIN",
        "sasl.username": secured_files.ADMINISTRATOR,
        "sasl.password": password,
        "schema.registry.ssl.ca.location": ca,
        "schema.registry.basic.auth.user.info": f"{secured_files.ADMINISTRATOR}:{password}",
    }
    known = profiles.load()
    made = profiles.Profile(f"{host}:{port}", REGISTRY, settings)
    profiles.save(profiles.Profiles(known.current, {**known.named, profile: made}))
    session.done(
        f"The files are in {folder}, and the profile {profile} is the administrator's. Next:\n"
        f"  moldau up --config {folder}/{secured_files.UP}\n"
        f"  moldau topic list --profile {profile}\n"
        f"  moldau secure add-user ada --role editor --folder {folder}\n"
        f"Settings for clients, as the user {secured_files.APP}, are in {folder}/snippets:\n"
        + "".join(f"  {one.name}\n" for one in sorted((folder / "snippets").iterdir()))
        + f"In the console, log in as {secured_files.ADMINISTRATOR}; the password is in {folder}/admin.properties.",
        folder=str(folder),
        changed=True,
    )


def _write_snippets(folder: Path, address: str, user: str, password: str) -> None:
    from moldau.cli import secured_files
    from moldau.cli.snippets import snippets

    place = folder / "snippets"
    place.mkdir(mode=0o700, exist_ok=True)
    ca = (folder / secured_files.AUTHORITY).resolve()
    for name, text in snippets(address, user, password, ca, REGISTRY).items():
        secured_files.write(place / name, text.encode())


def _administrator(folder: Path, brokers: str | None) -> Client:
    """Return a client that is logged in as the administrator of a folder."""
    from moldau.client.java_settings import read_file, translated

    try:
        login = translated(read_file(str(folder / "admin.properties")))
    except OSError as error:
        raise Mistake(f"{folder} is not a folder of `moldau secure init`: {error.strerror}.") from None
    return Client({**login, **({"bootstrap.servers": brokers} if brokers else {})})


@verb(
    "add-user",
    "moldau secure add-user ada --role editor",
    "echo secret-of-bob | moldau secure add-user bob --role viewer --password-stdin",
)
def add_user(
    session: Session,
    name: str = argument("The user.", metavar="USER"),
    role: Role = option("--role", "What the user may do over HTTP and in the console.", Role.viewer),
    folder: Path = AT,
    brokers: str | None = BROKERS,
    password_stdin: bool = flag("--password-stdin", "Read the password from stdin; otherwise one is made up."),
) -> None:
    """Create a user of the platform: a password for Kafka, and the same with a role for the services.

    What the user may do in Kafka is said by `moldau acl add`. A user who exists gets the password and the role.
    """
    import re
    import sys

    from moldau.admin import users
    from moldau.cli import secured_files
    from moldau.http.users import LONGEST_PASSWORD, User, change_users, hash_password

    if not re.fullmatch(r"[\w.@-]{1,100}", name):
        raise misused(f"{name!r} is not a user name: use letters, digits and . _ @ -.")
    if name in (secured_files.ADMINISTRATOR, secured_files.BROKER, *secured_files.PARTS):
        raise misused(f"{name} is a user of the platform itself.")
    password = sys.stdin.readline().rstrip("\n") if password_stdin else secrets.token_urlsafe(18)
    if not 8 <= len(password) <= LONGEST_PASSWORD:
        raise misused(f"A password must have 8 to {LONGEST_PASSWORD} characters.")
    with _administrator(folder, brokers) as client:
        users.alter(client, name, {secured_files.MECHANISM: (password, users.ITERATIONS)})
        address = brokers or client.config["bootstrap.servers"]
    change_users(folder / secured_files.USERS, name, User(hash_password(password), frozenset((role.value,))))
    file = folder / f"user-{name}.properties"
    secured_files.write(
        file, secured_files.client_file(folder.resolve(), address, name, password, secured_files.MECHANISM)
    )
    session.done(
        f"{name} is {role.value}. The password and the settings for Java are in {file}. Next, for example:\n"
        f"  moldau acl add --principal {name} --consumer --topic orders --group billing --profile secure",
        user=name,
        role=role.value,
        file=str(file),
    )


@verb("remove-user", "moldau secure remove-user ada")
def remove_user(
    session: Session,
    name: str = argument("The user.", metavar="USER"),
    folder: Path = AT,
    brokers: str | None = BROKERS,
    sure: Sure = False,
) -> None:
    """Remove a user with all that lets the user in: passwords, ACLs and delegation tokens."""
    from moldau.admin import acls, users
    from moldau.cli import secured_files
    from moldau.http.users import change_users

    if name in (secured_files.ADMINISTRATOR, secured_files.BROKER, *secured_files.PARTS):
        raise misused(f"{name} is a user of the platform itself.")
    session.confirm(f"Remove {name}?", sure)
    with _administrator(folder, brokers) as client:
        have = [one.mechanism for row in users.described(client) if row.user == name for one in row.credentials]
        if have:
            users.alter(client, name, removed=have)
        rules = acls.delete(client, [acls.Filter(principal=f"User:{name}")])
        owned = tokens.described(client, [f"User:{name}"])
        left = [token for token in owned if not _end(token, client, folder)]
    listed = change_users(folder / secured_files.USERS, name, None)
    (folder / f"user-{name}.properties").unlink(missing_ok=True)
    if not (have or rules or owned or listed):
        raise Mistake(f"There is no user {name}. `moldau user list --profile secure` shows all users.")
    others = f" {len(left)} tokens that only {name} could end remain, without any right." if left else ""
    session.done(
        f"{name} is gone, with {len(rules)} ACLs and {len(owned) - len(left)} tokens.{others}",
        user=name,
        acls=len(rules),
        tokens=len(owned) - len(left),
    )


def _end(token: tokens.Token, client: Client, folder: Path) -> bool:
    """End a token as who asked for it: the administrator, or a part of the platform. Nobody else can."""
    from moldau.cli import secured_files
    from moldau.client.java_settings import read_file

    part = token.requester.removeprefix("User:")
    if part == secured_files.ADMINISTRATOR:
        tokens.expire(client, token.hmac)
    elif part in secured_files.PARTS:
        given = read_file(str(folder / f"{part}.properties"))
        password = next(text for name, text in given.items() if name.endswith("sasl.password"))
        with client.sibling(**{"sasl.username": part, "sasl.password": password}) as other:
            tokens.expire(other, token.hmac)
    else:
        return False
    return True


@verb("rotate", "moldau secure rotate", "moldau secure rotate /etc/moldau")
def rotate(session: Session, folder: Path = IN) -> None:
    """Replace the certificates. Broker and services use them for new connections, without a restart."""
    from moldau.cli import secured_files

    ends = secured_files.rotate(folder).date().isoformat()
    session.done(f"The certificates are good until {ends}.", folder=str(folder), until=ends)


@verb(
    "check", "moldau secure check", "moldau secure check /etc/moldau", "moldau secure check server.properties -o json"
)
def check(
    session: Session,
    place: Path = argument(
        "The folder of `moldau secure init`, or a broker's file of settings.", default=Path(FOLDER), metavar="PLACE"
    ),
) -> None:
    """List open doors, weak settings and certificates that end soon, of a broker or of all parts."""
    from moldau.admin.weaknesses import find_in

    rows = [{"where": where, "problem": what, "to do": remedy} for where, what, remedy in find_in(place)]
    session.show(rows, empty="Nothing is open that could be closed.")
