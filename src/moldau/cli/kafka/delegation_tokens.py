"""kafka-delegation-tokens: creates, renews, ends and describes delegation tokens."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterable
from datetime import datetime

from moldau.admin import tokens
from moldau.cli.kafka.exceptions import words_of
from moldau.cli.kafka.flags import Flag, Options, Tool, Usage
from moldau.cli.kafka.running import BOOTSTRAP, COMMAND_CONFIG, FAILED, OK, connect, tell_usage
from moldau.client import Client, ClientError

ACTIONS = ("create", "renew", "expire", "describe")
NEEDED = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
FORBIDDEN = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": ("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    "expire": ("renewer-principal", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renewer-principal", "hmac", "max-life-time-period", "renew-time-period", "expiry-time-period"),
}
HEAD = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
WIDTHS = (15, 30, 15, 15, 25, 15, 15, 15)


def run(options: Options) -> int:
    chosen = [name for name in ACTIONS if name in options]
    if len(chosen) != 1:
        raise Usage("Command must include exactly one action: --create, --renew, --expire or --describe")
    (action,) = chosen
    for name in NEEDED[action]:
        if name not in options:
            raise Usage(f'Missing required argument "[{name}]"')
    for name in FORBIDDEN[action]:
        if name in options:
            raise Usage(f'Option "[{action}]" can\'t be used with option "[{name}]"')
    try:
        with connect(options) as client:
            RUN[action](client, options)
    except ClientError as error:
        print(f"Error while executing delegation token command : {words_of(error)}")
        return FAILED
    return OK


def create(client: Client, options: Options) -> None:
    renewers, life = principals(options, "renewer-principal"), options["max-life-time-period"]
    print(f"Calling create token operation with renewers :{shown(renewers)} , max-life-time-period :{life}")
    owner = principals(options, "owner-principal")
    made = tokens.create(client, owner[0] if owner else None, renewers, life)
    print(f"Created delegation token with tokenId : {made.id}")
    print_tokens([made])


def renew(client: Client, options: Options) -> None:
    period = options["renew-time-period"]
    print(f"Calling renew token operation with hmac :{options['hmac']} , renew-time-period :{period}")
    print(f"Completed renew operation. New expiry date : {when(tokens.renew(client, hmac(options), period))}")


def expire(client: Client, options: Options) -> None:
    period = options["expiry-time-period"]
    print(f"Calling expire token operation with hmac :{options['hmac']} , expire-time-period :{period}")
    print(f"Completed expire operation. New expiry date : {when(tokens.expire(client, hmac(options), period))}")


def describe(client: Client, options: Options) -> None:
    owners = principals(options, "owner-principal")
    if owners:
        print(f"Calling describe token operation for owners: {shown(owners)}")
    else:
        print("Calling describe token operation for current user.")
    found = tokens.described(client, owners)  # of nobody without an owner, whatever the line above says, as in Java
    print(f"Total number of tokens : {len(found)}")
    print_tokens(found)


def principals(options: Options, name: str) -> list[str]:
    found = [text.strip() for text in options.all(name)]
    for text in found:
        kind, colon, rest = text.partition(":")
        if not (kind and colon and rest):
            raise Usage(f"expected a string in format principalType:principalName but got {text}")
    return found


def shown(found: Iterable[str]) -> str:
    return f"[{', '.join(found)}]"


def hmac(options: Options) -> bytes:
    try:
        return b64decode(options["hmac"], validate=True)
    except NoBase64:
        raise Usage("The HMAC is not base64.") from None


def when(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")


def print_tokens(found: Iterable[tokens.Token]) -> None:
    print(f"\n{line(HEAD)}")
    for token in found:
        times = map(when, (token.issued_ms, token.expires_ms, token.ends_ms))
        print(line((token.id, token.password, token.owner, token.requester, shown(token.renewers), *times)))


def line(parts: Iterable[str]) -> str:
    return " ".join(f"{part:<{width}}" for part, width in zip(parts, WIDTHS, strict=True))


RUN = {"create": create, "renew": renew, "expire": expire, "describe": describe}
TOOL = Tool(
    "kafka-delegation-tokens",
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    (
        Flag("bootstrap-server", BOOTSTRAP.argument, BOOTSTRAP.help, required=True),
        Flag("command-config", COMMAND_CONFIG.argument, COMMAND_CONFIG.help, required=True),
        Flag("create", help="Create a new delegation token. --renewer-principal names who may renew it."),
        Flag("renew", help="Renew a delegation token. --renew-time-period says for how long."),
        Flag("expire", help="End a delegation token. --expiry-time-period says when."),
        Flag("describe", help="Describe the delegation tokens of --owner-principal; without it, none."),
        Flag("owner-principal", "owner-principal", "The owner of the token, as User:NAME."),
        Flag("renewer-principal", "renewer-principal", "Who may renew the token, as User:NAME; repeatable."),
        Flag("max-life-time-period", "max-life-time-period", "Longest life in milliseconds; -1: the broker's.", int),
        Flag("renew-time-period", "renew-time-period", "Milliseconds to live from now on; -1: the broker's.", int),
        Flag("expiry-time-period", "expiry-time-period", "Milliseconds until its end; -1: at once.", int),
        Flag("hmac", "hmac", "The HMAC of the token, in base64."),
    ),
    run,
    tell_usage,
)
