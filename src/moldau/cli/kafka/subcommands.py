"""Command lines as argparse4j reads them: with subcommands, and with mistakes reported under a usage line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moldau.cli.kafka.flags import HAS_BEEN_DEPRECATED, Flag, Mistake, Options, Tool
from moldau.cli.kafka.running import CONTROLLER, FAILED, OK, VERSION, run_guarded, warn_of_deprecated

TYPES = {int: "Long", float: "Double", str: "String"}
CONNECTION = (
    Flag("bootstrap-server", "BOOTSTRAP_SERVER", "connect to these brokers"),
    CONTROLLER,
    Flag("command-config", "COMMAND_CONFIG", "read settings of the client from a properties file"),
)


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand with flags of its own."""

    name: str
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[Options], int]
    at_most_one: tuple[str, ...] = ()  # of these flags, which stand together at the end


@dataclass(frozen=True, slots=True)
class ParsedTool:
    """A tool with such a command line. `program` is its name in messages; it has subcommands, or `run` alone."""

    name: str
    program: str
    about: str
    flags: tuple[Flag, ...]
    commands: tuple[Command, ...] = ()
    run: Callable[[Options], int] | None = None
    one_of: tuple[str, ...] = ()  # exactly one of these is required
    metavar: str = ""  # stands for the subcommands in the usage line
    mistake: str = ""  # how a mistake is reported, if not under the usage line
    helps: bool = False  # print the help if there are no arguments

    def start(self, arguments: list[str]) -> int:
        return run_guarded(lambda: self._run(arguments))

    def _run(self, arguments: list[str]) -> int:
        try:
            if arguments[:1] in (["-h"], ["--help"]) or (not arguments and self.helps):
                print(self.help())
                return OK
            if not arguments:
                raise Mistake("too few arguments")
            if arguments == ["--version"]:
                print(VERSION)
                return OK
            options, run = self.read(arguments)
            warn_of_deprecated(options)
            return run(options)
        except Mistake as error:
            return self._report(str(error), arguments)

    def _report(self, error: str, arguments: Sequence[str]) -> int:
        if self.mistake:
            print(self.mistake.format(error=error), end="", file=sys.stderr)
        else:
            command = next((one for word in arguments for one in self.commands if one.name == word), None)
            print(f"{self.usage(command)}\n{self.program}: error: {error}", file=sys.stderr)
        return FAILED

    def read(self, arguments: Sequence[str]) -> tuple[Options, Callable[[Options], int]]:
        """Read the options and the function that runs them; flags of the tool may come before the subcommand."""
        flags = {flag.name: flag for flag in self.flags}
        command: Command | None = None
        given: dict[str, list[str]] = {}
        rest = list(reversed(arguments))
        while rest:
            token = rest.pop()
            if token.startswith("-") and len(token) > 1:
                self._take(token, rest, flags, given)
            elif command is None and self.commands:
                command = next((one for one in self.commands if one.name == token), None)
                if command is None:
                    names = ",".join(one.name for one in self.commands)
                    raise Mistake(
                        f"invalid choice: '{token}' (choose from '{names.replace(',', chr(39) + ', ' + chr(39))}')"
                    )
                flags |= {flag.name: flag for flag in command.flags}
            else:
                raise Mistake(f"unrecognized arguments: '{token}'")
        self._check(flags, given, command)
        run = command.run if command else self.run
        assert run is not None
        tool = Tool(self.name, self.about, tuple(flags.values()), run, warning=HAS_BEEN_DEPRECATED)
        return Options(tool, given, [command.name] if command else [], arguments), run

    def _take(self, token: str, rest: list[str], flags: dict[str, Flag], given: dict[str, list[str]]) -> None:
        name, equals, value = token.lstrip("-").partition("=")
        if not token.startswith("--"):
            name = next((flag.name for flag in flags.values() if flag.short == name), name)
        flag = flags.get(name)
        if flag is None:
            raise Mistake(f"unrecognized arguments: '{token}'")
        if flag.refused:
            raise Mistake(f"argument --{name}: {flag.refused}")
        values = given.setdefault(name, [])
        if not flag.argument:
            return
        if equals:
            values.append(value)
            return
        taken = 0
        while rest and not (rest[-1].startswith("--")) and (taken == 0 or flag.many):
            values.append(rest.pop())
            taken += 1
        if not taken:
            raise Mistake(f"argument --{name}: expected {'at least ' if flag.many else ''}one argument")
        if not flag.many and len(values) > 1 and not flag.separator:
            del values[0]  # the last one counts

    def _check(self, flags: dict[str, Flag], found: dict[str, list[str]], command: Command | None) -> None:
        if self.commands and command is None:
            raise Mistake("too few arguments")
        for flag in flags.values():
            if flag.required and flag.name not in found:
                raise Mistake(f"argument {_both(flag)} is required")
            for text in found.get(flag.name, ()):
                self._convert(flag, text)
        if self.one_of and not set(self.one_of) & found.keys():
            raise Mistake(f"one of the arguments {' '.join('--' + name for name in self.one_of)} is required")
        given = [name for name in self.one_of if name in found]
        if len(given) > 1:
            raise Mistake(f"argument --{given[1]}: not allowed with argument --{given[0]}")
        first, second, *_ = [*(name for name in found if command and name in command.at_most_one), "", ""]
        if second:
            raise Mistake(f"argument {_both(flags[second])}: not allowed with argument {_both(flags[first])}")

    def _convert(self, flag: Flag, text: str) -> None:
        try:
            flag.parse(text)
        except Mistake:
            kind = TYPES[flag.type]
            why = f"could not convert '{text}' to {kind} (For input string: \"{text}\")"
            raise Mistake(f"argument --{flag.name}: {why}") from None

    def usage(self, command: Command | None = None) -> str:
        """Return the usage line; for a subcommand, after the flags that the tool itself requires."""
        if command:
            needed = [_written(flag) for flag in self.flags if flag.required]
            words = [*needed, command.name, "[-h]", *_usage_words(command)]
        else:
            words = ["[-h]", *(_written(flag) for flag in self.flags)]
        if self.commands and not command:
            words.append((self.metavar or "{" + ",".join(one.name for one in self.commands) + "}") + " ...")
        lines, line, indent = [], f"usage: {self.program}", " " * (len(self.program) + 8)
        for word in words:
            if len(line) + 1 + len(word) > 75:
                lines.append(line)
                line = indent[:-1]
            line += f" {word}"
        return "\n".join([*lines, line])

    def help(self) -> str:
        """Return the usage line, the purpose of the tool, and each flag."""
        lines = [self.usage(), "", self.about, ""]
        if self.commands:
            lines += ["subcommands:", *(f"  {one.name:<22} {one.help}" for one in self.commands), ""]
        lines += ["named arguments:", "  -h, --help             show this help message and exit"]
        for flag in self.flags:
            shown = f"--{flag.name}{' ' + flag.argument if flag.argument else ''}"
            lines.append(f"  {shown:<22} {flag.help}")
        return "\n".join(lines)


def _both(flag: Flag) -> str:
    """Return the long and the short name of a flag."""
    return f"--{flag.name}/-{flag.short}" if flag.short else f"--{flag.name}"


def _usage_words(command: Command) -> list[str]:
    """Return the flags of a subcommand for its usage line; a bar separates those that exclude each other."""
    words = [_written(flag) for flag in command.flags if flag.name not in command.at_most_one]
    group = [_written(flag)[1:-1] for flag in command.flags if flag.name in command.at_most_one]
    return words + "[{}]".format(" |\n".join(group)).split("\n") if group else words


def _written(flag: Flag) -> str:
    word = f"--{flag.name}" + (f" {flag.argument}" if flag.argument else "")
    if flag.many:
        word += f" [{flag.argument} ...]"
    return word if flag.required else f"[{word}]"
