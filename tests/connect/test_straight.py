"""A chain of transforms as one function makes of a record what its steps make, or leaves it to them."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.connect import data
from moldau.connect.chain import make_chain, make_links, make_straight
from moldau.connect.data import INT32, STRING, Header, Instant, Record, Struct
from moldau.connect.errors import ConnectError
from moldau.connect.transforms.straight import MOST_SHAPES, SEEN_BEFORE, Part
from tests.connect.judge import coding, ours
from tests.connect.judge.inputs import Inputs
from tests.connect.judge.subjects import SUBJECTS

TRANSFORMS = "org.apache.kafka.connect.transforms."
# How many of a hundred random records a chain must serve at least: the others have no schema, nulls, or other fields.
SERVED = {
    "Cast$Value": 20,
    "Cast$Key": 20,
    "DropHeaders": 100,
    "ExtractField$Value": 5,
    "HeaderFrom$Value": 5,
    "HeaderFrom$Key": 5,
    "HoistField$Value": 50,
    "HoistField$Key": 50,
    "InsertField$Value": 25,
    "InsertField$Key": 25,
    "InsertHeader": 100,
    "MaskField$Value": 20,
    "RegexRouter": 50,
    "ReplaceField$Value": 5,
    "SetSchemaMetadata$Value": 20,
    "TimestampConverter$Value": 2,
    "TimestampRouter": 50,
    "ValueToKey": 5,
    "chain": 0.2,
}
MOST_STEPS, CHAINS_SERVED = 4, 10
ROUNDS, ITEMS = 40, 10
ROW = data.struct([("name", STRING), ("count", INT32), ("note", STRING.but(optional=True))])


@pytest.mark.parametrize("name", SERVED)
def test_both_ways_make_the_same(name: str) -> None:
    subject, served, asked = SUBJECTS[name], 0, 0
    for number in range(ROUNDS):
        inputs = Inputs(f"straight {name} {number}")
        config = inputs.config = subject.config(inputs)
        items = [subject.item(inputs) for _ in range(ITEMS)]
        answers = ours.answer(subject.op, subject.class_name, config, items)  # compares both ways
        if isinstance(answers, dict):
            continue  # the settings are refused
        asked += ITEMS
        whole = config if subject.op == "chain" else ours.alone(subject.class_name, config)
        straight = make_straight(make_links(whole), 0)
        served += sum(straight is not None and straight(item) is not None for item in items)
    assert asked and served * 100 >= SERVED[name] * asked, f"{served} of {asked}"


def test_chains_make_the_same_both_ways() -> None:
    served, asked = 0, 0
    for number in range(4 * ROUNDS):
        inputs = Inputs(f"straight chain {number}")
        steps = [
            inputs.one([name for name in SERVED if name != "chain"]) for _ in range(inputs.one(range(1, MOST_STEPS)))
        ]
        config = chain(*((name, SUBJECTS[name].config(inputs)) for name in steps))
        items = [inputs.record() for _ in range(ITEMS)]
        if isinstance(ours.answer("chain", "", config, items), dict):
            continue
        asked += ITEMS
        straight = make_straight(make_links(config), 0)
        served += sum(straight is not None and straight(item) is not None for item in items)
    assert asked and served * 100 >= CHAINS_SERVED * asked, f"{served} of {asked}"


def chain(*steps: tuple[str, dict[str, str]]) -> dict[str, str]:
    config = {"transforms": ",".join(f"t{at}" for at in range(len(steps)))}
    for at, (name, settings) in enumerate(steps):
        config[f"transforms.t{at}.type"] = TRANSFORMS + name
        config |= {f"transforms.t{at}.{key}": value for key, value in settings.items()}
    return config


LONG = chain(
    (
        "InsertField$Value",
        {"topic.field": "origin", "timestamp.field": "at?", "static.field": "kind"} | {"static.value": "7"},
    ),
    ("Cast$Value", {"spec": "count:string,kind:int8"}),
    ("ReplaceField$Value", {"renames": "count:how_many", "exclude": "note"}),
    ("MaskField$Value", {"fields": "name", "replacement": "***"}),
    ("ValueToKey", {"fields": "kind"}),
    ("RegexRouter", {"regex": "(.*)", "replacement": "x-$1"}),
    ("InsertHeader", {"header": "h", "value.literal": "1"}),
    ("HoistField$Value", {"field": "row"}),
)


def row(**values: Any) -> Record:
    made = Struct(ROW, tuple({"name": "ann", "count": 3, "note": None, **values}.values()))
    return Record("t", 0, None, None, ROW, made, 1_700_000_000_000, (Header("old", STRING, "x"),))


def test_a_long_chain_is_one_function() -> None:
    straight = make_straight(make_links(LONG), 0)
    assert straight is not None
    for record in (row(), row(note="here"), row().but(timestamp=None)):
        made = straight(record)
        assert made is not None
        (stepped,) = make_chain(LONG)(record)
        assert coding.record(made) == coding.record(stepped)
        assert made.topic == "x-t" and [each.name for each in made.headers] == ["old", "h"]


@pytest.mark.parametrize("values", [{"count": None}, {"count": 1 << 40}, {"count": "3"}, {"name": None}, {"note": 1}])
def test_what_does_not_fit_goes_step_by_step(values: dict[str, Any]) -> None:
    straight = make_straight(make_links(LONG), 0)
    assert straight is not None
    assert straight(row(**values)) is None
    assert straight(row()) is not None
    assert straight(row().but(value=None)) is None


def test_what_a_step_refuses_is_refused_by_the_step() -> None:
    config = chain(("Cast$Value", {"spec": "name:int32"}))
    straight = make_straight(make_links(config), 0)
    assert straight is not None
    assert straight(row()) is None
    with pytest.raises(ConnectError, match=r"(?i)name|ann|integer"):
        make_chain(config)(row())
    made = straight(row(name="12"))
    assert made is not None and made.value["name"] == 12


def test_a_logical_type_whose_value_is_cast_is_left_to_the_steps() -> None:
    """Its schema keeps the name, which the value no longer fits: the next transform may refuse it."""
    straight = make_straight(
        make_links(chain(("Cast$Value", {"spec": "int32"}), ("HoistField$Value", {"field": "a"}))), 0
    )
    assert straight is not None
    assert straight(row().but(value_schema=data.TIME_SCHEMA, value=Instant(5))) is None
    assert straight(row().but(value_schema=STRING, value="5")) is not None


def test_fields_are_cast_only_where_the_fields_are_known() -> None:
    """A struct that came out of another one is in one piece."""
    config = chain(("ExtractField$Value", {"field": "row"}), ("Cast$Value", {"spec": "count:string"}))
    straight = make_straight(make_links(config), 0)
    assert straight is not None
    outer = data.struct([("row", ROW)])
    nested = row().but(value_schema=outer, value=Struct(outer, (row().value,)))
    assert straight(nested) is None
    (stepped,) = make_chain(config)(nested)
    assert stepped.value.values == ("ann", "3", None)


def test_a_part_has_all_fields_of_its_schema() -> None:
    with pytest.raises(ValueError, match="0 of 3 fields"):
        Part(ROW, None, ())


def test_a_condition_or_a_step_without_a_rule_leaves_all_to_the_steps() -> None:
    config = chain(("InsertHeader", {"header": "h", "value.literal": "1"}))
    conditional = {"predicates": "p", "predicates.p.type": TRANSFORMS + "predicates.RecordIsTombstone"}
    assert make_straight(make_links(config | conditional | {"transforms.t0.predicate": "p"})) is None
    assert make_straight(make_links(chain(("Flatten$Value", {})))) is None
    assert make_straight([]) is None


def test_a_shape_is_written_after_some_records_and_few_are_kept() -> None:
    straight = make_straight(make_links(LONG))
    assert straight is not None
    assert [straight(row()) is not None for _ in range(SEEN_BEFORE + 2)] == [False] * SEEN_BEFORE + [True, True]
    for number in range(3 * MOST_SHAPES):
        schema = data.struct([*((each.name, each.schema) for each in ROW.fields), (f"f{number}", STRING)])
        record = row().but(value_schema=schema, value=Struct(schema, ("ann", 3, None, "")))
        assert [straight(record) for _ in range(SEEN_BEFORE + 1)][-1] is not None
        assert len(straight._known) <= MOST_SHAPES and len(straight._seen) <= MOST_SHAPES


def test_schemas_that_come_seldom_are_not_remembered_for_ever() -> None:
    straight = make_straight(make_links(LONG))
    assert straight is not None
    for number in range(3 * MOST_SHAPES):
        schema = data.struct([(f"f{number}", STRING)])
        assert straight(row().but(value_schema=schema, value=Struct(schema, ("",)))) is None
    assert len(straight._seen) <= MOST_SHAPES
