"""The shell in a terminal: a prompt of several lines with history, completion and colours, and lines in colours."""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from moldau.cli.output import PATIENCE_S
from moldau.sql.lexer import NON_RESERVED, RESERVED
from moldau.sql.shell.completing import complete
from moldau.sql.shell.names import Names, described_signatures, load
from moldau.sql.shell.remote import RemoteError
from moldau.sql.shell.shell import COMMANDS, ERROR, HINT, Shell, find
from moldau.sql.shell.statements import split, words

COLOURS = {ERROR: "\x1b[31m", HINT: "\x1b[33m"}
RESET, CLEAR = "\x1b[0m", "\x1b[2J\x1b[H"
STYLE = Style.from_dict(
    {"keyword": "bold ansiblue", "text": "ansigreen", "comment": "ansibrightblack", "number": "ansicyan"}
)
_PART = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*(?:'|\Z))|(?P<quoted>`[^`]*(?:`|\Z))"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>[A-Za-z_][A-Za-z0-9_@]*)|(?P<other>.)",
    re.DOTALL,
)
GREETING = "Connected to {url} (version {version}, service {service}). `help` lists the commands of this shell."


def printing(colours: bool) -> Callable[[str, str], None]:
    """Return the function that writes a line: errors and hints in colours, if there are any."""

    def write(line: str, meaning: str) -> None:
        colour = COLOURS.get(meaning) if colours else None
        print(f"{colour}{line}{RESET}" if colour else line, flush=True)

    return write


def width() -> int | None:
    """Return the width of the terminal; a pipe has none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def clear() -> None:
    print(CLEAR, end="", flush=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something takes long, from two seconds on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} ...")
    timer = threading.Timer(PATIENCE_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def is_complete(text: str) -> bool:
    """Return whether what was typed can be executed: it ends with a semicolon, or is a command."""
    statements, rest = split(text)
    return not words(text, 1) or (bool(statements) and not rest) or (not statements and find(text) is not None)


def history() -> History:
    """Return the history of former sessions, in a file that only its owner can read."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "moldau" / "sql-history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


class CatalogueCompleter(Completer):
    """Completes from the live catalogue. It is loaded again after statements that may have changed it."""

    def __init__(self, shell: Shell) -> None:
        self._shell, self._names, self._seen = shell, Names(), -1

    def names(self) -> Names:
        if self._seen != self._shell.changes:
            self._seen = self._shell.changes
            try:
                self._names = load(self._shell.server)
            except RemoteError:
                self._seen = -1  # the server is asked again
        return self._names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        names = self.names()
        commands = [row.words for row in COMMANDS]
        for one in complete(document.text_before_cursor, document.text_after_cursor, names, commands):
            yield Completion(one.text, -one.replaces, display_meta=one.remark or self._signature(one.text, names))

    def _signature(self, text: str, names: Names) -> str:
        """Return the signature of a function that only the server knows."""
        name = text.rstrip("(").upper()
        if not text.endswith("(") or names.functions.get(name) != []:
            return ""
        names.functions[name] = described_signatures(self._shell.server, name)
        return next(iter(names.functions[name]), "")


class Colours(Lexer):
    """Colours statements as they are typed."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        rows: list[StyleAndTextTuples] = [[]]
        for match in _PART.finditer(document.text):
            style = _style(match)
            for at, piece in enumerate(match.group().split("\n")):
                if at:
                    rows.append([])
                rows[-1].append((style, piece))
        return lambda line: rows[line] if line < len(rows) else []


def _style(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    if kind == "word":
        return "class:keyword" if match.group().upper() in RESERVED | NON_RESERVED else ""
    return f"class:{kind}" if kind in ("comment", "text", "number") else ""


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # the completion is taken; the line goes on

    return keys


def prompt_session(shell: Shell, **more: Any) -> PromptSession[str]:
    """Return the prompt of a shell."""
    return PromptSession(
        "ksql> ",
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
        completer=ThreadedCompleter(CatalogueCompleter(shell)),
        complete_while_typing=True,
        lexer=Colours(),
        style=STYLE,
        key_bindings=_keys(),
        **{"history": history(), **more},
    )


def converse(shell: Shell, **more: Any) -> None:
    """Read and execute until `exit` or Ctrl-D. Ctrl-C drops what is typed."""
    session = prompt_session(shell, **more)
    while not shell.ended:
        try:
            text = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            shell.run(text)
        except KeyboardInterrupt:
            shell.write_line("Interrupted", ERROR)
