"""What all commands share: the options that name a cluster, and the handling of errors.

A command is a function whose first parameter is a Session. `command` replaces that parameter by the common options,
and a parameter whose type is a dataclass by an option for each of its fields. It also turns errors into a sentence on
stderr and an exit code (mistakes.py).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, NoReturn, TypeVar, get_type_hints

import typer

from moldau.admin.mistakes import FAILED, INTERRUPTED, MISUSED, PIPE_CLOSED, Mistake, misused
from moldau.cli.options import epilog, option
from moldau.cli.output import Output
from moldau.cli.session import NO_PROFILE, open_session
from moldau.client import Client, ClientError, Error
from moldau.extras import NotInstalled
from moldau.settings import SettingError

T = TypeVar("T")
Body = Callable[..., None]
CLUSTER, REGISTRY = "The cluster", "The registry"
COMPLETION_S = 2.0


def complete_profiles(incomplete: str) -> list[str]:
    """Return names of profiles for the shell to complete."""
    from moldau.cli import profiles

    with suppress(Mistake):
        return [name for name in profiles.load().named if name.startswith(incomplete)]
    return []


BOOTSTRAP = option(
    "--bootstrap-servers -b",
    "The brokers to connect to. (environment: MOLDAU_BOOTSTRAP_SERVERS; otherwise 127.0.0.1:9092)",
    metavar="HOST:PORT,...",
    rich_help_panel=CLUSTER,
    show_default=False,
)
PROFILE = option(
    "--profile",
    "Use this profile instead of the current one. (environment: MOLDAU_PROFILE)",
    metavar="NAME",
    rich_help_panel=CLUSTER,
    autocompletion=complete_profiles,
)
CLIENT_SETTINGS = option(
    "-X", "Set any setting of librdkafka's clients; repeatable.", metavar="NAME=VALUE", rich_help_panel=CLUSTER
)
REGISTRY_URL = "Connect to this registry. (environment: SCHEMA_REGISTRY_URL; otherwise http://127.0.0.1:8081)"
# The common options: their types and how they are declared.
COMMON: dict[str, tuple[Any, Any]] = {
    "registry_user": (
        str | None,
        option(
            "--user",
            "Log in with basic authentication.",
            envvar="SCHEMA_REGISTRY_USER",
            metavar="NAME:PASSWORD",
            rich_help_panel=REGISTRY,
        ),
    ),
    "output": (Output, option("--output -o", "Choose how the result is written.", "table")),
    "bootstrap_servers": (str | None, BOOTSTRAP),
    "registry": (
        str | None,
        option("--registry -r", REGISTRY_URL, metavar="URL", rich_help_panel=REGISTRY, show_default=False),
    ),
    "profile": (str | None, PROFILE),
    "client_settings": (list[str] | None, CLIENT_SETTINGS),
}
NO_REGISTRY = ("registry", "registry_user")
NO_CLUSTER = (*NO_REGISTRY, "bootstrap_servers", "profile", "client_settings")


def noun(without: Sequence[str] = NO_REGISTRY) -> tuple[typer.Typer, Callable[..., Callable[[Body], Body]]]:
    """Make a group of verbs, and the decorator that adds one by its name and examples.

    `without` names the common options that the verbs have no use for.
    """
    app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False)

    def verb(name: str, *examples: str) -> Callable[[Body], Body]:
        def add(body: Body) -> Body:
            app.command(name, epilog=epilog(*examples))(command(body, without))
            return body

        return add

    return app, verb


def command(body: Body, without: Sequence[str] = NO_REGISTRY) -> Body:
    """Give a function the common options in place of its session."""
    common = {name: row for name, row in COMMON.items() if name not in without}
    groups: dict[str, Any] = {name: kind for name, kind in list(get_type_hints(body).items())[1:] if is_dataclass(kind)}

    def run(context: typer.Context, **words: Any) -> None:
        given = {name: words.pop(name) for name in common}
        given.setdefault("profile", NO_PROFILE)
        for name, group in groups.items():
            words[name] = group(**{field.name: words.pop(field.name) for field in fields(group)})
        with handle_errors(context.command_path):
            session = open_session(**given)
            try:
                body(session, **words)
                sys.stdout.flush()
            finally:
                session.connection.close()

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *list(_parameters(body))[1:]]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=declared, annotation=kind)
        for name, (kind, declared) in common.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__doc__, run.__name__ = body.__doc__, body.__name__
    return run


def _parameters(body: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a function, the fields of a dataclass in its place; the first one is left as it is."""
    hints = get_type_hints(body, include_extras=True)
    for position, one in enumerate(inspect.signature(body).parameters.values()):
        if position and is_dataclass(hints[one.name]):
            yield from _parameters(hints[one.name])
        else:
            yield one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)


@contextmanager
def handle_errors(command: str) -> Iterator[None]:
    """Print a sentence and exit with a code for whatever a user, a cluster or a registry does wrong."""
    from moldau.admin.resets import ResetError
    from moldau.serdes.context import SerdeError

    try:
        yield
    except Mistake as error:
        leave(command, str(error), error.code)
    except SettingError as error:
        leave(command, str(error), MISUSED)
    except ClientError as error:
        leave(command, explain(error), FAILED)
    except (SerdeError, NotInstalled, ResetError) as error:
        leave(command, str(error), FAILED)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # Nobody reads our output any more; flushing what is still buffered must not fail at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None


def leave(command: str, sentence: str, code: int) -> NoReturn:
    """Print one line on stderr, named after the command, and exit."""
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


def parse(read: Callable[..., T], *words: Any) -> T:
    """Read a time, a duration or offsets that the user has written."""
    from moldau.admin.resets import ResetError

    try:
        return read(*words)
    except ResetError as error:
        raise misused(str(error)) from None


def explain(error: ClientError) -> str:
    """Return the error and what to do about it."""
    sentence = str(error).rstrip(".") + "."
    return f"{sentence} {HINTS[error.error]}" if error.error in HINTS else sentence


def _from_cluster(names: Callable[[Client], Iterator[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        """Return what the shell offers: nothing if the cluster does not answer."""
        try:
            session = open_session(client_settings=(f"default.api.timeout.ms={COMPLETION_S * 1000:.0f}",))
            try:
                return [name for name in names(session.client) if name.startswith(incomplete)]
            finally:
                session.connection.close()
        except (Mistake, ClientError, SettingError):
            return []

    return complete


def _topics(client: Client) -> Iterator[str]:
    from moldau.admin import topics

    return (topic.name for topic in topics.listed(client))


def _groups(client: Client) -> Iterator[str]:
    from moldau.admin import groups

    return (group.id for group in groups.listed(client))


complete_topics = _from_cluster(_topics)
complete_groups = _from_cluster(_groups)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topics)]
Topics = Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics.", autocompletion=complete_topics)]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_groups)]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups.", autocompletion=complete_groups)]
Pattern = Annotated[str, typer.Argument(help="Only names that match; * stands for anything.")]
Partitions = Annotated[list[int] | None, typer.Option("--partition", "-p", help="Only these partitions; repeatable.")]
Sure = Annotated[bool, typer.Option("--yes", "-y", help="Skip confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Validate only; change nothing.")]
