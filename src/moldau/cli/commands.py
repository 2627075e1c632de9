"""What all commands share: the options that lead to a cluster, and what becomes of errors.

A command is a function whose first parameter is a Session; `verb` gives it the options for that one, examples below
its help, a sentence on stderr instead of a traceback, and exit codes (mistakes.py).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any, get_type_hints

import typer

from moldau.admin.mistakes import FAILED, INTERRUPTED, MISUSED, PIPE_CLOSED, Mistake
from moldau.cli import session
from moldau.cli.output import Output
from moldau.client import Client, ClientError, Error
from moldau.extras import NotInstalled
from moldau.settings import SettingError

Body = Callable[..., None]
CLUSTER, REGISTRY = "The cluster", "The registry"
COMPLETION_S = 2.0

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        help="The brokers. (environment: MOLDAU_BOOTSTRAP_SERVERS; else 127.0.0.1:9092)",
        rich_help_panel=CLUSTER,
        show_default=False,
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="A profile instead of the current one. (environment: MOLDAU_PROFILE)",
        rich_help_panel=CLUSTER,
        autocompletion=lambda incomplete: complete_profiles(incomplete),
    ),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "-X", metavar="NAME=VALUE", help="Any setting of librdkafka's clients; repeatable.", rich_help_panel=CLUSTER
    ),
]
Registry = Annotated[
    str | None,
    typer.Option(
        "--registry",
        "-r",
        metavar="URL",
        help="The registry. (environment: SCHEMA_REGISTRY_URL; else http://127.0.0.1:8081)",
        rich_help_panel=REGISTRY,
        show_default=False,
    ),
]
Format = Annotated[Output, typer.Option("--output", "-o", help="How the result is written.")]

COMMON: dict[str, tuple[Any, Any]] = {
    "output": (Format, Output.table),
    "bootstrap_servers": (Bootstrap, None),
    "registry": (Registry, None),
    "profile": (Profile, None),
    "client_settings": (Given, None),
}


def verb(
    app: typer.Typer, name: str, examples: Sequence[str], *, without: Sequence[str] = ("registry",)
) -> Callable[[Body], Body]:
    """Add a command to a noun. `without` names the common options that it has no use for."""

    def add(body: Body) -> Body:
        app.command(name, epilog=epilog(examples))(command(body, without))
        return body

    return add


def epilog(examples: Sequence[str]) -> str:
    """Examples as typer wants them: a paragraph each."""
    return "\n\n".join(("Examples:", *(f"$ {example}" for example in examples)))


def noun() -> typer.Typer:
    """A group of verbs."""
    return typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)


def command(body: Body, without: Sequence[str] = ("registry",)) -> Body:
    """The function with the common options in place of its session."""
    common = {name: row for name, row in COMMON.items() if name not in without}
    hints = get_type_hints(body, include_extras=True)
    _, *own = inspect.signature(body).parameters.values()

    def run(**words: Any) -> None:
        context = words.pop("context")
        told = {name: words.pop(name) for name in common}
        told["given"] = told.pop("client_settings", None) or ()
        told.setdefault("profile", session.NO_PROFILE)
        with errors_told(context.command_path):
            opened = session.opened(**told)
            try:
                body(opened, **words)
                sys.stdout.flush()
            finally:
                opened.connection.close()

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *(one.replace(annotation=hints[one.name]) for one in own)]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in common.items()
    ]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__, run.__name__ = body.__doc__, body.__name__
    return run


@contextmanager
def errors_told(command: str) -> Iterator[None]:
    """A sentence and an exit code for whatever a user, a cluster or a registry does wrong."""
    from moldau.serdes.context import SerdeError

    try:
        yield
    except Mistake as error:
        leave(command, str(error), error.code)
    except SettingError as error:
        leave(command, str(error), MISUSED)
    except ClientError as error:
        leave(command, told_of(error), FAILED)
    except (SerdeError, NotInstalled) as error:
        leave(command, str(error), FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered would be complained of at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None


def leave(command: str, sentence: str, code: int) -> None:
    """One line on stderr, named after the command, and the end."""
    print(f"{command}: {sentence}", file=sys.stderr)
    raise typer.Exit(code)


HINTS = {
    Error.NETWORK_EXCEPTION: "Is a broker there? `moldau up` starts one; -b or a profile names another.",
    Error.REQUEST_TIMED_OUT: "`moldau doctor` looks for what is wrong.",
    Error.UNKNOWN_TOPIC_OR_PARTITION: "`moldau topic list` shows what there is.",
    Error.TOPIC_AUTHORIZATION_FAILED: "`moldau acl list` shows who may do what.",
    Error.CLUSTER_AUTHORIZATION_FAILED: "`moldau acl list` shows who may do what.",
    Error.GROUP_AUTHORIZATION_FAILED: "`moldau acl list` shows who may do what.",
    Error.SECURITY_DISABLED: "The brokers have no authorizer: set authorizer.class.name and start them again.",
    Error.GROUP_ID_NOT_FOUND: "`moldau group list` shows what there is.",
    Error.NON_EMPTY_GROUP: "Stop its members first; `moldau group describe` shows them.",
    Error.TOPIC_DELETION_DISABLED: "Brokers allow it with delete.topic.enable=true.",
    Error.MESSAGE_TOO_LARGE: "`moldau topic alter TOPIC --set max.message.bytes=N` lets a topic take larger ones.",
    Error.UNSUPPORTED_VERSION: "The brokers are too old for this.",
}


def told_of(error: ClientError) -> str:
    """The error and what to do about it."""
    sentence = str(error).rstrip(".") + "."
    return f"{sentence} {HINTS[error.error]}" if error.error in HINTS else sentence


def complete_profiles(incomplete: str) -> list[str]:
    """Names of profiles for the shell."""
    from moldau.cli import profiles

    with suppress(Mistake):
        return [name for name in profiles.load().named if name.startswith(incomplete)]
    return []


def _from_cluster(ask: Callable[[Client], list[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        """What the shell offers; nothing where the cluster cannot be asked."""
        try:
            opened = session.opened(given=(f"default.api.timeout.ms={COMPLETION_S * 1000:.0f}",))
            try:
                return [name for name in ask(opened.client) if name.startswith(incomplete)]
            finally:
                opened.connection.close()
        except (Mistake, ClientError, SettingError):
            return []

    return complete


def _topics(client: Client) -> list[str]:
    from moldau.admin import topics

    return [topic.name for topic in topics.listed(client)]


def _groups(client: Client) -> list[str]:
    from moldau.admin import groups

    return [group.id for group in groups.listed(client)]


complete_topics = _from_cluster(_topics)
complete_groups = _from_cluster(_groups)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Topics.", autocompletion=complete_topics)]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_groups)]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before.")]
