"""What changed from one JSON Schema to the next, and which changes keep old data valid.

A pair of schemas is compared once and its differences are remembered with paths of its own; a pair that is met again
while it is being compared counts as equal. That is a guess: when a pair turns out to be incompatible, everything is
compared once more with that known, until nothing new is found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import re2

from moldau.serdes.schemas import Parsed
from moldau.serdes.schemas.json_text import dumps

from .differences import PAIRS, Difference, TooLarge, below, messages_of, shortened
from .json_model import Node, Number, model
from .json_rules import BOUNDED, LENIENT, SENTENCES, STRICT
from .matching import matching

Pair = tuple[int, int]


def messages(reader: Parsed, writer: Parsed, lenient: bool, reader_is: str, writer_is: str) -> list[str]:
    allowed = LENIENT if lenient else STRICT
    return messages_of(differences(writer, reader, lenient=lenient), allowed, SENTENCES, reader_is, writer_is)


def differences(original: Parsed, update: Parsed, *, lenient: bool = False) -> list[Difference]:
    """Find all that differs, whether it is allowed or not."""
    old, new = model(original), model(update)
    wrong: dict[Pair, list[Difference]] = {}
    pairs = 0
    while True:
        comparison = Comparison(LENIENT if lenient else STRICT, wrong, pairs=pairs)
        found = comparison.compare(old, new)
        now_wrong = {pair: diffs for pair, diffs in comparison.known.items() if not comparison.fits(diffs)}
        if not comparison.guessed or now_wrong.keys() == wrong.keys():
            return found
        wrong, pairs = now_wrong, comparison.pairs


@dataclass(slots=True)
class Comparison:
    allowed: Collection[str]
    wrong: dict[Pair, list[Difference]]  # what an earlier round found to be incompatible
    known: dict[Pair, list[Difference]] = field(default_factory=dict)
    open_pairs: set[Pair] = field(default_factory=set)
    guessed: bool = False
    pairs: int = 0

    def fits(self, found: Sequence[Difference]) -> bool:
        return all(difference.type in self.allowed for difference in found)

    def compare(self, old: Node | None, new: Node | None) -> list[Difference]:
        if old is None or new is None:
            return [Difference("SCHEMA_ADDED" if old is None else "SCHEMA_REMOVED")] if old is not new else []
        old, new = target(old), target(new)
        pair = (id(old), id(new))
        if pair in self.known:
            return self.known[pair]
        if pair in self.open_pairs:
            self.guessed = self.guessed or pair not in self.wrong
            return self.wrong.get(pair, [])
        self.pairs += 1
        if self.pairs > PAIRS:
            raise TooLarge
        self.open_pairs.add(pair)
        found = shortened(self.differ(old, new), self.allowed)
        self.open_pairs.discard(pair)
        self.known[pair] = found
        return found

    def differ(self, old: Node, new: Node) -> list[Difference]:
        if (old.kind == "combined") != (new.kind == "combined"):
            found = self.one_is_combined(old, new)
            if found is not None:
                return found
        if old.kind != new.kind:
            both_bytes = old.connect_type == new.connect_type == "bytes"
            return [] if old.kind == "false" or new.is_empty or both_bytes else [Difference("TYPE_CHANGED")]
        found = [
            Difference(f"{key.upper()}_CHANGED")
            for key in ("id", "title", "description", "default")
            if old.about.get(key) != new.about.get(key)
        ]
        match old.kind:
            case "string" | "number" | "array" | "object":
                by_kind = {"string": string, "number": number, "array": self.array, "object": self.object}
                found += by_kind[old.kind](old, new)
            case "const" | "enum":
                found += values(old, new)
            case "combined":
                found += self.combined(old, new)
            case "not":
                reverse = self.compare(new.inner, old.inner)
                found += [Difference("NOT_TYPE_NARROWED" if self.fits(reverse) else "NOT_TYPE_EXTENDED", ("not",))]
        return found

    def one_is_combined(self, old: Node, new: Node) -> list[Difference] | None:
        """Compare one schema with several: where one of these is enough, one must fit."""
        several, widens = (new, new.criterion != "allOf") if new.kind == "combined" else (old, old.criterion == "allOf")
        change = "SUM_TYPE_EXTENDED" if several is new else "PRODUCT_TYPE_NARROWED"
        if len(several.parts) != 1 and not widens:
            return None
        for part in several.parts:
            found = self.compare(old, part) if several is new else self.compare(part, new)
            if self.fits(found):
                return found if len(several.parts) == 1 else [*found, Difference(change)]
        return None

    def combined(self, old: Node, new: Node) -> list[Difference]:
        """Pair off parts so that as many as possible fit; those of the shorter side must all find one."""
        found = criterion(old, new)
        if found and found[0].type == "COMBINED_TYPE_CHANGED":
            return found
        before, after = distinct(old.parts), distinct(new.parts)
        if len(before) < len(after):
            found.append(Difference("PRODUCT_TYPE_EXTENDED" if new.criterion == "allOf" else "SUM_TYPE_EXTENDED"))
        elif len(before) > len(after):
            found.append(Difference("PRODUCT_TYPE_NARROWED" if old.criterion == "allOf" else "SUM_TYPE_NARROWED"))
        edges: list[dict[int, list[Difference]]] = []
        for part in before:
            compared = {position: self.compare(part, other) for position, other in enumerate(after)}
            edges.append({position: diffs for position, diffs in compared.items() if self.fits(diffs)})
        pairs = alike_first(edges)
        for position, other in sorted(pairs.items()):
            found += below(f"{old.criterion}/{position}", edges[position][other])
        if len(pairs) < min(len(before), len(after)):
            found.append(Difference("COMBINED_TYPE_SUBSCHEMAS_CHANGED"))
        return found

    def object(self, old: Node, new: Node) -> list[Difference]:
        found = required(old, new)
        for key in dict.fromkeys((*old.properties, *new.properties)):
            found += below("properties", below(key, self.property(key, old, new)))
        found += below("dependencies", self.dependencies(old, new))
        found += below("additionalProperties", self.additional(old, new, "ADDITIONAL_PROPERTIES"))
        found += below("unevaluatedProperties", self.unevaluated(old, new, "UNEVALUATED_PROPERTIES"))
        return found + bounds(old, new)

    def property(self, key: str, old: Node, new: Node) -> list[Difference]:
        before, after = old.properties.get(key), new.properties.get(key)
        if after is None and before is not None:
            return self.gone(before, new, covering(new, key), "PROPERTY")
        if before is None and after is not None:
            return self.property_added(key, old, new, after)
        return self.compare(before, after)

    def gone(self, before: Node, new: Node, covers: Node | None, what: str) -> list[Difference]:
        """Compare a property or item with what the new schema, which does not name it, takes in its place."""
        if is_open(new):
            return [Difference(f"{what}_REMOVED_FROM_OPEN_CONTENT_MODEL")]
        if covers is None:
            never = "_WITH_FALSE" if before.kind == "false" else ""
            return [Difference(f"{what}{never}_REMOVED_FROM_CLOSED_CONTENT_MODEL")]
        return self.covered(self.compare(before, covers), f"{what}_REMOVED")

    def covered(self, found: list[Difference], what: str) -> list[Difference]:
        verdict = "IS_COVERED" if self.fits(found) else "NOT_COVERED"
        return [*found, Difference(f"{what}_{verdict}_BY_PARTIALLY_OPEN_CONTENT_MODEL")]

    def property_added(self, key: str, old: Node, new: Node, after: Node) -> list[Difference]:
        default = "_WITH_DEFAULT" if "default" in after.about else ""
        needed = f"REQUIRED_PROPERTY{default}" if key in new.required else "OPTIONAL_PROPERTY"
        if is_open(old):
            kind = "PROPERTY_WITH_EMPTY_SCHEMA" if after.is_empty else needed
            return [Difference(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL")]
        covers = covering(old, key)
        found = self.covered(self.compare(covers, after), "PROPERTY_ADDED") if covers else []
        return [*found, Difference(f"{needed}_ADDED_TO_UNOPEN_CONTENT_MODEL")]

    def dependencies(self, old: Node, new: Node) -> list[Difference]:
        found: list[Difference] = []
        for key in dict.fromkeys((*old.dependent_required, *new.dependent_required)):
            change = set_change(old.dependent_required.get(key), new.dependent_required.get(key))
            found += [Difference(f"DEPENDENCY_ARRAY_{change}", (key,))] if change else []
        for key in dict.fromkeys((*old.dependent_schemas, *new.dependent_schemas)):
            before, after = old.dependent_schemas.get(key), new.dependent_schemas.get(key)
            if before is None or after is None:
                found.append(Difference(f"DEPENDENCY_SCHEMA_{'ADDED' if before is None else 'REMOVED'}", (key,)))
            else:
                found += below(key, self.compare(before, after))
        return found

    def additional(self, old: Node, new: Node, what: str) -> list[Difference]:
        if old.additional != new.additional:
            return [Difference(f"{what}_{'ADDED' if new.additional else 'REMOVED'}")]
        before, after = old.additional_schema, new.additional_schema
        if (before is None) != (after is None):
            return [Difference(f"{what}_{'NARROWED' if before is None else 'EXTENDED'}")]
        return self.compare(before, after)

    def unevaluated(self, old: Node, new: Node, what: str) -> list[Difference]:
        before, after = old.unevaluated, new.unevaluated
        if before is None and after is None:
            return []
        for one, other, none, some in ((before, after, "ADDED", "EXTENDED"), (after, before, "REMOVED", "NARROWED")):
            if one is not None and one.kind == "false" and (other is None or other.kind != "false"):
                return [Difference(f"{what}_{none}")]
            if one is not None and other is None:
                return [Difference(f"{what}_{some}")]
        assert before is not None and after is not None
        if before.is_empty != after.is_empty:
            return [Difference(f"{what}_{'NARROWED' if before.is_empty else 'EXTENDED'}")]
        return self.compare(before, after)

    def array(self, old: Node, new: Node) -> list[Difference]:
        found = below("items", self.compare(old.items, new.items))
        before, after = old.tuple_items, new.tuple_items
        for position in range(max(len(before), len(after))):
            if position >= len(after):
                inside = self.gone(before[position], new, covering(new), "ITEM")
            elif position >= len(before):
                inside = self.item_added(old, after[position])
            else:
                inside = self.compare(before[position], after[position])
            found += below(f"items/{position}", inside)
        found += below("additionalItems", self.additional(old, new, "ADDITIONAL_ITEMS"))
        found += below("unevaluatedItems", self.unevaluated(old, new, "UNEVALUATED_ITEMS"))
        if old.unique != new.unique:
            found.append(Difference(f"UNIQUE_ITEMS_{'ADDED' if new.unique else 'REMOVED'}", ("uniqueItems",)))
        return found + bounds(old, new)

    def item_added(self, old: Node, after: Node) -> list[Difference]:
        if is_open(old):
            empty = "_WITH_EMPTY_SCHEMA" if after.is_empty else ""
            return [Difference(f"ITEM{empty}_ADDED_TO_OPEN_CONTENT_MODEL")]
        covers = covering(old)
        if covers is None:
            return [Difference("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")]
        return self.covered(self.compare(covers, after), "ITEM_ADDED")


def target(node: Node) -> Node:
    """Follow references to the end; one that leads to itself says nothing."""
    seen: set[int] = set()
    while node.kind == "reference" and node.inner is not None and id(node) not in seen:
        seen.add(id(node))
        node = node.inner
    return node


def is_open(node: Node) -> bool:
    """Say whether anything may come under a name, or at a place, that the schema does not mention."""
    free = node.additional and node.additional_schema is None and not node.patterns
    return free and (node.unevaluated is None or node.unevaluated.is_empty)


def covering(node: Node, key: str | None = None) -> Node | None:
    """Return the schema that holds for a property, or an item, that is not mentioned."""
    for pattern, schema in node.patterns.items():
        if key is not None and finds(pattern, key):
            return schema
    if node.additional_schema is not None:
        return node.additional_schema
    rest = node.unevaluated if node.additional else None
    return None if rest is None or rest.kind == "false" or rest.is_empty else rest


def finds(pattern: str, key: str) -> bool:
    """Search by RE2, in linear time; a pattern beyond it (one that looks ahead, say) covers nothing."""
    try:
        return re2.search(pattern, key) is not None
    except re2.error:
        return False


def required(old: Node, new: Node) -> list[Difference]:
    found: list[Difference] = []
    for key in (key for key in old.properties if key in new.properties):
        if (key in old.required) != (key in new.required):
            default = "_WITH_DEFAULT" if "default" in new.properties[key].about else ""
            change = f"{default}_ADDED" if key in new.required else "_REMOVED"
            found.append(Difference(f"REQUIRED_ATTRIBUTE{change}", ("required", key)))
    return found


def string(old: Node, new: Node) -> list[Difference]:
    if old.pattern == new.pattern:
        return bounds(old, new)
    change = "ADDED" if old.pattern is None else "REMOVED" if new.pattern is None else "CHANGED"
    return [*bounds(old, new), Difference(f"PATTERN_{change}", ("pattern",))]


def number(old: Node, new: Node) -> list[Difference]:
    found = [*bounds(old, new), *multiples(old.bounds.get("multipleOf"), new.bounds.get("multipleOf"))]
    if old.integer != new.integer:
        found.append(Difference("TYPE_NARROWED" if new.integer else "TYPE_EXTENDED"))
    return found


def multiples(old: Number | None, new: Number | None) -> list[Difference]:
    if old is None or new is None:
        return (
            [] if old is new else [Difference(f"MULTIPLE_OF_{'ADDED' if old is None else 'REMOVED'}", ("multipleOf",))]
        )
    before, after = Decimal(str(old)), Decimal(str(new))
    if before == after:
        return []
    change = "EXPANDED" if is_multiple(after, before) else "REDUCED" if is_multiple(before, after) else "CHANGED"
    return [Difference(f"MULTIPLE_OF_{change}", ("multipleOf",))]


def is_multiple(one: Decimal, other: Decimal) -> bool:
    """Divide exactly: as whole numbers of the smallest unit that both have."""
    if not other or abs(one.adjusted() - other.adjusted()) > 1000:
        return False
    unit = min(int(one.as_tuple().exponent), int(other.as_tuple().exponent))
    return int(one.scaleb(-unit)) % int(other.scaleb(-unit)) == 0


def bounds(old: Node, new: Node) -> list[Difference]:
    found: list[Difference] = []
    for keyword, name in BOUNDED[old.kind].items():
        before, after = old.bounds.get(keyword), new.bounds.get(keyword)
        if before is None or after is None:
            change = "" if before is after else "ADDED" if before is None else "REMOVED"
        else:
            change = "" if before == after else "INCREASED" if before < after else "DECREASED"
        found += [Difference(f"{name}_{change}", (keyword,))] if change else []
    return found


def values(old: Node, new: Node) -> list[Difference]:
    change = set_change(set(old.values), set(new.values))
    if not change:
        return []
    return [Difference("ENUM_ARRAY_CHANGED" if old.kind == "const" else f"ENUM_ARRAY_{change}", (old.kind,))]


def set_change(old: set[str] | None, new: set[str] | None) -> str:
    if old is None or new is None:
        return "ADDED" if old is None else "REMOVED"
    if old == new:
        return ""
    return "EXTENDED" if new >= old else "NARROWED" if old >= new else "CHANGED"


def alike_first(edges: Sequence[dict[int, list[Difference]]]) -> dict[int, int]:
    """Match parts so that those choose first that have a partner which differs least."""
    ordered = [sorted(fitting, key=lambda other: len(fitting[other])) for fitting in edges]
    turns = sorted(range(len(edges)), key=lambda turn: len(edges[turn][ordered[turn][0]]) if ordered[turn] else 0)
    return {turns[left]: right for left, right in matching([ordered[turn] for turn in turns]).items()}


def criterion(old: Node, new: Node) -> list[Difference]:
    if old.criterion == new.criterion:
        return []
    single, now_single = len(old.parts) == 1, len(new.parts) == 1
    wider = new.criterion == "anyOf" or (single and (now_single or new.criterion == "oneOf"))
    wider = wider or (now_single and old.criterion == "allOf")
    return [Difference("COMBINED_TYPE_EXTENDED" if wider else "COMBINED_TYPE_CHANGED")]


def distinct(nodes: Sequence[Node]) -> list[Node]:
    """Leave out those that say the same as one before."""
    found: dict[str, Node] = {}
    for node in nodes:
        found.setdefault(dumps(text_of(node)), node)
    return list(found.values())


def text_of(node: Node | None) -> object:
    """Return a schema as a value that is equal for schemas that are written alike."""
    if node is None:
        return None
    facts = [node.kind, node.about, node.bounds, node.pattern, node.integer, node.unique, sorted(node.values)]
    inner = None if node.kind == "reference" else text_of(node.inner)
    tables = (node.properties, node.patterns, node.dependent_schemas)
    needs = {key: sorted(value) for key, value in sorted(node.dependent_required.items())}
    return [
        [*facts, node.criterion, node.ref, sorted(node.required), node.additional, needs],
        [inner, text_of(node.items), text_of(node.additional_schema), text_of(node.unevaluated)],
        [[text_of(part) for part in parts] for parts in (node.parts, node.tuple_items)],
        [{key: text_of(table[key]) for key in sorted(table)} for table in tables],
    ]
