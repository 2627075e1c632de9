"""Transforms of our own, and the chain; the judge compares the others with Connect's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from moldau.connect import chain, data
from moldau.connect.config_def import rows
from moldau.connect.converters import CONVERTERS, make_converter
from moldau.connect.data import INT32, STRING, Header, Int32, Record, Struct
from moldau.connect.errors import ConfigError, ConnectError, DataError
from moldau.connect.predicates import PREDICATES
from moldau.connect.transforms import TRANSFORMS
from moldau.connect.transforms.own import transform

ORDER = data.struct({"id": INT32, "items": data.array(STRING), "price": data.FLOAT64}, name="order")


def order(**more: Any) -> Record:
    value = Struct.of(ORDER, {"id": 7, "items": ["a", "b"], "price": 2.5} | more)
    return Record("orders", 0, value_schema=ORDER, value=value, timestamp=5, headers=(Header("h", STRING, "x"),))


def loose(**value: Any) -> Record:
    return Record("orders", value=value)


def run(name: str, record: Record, **settings: str) -> list[Record]:
    config = {key.replace("_", "."): value for key, value in settings.items()}
    return list(chain.results(chain.make_transform(name, config)(record)))


def test_explode_makes_a_record_for_each_element() -> None:
    made = run("Explode$Value", order(), field="items", index_field="at")
    assert [(each.value["items"], each.value["at"], each.value["id"]) for each in made] == [("a", 0, 7), ("b", 1, 7)]
    assert made[0].value_schema is not None
    assert made[0].value_schema.by_name["items"].schema == STRING
    made[0].value.validate()


def test_explode_of_a_map_counts_in_ints() -> None:
    first, second = run("Explode$Value", loose(items=[1, 2]), field="items", index_field="at")
    assert (first.value, second.value) == ({"items": 1, "at": 0}, {"items": 2, "at": 1})
    assert type(first.value["at"]) is Int32


@pytest.mark.parametrize("record", [order(items=[]), loose(items=[]), loose(other=1)])
def test_explode_drops_or_keeps_what_is_empty(record: Record) -> None:
    assert run("Explode$Value", record, field="items") == []
    (kept,) = run("Explode$Value", record, field="items", keep_empty="true")
    assert (kept.value["items"] if record.value_schema else kept.value.get("items")) is None


def test_explode_refuses_what_is_not_an_array() -> None:
    for record in (order(), loose(price=2.5)):
        with pytest.raises(DataError, match="not an array"):
            run("Explode$Value", record, field="price")


def test_sql_keeps_what_the_condition_allows() -> None:
    assert run("Sql$Value", order(), where="value.price > 2 and value.id = 7")
    assert not run("Sql$Value", order(), where="value.price > 3")
    assert not run("Sql$Value", loose(price=None), where="value.price > 3")


def test_sql_computes_a_field() -> None:
    (made,) = run("Sql$Value", order(), expression="value.price * 2", field="double", result_type="float64")
    assert (made.value["double"], made.value["id"]) == (5.0, 7)
    made.value.validate()
    (plain,) = run("Sql$Value", loose(price=2), expression="value.price * 2", field="double")
    assert plain.value == {"price": 2, "double": 4}


def test_sql_replaces_the_key() -> None:
    (made,) = run("Sql$Key", order(), expression="upper(headers['h'])")
    assert (made.key, made.value) == ("X", order().value)


def test_an_expression_replaces_a_field_with_another_type() -> None:
    (made,) = run("Python$Value", order(), expression="str(value['id']) + topic", field="id")
    assert made.value["id"] == "7orders"
    made.value.validate()


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"expression": "open('x')"}, "uses open"),
        ({"expression": "().__class__"}, "may not use .__class__"),
        ({"expression": "(x for x in value).gi_frame"}, "may not use .gi_frame"),
        ({"expression": "'{0.a}'.format(value)"}, "may not use .format"),
        ({"expression": "9 ** 9"}, "may not use pow"),
        ({"expression": "x ="}, "not valid Python"),
        ({"function": "os:system"}, "not a transform"),
        ({"function": "no.such:thing"}, "There is no function"),
        ({}, "needs either"),
        ({"expression": "1", "function": "a:b"}, "needs either"),
    ],
)
def test_python_refuses_what_it_should_not_run(settings: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        chain.make_transform("Python$Value", settings)


def test_an_expression_that_fails_is_an_error_of_the_data() -> None:
    for name, expression in (("Python$Value", "value['nope']"), ("Sql$Value", "value.items + 1")):
        with pytest.raises(DataError, match="failed"):
            run(name, order(), expression=expression)


@transform
def doubled(record: Record) -> list[Record]:
    return [record, record.but(topic="copy")]


@transform
def confused(record: Record) -> int:
    return 5


def test_a_function_of_python_gets_the_record() -> None:
    assert [each.topic for each in run("Python$Value", order(), function=f"{__name__}:doubled")] == ["orders", "copy"]
    with pytest.raises(DataError, match="returned a int"):
        run("Python$Value", order(), function=f"{__name__}:confused")


CHAIN = {
    "transforms": "each, drop, route",
    "transforms.each.type": "Explode$Value",
    "transforms.each.field": "items",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "is",
    "transforms.drop.negate": "true",
    "transforms.route.type": "RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "$1-new",
    "predicates": "is",
    "predicates.is.type": "TopicNameMatches",
    "predicates.is.pattern": "ord.*",
}


def test_a_chain_applies_its_transforms_in_order() -> None:
    apply = chain.make_chain(CHAIN)
    assert [(each.topic, each.value["items"]) for each in apply(order())] == [("orders-new", "a"), ("orders-new", "b")]
    assert apply(order().but(topic="other")) == []
    assert chain.make_chain({})(order()) == [order()]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"transforms.each.type": "Exploed$Value"}, r"Did you mean Explode\$Value"),
        ({"transforms.drop.predicate": "nope"}, "predicate nope of the transform drop is not defined"),
        ({"predicates.is.pattern": "("}, "Invalid regex"),
        ({"transforms.each.field": None}, "Missing required configuration"),
        ({"transforms.route.type": None}, 'Missing required configuration "transforms.route.type"'),
    ],
)
def test_a_chain_with_a_mistake_is_refused(changes: dict[str, str | None], error: str) -> None:
    config = {name: value for name, value in (CHAIN | changes).items() if value is not None}
    with pytest.raises(ConfigError, match=error):
        chain.make_chain(config)


def test_validation_knows_the_settings_of_aliases() -> None:
    config = CHAIN | {"transforms.each.type": "Nope", "transforms.route.negate": "true"}
    definition = chain.definition(config)
    found = definition.validate(config)
    assert found["transforms.each.type"].errors == [
        "Invalid value Nope for configuration transforms.each.type: Class Nope could not be found."
    ]
    assert "no config 'transforms.route.predicate'" in found["transforms.route.type"].errors[0]
    assert found["predicates.is.pattern"].value == "ord.*"
    assert definition.groups == ["Transforms: each", "Transforms: drop", "Transforms: route", "Predicates: is"]
    assert rows("X", definition, found.values(), definition.groups)["error_count"] == 2


def test_every_transform_can_stand_in_a_config() -> None:
    for name in (name for row in TRANSFORMS for name in row.class_names):
        assert "transforms.a.predicate" in chain.definition({"transforms": "a", "transforms.a.type": name}).keys


def test_the_page_names_every_transform_and_converter() -> None:
    page = (Path(__file__).parents[2] / "docs" / "connect" / "transforms.md").read_text()
    names = [row.name for row in (*TRANSFORMS, *PREDICATES)]
    names += [row.class_name.rpartition(".")[2] for row in CONVERTERS]
    assert [name for name in names if f"`{name}`" not in page and f".{name}`" not in page] == []


def test_the_examples_of_the_page_are_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "connect" / "transforms.md").read_text()
    examples = re.findall(r"```properties\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        chain.make_chain(dict(line.split("=", 1) for line in example.splitlines()))


def test_aliases_must_differ() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \[a, a, b\] for configuration transforms: Duplicate alias"):
        chain.no_duplicates("transforms", ["a", "a", "b"])


def test_the_day_of_the_first_long_overflows_as_in_java() -> None:
    (made,) = run("TimestampConverter$Value", loose(a=-(1 << 63)), field="a", target_type="Date")
    assert made.value["a"] == 9223372036794351616


def test_a_renamed_field_keeps_its_type() -> None:
    schema = data.struct({"a": data.INT16, "c": INT32})
    record = order().but(value_schema=schema, value=Struct.of(schema, a=1, c=2))
    with pytest.raises(DataError, match="INT16"):
        run("ReplaceField$Value", record, include="a", renames="c:a")
    with pytest.raises(DataError, match="nope is not a valid field name"):
        run("ReplaceField$Value", record, include="a", renames="nope:a")
    for wide in (data.INT64, data.FLOAT64):
        narrow = INT32 if wide is data.INT64 else data.FLOAT32
        schema = data.struct({"a": narrow, "c": wide})
        value = Struct.of(schema, a=1, c=2) if wide is data.INT64 else Struct.of(schema, a=1.5, c=2.5)
        with pytest.raises(DataError, match=r"class (Long|Double)"):
            run("ReplaceField$Value", order().but(value_schema=schema, value=value), include="a", renames="c:a")


def test_the_schema_of_json_can_stand_in_the_settings() -> None:
    content = '{"type":"double","optional":true,"default":255.5}'
    json = make_converter("JsonConverter", "value", {"schema.content": content})
    found = json.read("t", b"1.25")
    assert (found.schema, found.value) == (data.FLOAT64.but(optional=True, default=255.5), 1.25)


def test_errors_have_the_names_of_connect() -> None:
    with pytest.raises(ConnectError) as error:
        run("Cast$Value", loose(a="x"), spec="a:int8")
    assert error.value.java_name.endswith(".DataException")


OF_KAFKA = "org.apache.kafka.connect.transforms."
# Examples as courses of Connect have them: the transform and its settings, a value, and what becomes of it.
EXAMPLES = {
    "remove a field": ("ReplaceField$Value", {"exclude": "c2"}, {"c1": 22, "c2": "foo"}, {"c1": 22}),
    "rename fields": (
        "ReplaceField$Value",
        {"renames": "foo:c1,bar:c2"},
        {"foo": 22, "bar": "baz"},
        {"c1": 22, "c2": "baz"},
    ),
    "mask a field": (
        "MaskField$Value",
        {"fields": "string_field"},
        {"integer_field": 22, "string_field": "foo"},
        {"integer_field": 22, "string_field": ""},
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_courses_work(name: str) -> None:
    kind, settings, before, after = EXAMPLES[name]
    config = {"transforms": "x", "transforms.x.type": OF_KAFKA + kind}
    apply = chain.make_chain(config | {f"transforms.x.{key}": text for key, text in settings.items()})
    assert [one.value for one in apply(Record("t", value=before))] == [after]


def test_a_key_is_made_of_fields_and_a_topic_gets_a_prefix() -> None:
    config = {
        "transforms": "ValueToKey,ExtractField,AddPrefix",
        "transforms.ValueToKey.type": OF_KAFKA + "ValueToKey",
        "transforms.ValueToKey.fields": "userId,city,state",
        "transforms.ExtractField.type": OF_KAFKA + "ExtractField$Key",
        "transforms.ExtractField.field": "userId",
        "transforms.AddPrefix.type": OF_KAFKA + "RegexRouter",
        "transforms.AddPrefix.regex": ".*",
        "transforms.AddPrefix.replacement": "acme_$0",
    }
    value = {"userId": 12, "address": "1942 Wilhelm Boulevard", "city": "Topeka", "state": "KS", "country": "US"}
    keyed = chain.make_chain({**config, "transforms": "ValueToKey"})
    assert [one.key for one in keyed(Record("Order", value=value))] == [{"userId": 12, "city": "Topeka", "state": "KS"}]
    [made] = chain.make_chain(config)(Record("Order", value=value))
    assert (made.topic, made.key, made.value) == ("acme_Order", 12, value)
