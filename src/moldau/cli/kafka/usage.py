"""The text of `--help`: the flags of a tool in two columns, sorted by name."""

from __future__ import annotations

from textwrap import wrap

from moldau.cli.kafka.flags import COMMON, Flag, Tool

LEFT, RIGHT = 40, 39


def text(tool: Tool) -> str:
    """Return the two columns with their headings."""
    lines = [*_row("Option", "Description"), *_row("------", "-----------")]
    for flag in sorted((*tool.flags, *COMMON), key=lambda flag: flag.name):
        lines += _row(_left(flag), words(flag))
    return "\n".join(lines)


def words(flag: Flag) -> str:
    """Return the help of a flag, whether it is deprecated or refused, and its default."""
    parts = [flag.help]
    if flag.deprecated:
        parts.append(f"(DEPRECATED: use --{flag.deprecated}.)")
    if flag.refused:
        parts.append(f"(Refused: {flag.refused})")
    if flag.default not in (None, ""):
        parts.append(f"(default: {flag.default})")
    return " ".join(part for part in parts if part)


def _left(flag: Flag) -> str:
    argument = {str: "String", int: "Integer", float: "Double"}[flag.type]
    if not flag.argument:
        return f"--{flag.name}"
    inner = f"{argument}: {flag.argument}"
    return f"--{flag.name} [{inner}]" if flag.optional else f"--{flag.name} <{inner}>"


def _row(left: str, right: str) -> list[str]:
    lefts, rights = wrap(left, LEFT - 1, subsequent_indent="  ") or [""], wrap(right, RIGHT) or [""]
    height = max(len(lefts), len(rights))
    lefts += [""] * (height - len(lefts))
    rights += [""] * (height - len(rights))
    return [f"{one:<{LEFT}} {other}".rstrip() for one, other in zip(lefts, rights, strict=True)]
