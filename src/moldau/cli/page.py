"""Makes the page docs/cli.md from the commands themselves: `python -m moldau.cli.page`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from moldau.cli import COMMANDS
from moldau.cli.application import application
from moldau.cli.commands import CLUSTER, REGISTRY

TOUR = """\
moldau topic create orders --partitions 3
printf 'ada:book\\nbob:pen\\nada:ink\\n' | moldau produce orders --key-delimiter :
moldau consume orders --exit -f '%k %s\\n' | sort
# ada book
# ada ink
# bob pen
moldau consume orders --exit --group billing --quiet > /dev/null
moldau group describe billing -o json | grep '"lag": 0' > /dev/null
moldau group reset billing --to-earliest
moldau group reset billing --to-earliest --execute
moldau topic alter orders --set retention.ms=86400000
moldau config show topic orders
moldau topic analyze orders
moldau topic list -o yaml
moldau perf latency --records 20
moldau group delete billing
moldau topic delete orders
# Deleted orders.
"""
HEAD = f"""\
# The command line

<!-- Made by `python -m moldau.cli.page` (make docs). Change the commands in src/moldau/cli instead. -->

`moldau` works on any Kafka: a noun, then a verb. A tour, which a test runs:

```sh
{TOUR}```

## What all commands share
- `-b`, `--bootstrap-servers` names the brokers; otherwise `MOLDAU_BOOTSTRAP_SERVERS` does, the profile, or the default
  `127.0.0.1:9092`. Likewise `-r`, `--registry` and `SCHEMA_REGISTRY_URL` name the Schema Registry.
- `--profile NAME` chooses a cluster by its name. `moldau profile set staging -b kafka.example:9093 -X
  security.protocol=ssl` writes it to `~/.config/moldau/profiles.toml`; `moldau profile use staging` makes it current.
- `-X name=value` sets any setting of librdkafka's clients; `-X schema.registry.basic.auth.user.info=ada:secret` one of
  the registry's client.
- `-o json` and `-o yaml` print the result for programs. A table that goes to a pipe has one line a row.
- Exit codes: 0 success; 1 refused, or not found; 2 a mistake in the command; 3 the answer is no (not healthy, not
  compatible); 130 Ctrl-C. An error is one sentence on stderr that says what to do.
- `moldau --install-completion` lets the shell complete commands, options, topics and groups.
- Times are `2026-11-15T10:00:00` (UTC), milliseconds since 1970, or `-1h` for an hour ago; durations are `90m`, `7d`
  or `PT1H`.

Kafka's own command lines exist too, as `moldau kafka-topics ...` and as scripts.
"""


def markdown() -> str:
    """Return the whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield HEAD
    for row in COMMANDS:
        command = get_command(application([row.name])).commands[row.name]  # type: ignore[attr-defined]
        yield f"## moldau {row.name}\n"
        if not hasattr(command, "commands"):
            yield from _command(command, f"moldau {row.name}")
            for verb in row.verbs:
                group = get_command(application([row.name, verb])).commands[row.name]  # type: ignore[attr-defined]
                yield from _verbs(group, row.name)
            continue
        yield f"{row.help}\n"
        yield from _verbs(command, row.name)


def _verbs(command: Any, name: str) -> Iterator[str]:
    for whole, verb in verbs(command, name):
        yield f"### {whole}\n"
        yield from _command(verb, f"moldau {whole}")


def verbs(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the verbs of a noun with their full names, those of nested groups too."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
    for verb, one in (inner or {}).items():
        yield from verbs(one, f"{name} {verb}")


def _command(command: Any, name: str) -> Iterator[str]:
    """Yield the purpose, the usage, the options and the examples of a command, with a blank line after each."""
    yield f"{_paragraphs(command.help or '')}\n"
    words = [_value(one) for one in command.params if one.param_type_name == "argument"]
    yield f"`{' '.join([name, *words])}`\n"
    own = [f"- {_names(one)}: {_help(one)}" for one in command.params if _is_own(one)]
    if own:
        yield "\n".join(own) + "\n"
    examples = [line.strip().removeprefix("$ ") for line in (command.epilog or "").split("\n\n")]
    shown = [_commented(line) for line in examples if "moldau" in line]
    if shown:
        yield "\n".join(("```sh", *shown, "```", ""))


def _is_own(option: Any) -> bool:
    shared = getattr(option, "rich_help_panel", None) in (CLUSTER, REGISTRY)
    hidden = getattr(option, "hidden", False) or "--help" in option.opts or "--output" in option.opts
    return option.param_type_name == "option" and not shared and not hidden


def _names(option: Any) -> str:
    names = sorted((*option.opts, *option.secondary_opts), key=len)
    value = "" if option.is_flag else f" {_value(option)}"
    return ", ".join(f"`{name}`" for name in names[:-1]) + (", " if names[1:] else "") + f"`{names[-1]}{value}`"


def _value(parameter: Any) -> str:
    return parameter.metavar or parameter.name.upper()


def _help(option: Any) -> str:
    return (option.help or "").replace("|", "\\|").replace("*", "\\*")


def _paragraphs(text: str) -> str:
    return text.strip().replace("\\n", "\\\\n")


def _commented(example: str) -> str:
    """Turn text in brackets after two blanks into a comment."""
    line, _, remark = example.partition("  (")
    return f"{line}  # {remark.rstrip(')')}" if remark else line


if __name__ == "__main__":
    print(markdown(), end="")
