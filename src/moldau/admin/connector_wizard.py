"""Questions whose answers make the config of a connector, from what a worker says when it validates one.

The worker knows the settings, and what is wrong with them: after each answer it validates the config again. `prompt`
asks one question and returns the answer, `tell` shows a line, so a terminal and a test have the same conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote

from moldau.admin.connectors import answered

Ask = Callable[..., Any]  # method, path and body of a request
MAX_QUESTIONS = 1000  # a bound for answers that are wrong again and again
LATER = {"name", "connector.class"}  # they are asked first


@dataclass(frozen=True, slots=True)
class Question:
    """A setting that needs an answer, and why."""

    name: str
    documentation: str
    default: str | None
    choices: tuple[str, ...]
    errors: tuple[str, ...]
    is_secret: bool


def questions(found: Mapping[str, Any], given: Mapping[str, str]) -> list[Question]:
    """Return the settings that a config lacks, or that are wrong, in the order in which the worker has them."""
    made = []
    for row in sorted(answered(found), key=lambda row: (row["value"]["name"] not in given, not _is_required(row))):
        value = row["value"]
        if value["name"] in LATER or not value["visible"] or not value["errors"]:
            continue
        made.append(question_of(row, given))
    return made


def _is_required(row: Mapping[str, Any]) -> bool:
    return bool(row["definition"]["required"])


def question_of(row: Mapping[str, Any], given: Collection[str]) -> Question:
    """Return the question for a setting, from its row in a validation. That it is missing is no error yet."""
    value, definition = row["value"], row["definition"]
    is_given = value["name"] in given
    errors = tuple(dict.fromkeys(value["errors"])) if is_given or not definition["required"] else ()
    return Question(
        value["name"],
        definition["documentation"],
        definition["default_value"],
        tuple(value["recommended_values"]),
        errors,
        definition["type"] == "PASSWORD",
    )


def text_of(one: Question) -> str:
    """Write a question: the setting, what it means, and what may be answered."""
    return f"{one.name}: {hint_of(one)}"


def hint_of(one: Question) -> str:
    """Write what a setting means, and what may be answered."""
    hints = [f"one of {', '.join(one.choices[:12])}"] if one.choices else []
    hints += [f"default {one.default}"] if one.default else []
    return one.documentation + (f" ({'; '.join(hints)})" if hints else "")


def converse(ask: Ask, prompt: Callable[[str, bool], str], tell: Callable[[str], None]) -> dict[str, str]:
    """Ask until the config is valid, then for further settings; return it."""
    plugin = _plugin(ask, prompt, tell)
    config = {"name": _name(ask, prompt, tell), "connector.class": plugin}
    for _ in range(MAX_QUESTIONS):
        left = questions(validated(ask, config), config)
        if left:
            _answer(left[0], config, prompt, tell)
        elif not _further(ask, config, prompt, tell):
            return config
    raise ValueError("There were too many questions.")


def _plugin(ask: Ask, prompt: Callable[[str, bool], str], tell: Callable[[str], None]) -> str:
    names = [one["class"].rpartition(".")[2] for one in ask("GET", "/connector-plugins")]
    for number, name in enumerate(names, 1):
        tell(f"{number:3} {name}")
    short = {name.removesuffix("Connector"): name for name in names} | {name: name for name in names}
    for _ in range(MAX_QUESTIONS):
        answer = prompt("Which connector, by number or name?", False)
        if answer.isdigit() and 0 < int(answer) <= len(names):
            return names[int(answer) - 1]
        if answer in short:
            return short[answer]
        near = get_close_matches(answer, short, 1, 0.4)
        tell(f"There is no connector {answer}." + (f" Did you mean {near[0]}?" if near else ""))
    raise ValueError("No connector was named.")


def _name(ask: Ask, prompt: Callable[[str, bool], str], tell: Callable[[str], None]) -> str:
    taken = set(ask("GET", "/connectors"))
    for _ in range(MAX_QUESTIONS):
        answer = prompt("What is its name?", False)
        if answer and answer not in taken:
            return answer
        tell(f"There is a connector {answer} already." if answer else "A connector needs a name.")
    raise ValueError("No name was given.")


def validated(ask: Ask, config: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what the worker says about a config that names its class."""
    return ask("PUT", f"/connector-plugins/{quote(config['connector.class'], safe='')}/config/validate", dict(config))


def _answer(
    one: Question, config: dict[str, str], prompt: Callable[[str, bool], str], tell: Callable[[str], None]
) -> None:
    for error in one.errors:
        tell(error)
    answer = prompt(text_of(one), one.is_secret)
    if answer:
        config[one.name] = answer
    else:
        config.pop(one.name, None)


def _further(ask: Ask, config: dict[str, str], prompt: Callable[[str, bool], str], tell: Callable[[str], None]) -> bool:
    """Take one more setting, which may be one that was answered before; return whether there was one."""
    answer = prompt("Another setting, as name=value? Empty to finish, ? to list them.", False)
    if not answer:
        return False
    if answer == "?":
        for row in answered(validated(ask, config)):
            tell(text_of(question_of(row, {row["value"]["name"]})))
        return True
    name, sign, text = answer.partition("=")
    if not sign:
        tell(f"{answer!r} is not written as name=value.")
    elif text.strip():
        config[name.strip()] = text.strip()
    elif name.strip() not in LATER:
        config.pop(name.strip(), None)
    return True
