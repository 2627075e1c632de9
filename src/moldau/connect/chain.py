"""The chain of a connector's transforms, as its config describes it.

`transforms` lists aliases in order; `transforms.ALIAS.type` names the class, `.predicate` the alias of a predicate and
`.negate` turns it round; the other settings under the prefix are the transform's own. `definition` has all of these for
validation, `make_links` makes the transforms, `make_chain` a function of them, and `make_straight` a faster one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, Recommender, Width, listed, missing, parse_type
from moldau.connect.data import Record
from moldau.connect.errors import ConfigError, invalid
from moldau.connect.jvm import parts
from moldau.connect.jvm.parts import Both
from moldau.connect.predicates import PREDICATES, Predicate, PredicateClass
from moldau.connect.transforms import TRANSFORMS
from moldau.connect.transforms.kinds import KEY, VALUE, Transform, TransformClass
from moldau.connect.transforms.straight import SEEN_BEFORE, Straight, rule_of

Config = Mapping[str, str]
IMPLICIT = (
    Key("predicate", default=None, doc="The alias of the predicate that decides whether to apply this transform."),
    Key("negate", Kind.BOOLEAN, False, doc="Whether to apply it where the predicate is false."),
)
# What jars have comes first: somebody has installed it.
_TRANSFORMS = Both(parts.TRANSFORMS, {name: row for row in TRANSFORMS for name in row.class_names})
_PREDICATES = Both(parts.PREDICATES, {name: row for row in PREDICATES for name in row.class_names})


def class_name(text: str, known: Mapping[str, Any]) -> str | None:
    """Find a plugin by its class name, or by what comes after the package."""
    if text in known:
        return text
    return next((name for name in known if name.rpartition(".")[2] == text), None)


def transform_class(text: str) -> tuple[str, TransformClass] | None:
    name = class_name(text, _TRANSFORMS)
    return (name, _TRANSFORMS[name]) if name else None


def predicate_class(text: str) -> tuple[str, PredicateClass] | None:
    name = class_name(text, _PREDICATES)
    return (name, _PREDICATES[name]) if name else None


def aliases(config: Config, setting: str) -> list[str]:
    return parse_type(setting, config.get(setting) or "", Kind.LIST)


def no_duplicates(name: str, value: Any) -> None:
    if value and len(set(value)) < len(value):
        raise invalid(name, listed(value), "Duplicate alias provided.")


def definition(config: Config) -> ConfigDef:
    """Return the settings that the aliases of a config bring along."""
    found = ConfigDef()
    for alias in dict.fromkeys(aliases(config, "transforms")):
        found |= _described(config, "transforms", "Transformation", alias, _TRANSFORMS, IMPLICIT)
    for alias in dict.fromkeys(aliases(config, "predicates")):
        found |= _described(config, "predicates", "Predicate", alias, _PREDICATES, ())
    return found


def _described(
    config: Config, setting: str, noun: str, alias: str, known: Mapping[str, Any], implicit: Sequence[Key]
) -> ConfigDef:
    prefix, group = f"{setting}.{alias}.", f"{setting.capitalize()}: {alias}"

    def check(_name: str, _value: Any) -> None:
        if prefix + "negate" in config and prefix + "predicate" not in config and implicit:
            raise ConfigError(
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a "
                "predicate to be negated."
            )

    kind = Key(
        prefix + "type",
        Kind.CLASS,
        importance=Importance.HIGH,
        doc=f"The class of the {noun.lower()} '{alias}'.",
        group=group,
        order=0,
        width=Width.LONG,
        display=f"{noun} type for {alias}",
        validator=check,
        recommender=Recommender(lambda _name, _values: list(known)),
        resolve=lambda text: class_name(text, known),
    )
    name = class_name(config.get(kind.name, "").strip(), known)
    if name is None:
        return ConfigDef([kind])
    own = [key for key in known[name].settings if key.name not in {each.name for each in implicit}]
    return ConfigDef([kind]) | ConfigDef([*implicit, *own]).prefixed(prefix, group)


def make_transform(text: str, config: Config) -> Transform:
    """Make one transform from its class and its settings."""
    found = transform_class(text)
    if found is None:
        raise ConfigError(_unknown("transform", text, _TRANSFORMS))
    name, row = found
    return row.make(row.settings.parse(config), KEY if name.endswith("$Key") else VALUE)


def make_predicate(text: str, config: Config) -> Predicate:
    found = predicate_class(text)
    if found is None:
        raise ConfigError(_unknown("predicate", text, _PREDICATES))
    return found[1].make(found[1].settings.parse(config))


def _unknown(what: str, text: str, known: Mapping[str, Any]) -> str:
    short = {name.rpartition(".")[2]: name for name in known}
    near = get_close_matches(text, [*known, *short], 1)
    return f"There is no {what} {text}." + (f" Did you mean {near[0]}?" if near else "")


@dataclass(frozen=True, slots=True)
class Link:
    """A transform of a chain, and when it applies: always, or where a predicate is not what `negate` says."""

    class_name: str
    transform: Transform
    test: Predicate | None = None
    negate: bool = False

    def run(self, record: Record) -> list[Record]:
        if self.test is not None and self.test(record) is self.negate:
            return [record]
        made = self.transform(record)
        return [made] if isinstance(made, Record) else list(results(made))


def make_links(config: Config) -> list[Link]:
    """Make the transforms of a connector's config, in order."""
    tests = {alias: _part(config, "predicates", alias, make_predicate) for alias in aliases(config, "predicates")}
    links: list[Link] = []
    for alias in aliases(config, "transforms"):
        own = _own(config, f"transforms.{alias}.")
        test = own.get("predicate")
        if test is not None and test not in tests:
            raise ConfigError(f"The predicate {test} of the transform {alias} is not defined")
        negate = bool(parse_type(f"transforms.{alias}.negate", own.get("negate", "false"), Kind.BOOLEAN))
        transform = _part(config, "transforms", alias, make_transform)
        found = transform_class(own["type"].strip())
        links.append(Link(found[0] if found else own["type"], transform, tests[test] if test else None, negate))
    return links


def make_chain(config: Config) -> Callable[[Record], list[Record]]:
    """Make the function that a connector's config describes: a record goes in, and one, none or several come out."""
    links = make_links(config)

    def apply(record: Record) -> list[Record]:
        records = [record]
        for link in links:
            records = [made for each in records for made in link.run(each)]
        return records

    return apply


def make_straight(links: Sequence[Link], seen_before: int = SEEN_BEFORE) -> Straight | None:
    """Make the chain as one function of a record, if each of its transforms has a rule and none has a condition."""
    rules = [None if link.test else rule_of(link.transform) for link in links]
    known = [rule for rule in rules if rule is not None]
    return Straight(known, seen_before) if known and len(known) == len(rules) else None


def results(made: Record | Sequence[Record] | None) -> Sequence[Record]:
    """Return what a transform made as a sequence."""
    if made is None:
        return ()
    return (made,) if isinstance(made, Record) else made


def _own(config: Config, prefix: str) -> dict[str, str]:
    return {name[len(prefix) :]: value for name, value in config.items() if name.startswith(prefix)}


def _part(config: Config, setting: str, alias: str, make: Callable[[str, Config], Any]) -> Any:
    own = _own(config, f"{setting}.{alias}.")
    if "type" not in own:
        raise ConfigError(missing(f"{setting}.{alias}.type"))
    return make(own["type"].strip(), own)
