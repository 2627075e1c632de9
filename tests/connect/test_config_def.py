"""Settings of plugins: types, checks and the rows of Connect's REST."""

from __future__ import annotations

import pytest

from moldau.connect import config_def
from moldau.connect.config_def import ConfigDef, Importance, Key, Kind, Password, Recommender, Width
from moldau.connect.errors import ConfigError

SETTINGS = ConfigDef(
    [
        Key("name", doc="The name.", importance=Importance.HIGH, group="Common", order=1, width=Width.MEDIUM),
        Key("tasks.max", Kind.INT, 1, validator=config_def.between(1), group="Common", order=2, dependents=("mode",)),
        Key("mode", default="a", recommender=Recommender(lambda _name, values: ["a", "b"][: values["tasks.max"]])),
        Key("secret", Kind.PASSWORD, None),
        Key("fields", Kind.LIST, ""),
    ]
)


def test_values_are_parsed_and_defaults_filled_in() -> None:
    parsed = SETTINGS.parse({"name": " x ", "fields": "a , b,c", "secret": "s", "unknown": "y"})
    assert parsed == {"name": "x", "tasks.max": 1, "mode": "a", "secret": Password("s"), "fields": ["a", "b", "c"]}
    assert "s" not in str(Password("s"))[1:2]


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({}, 'Missing required configuration "name" which has no default value.'),
        ({"name": "x", "tasks.max": "y"}, "Invalid value y for configuration tasks.max: Not a number of type INT"),
        ({"name": "x", "tasks.max": "0"}, "Invalid value 0 for configuration tasks.max: Value must be at least 1"),
        ({"name": "x", "tasks.max": "3000000000"}, "Invalid value 3000000000 for configuration tasks.max: Not a"),
    ],
)
def test_the_first_error_is_raised(config: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError) as found:
        SETTINGS.parse(config)
    assert str(found.value).startswith(error)


def test_validation_reports_every_error_in_connects_words() -> None:
    found = SETTINGS.validate({"tasks.max": "x"})
    assert found["name"].errors == ['Missing required configuration "name" which has no default value.']
    assert found["tasks.max"].errors == [
        "Invalid value x for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    ]


def test_rows_are_those_of_connects_rest() -> None:
    values = SETTINGS.validate({"name": "x", "tasks.max": "2", "secret": "s", "fields": "a,b"})
    document = config_def.rows("X", SETTINGS, values.values(), SETTINGS.groups)
    assert (document["name"], document["error_count"], document["groups"]) == ("X", 0, ["Common"])
    assert document["configs"][0] == {
        "definition": {
            "name": "name",
            "type": "STRING",
            "required": True,
            "default_value": None,
            "importance": "HIGH",
            "documentation": "The name.",
            "group": "Common",
            "order_in_group": 1,
            "width": "MEDIUM",
            "display_name": "name",
            "dependents": [],
        },
        "value": {"name": "name", "value": "x", "recommended_values": [], "errors": [], "visible": True},
    }
    by_name = {row["value"]["name"]: row["value"] for row in document["configs"]}
    assert by_name["mode"]["recommended_values"] == ["a", "b"]
    assert (by_name["secret"]["value"], by_name["fields"]["value"]) == ("[hidden]", "a,b")


def test_a_dependent_that_is_not_defined_is_an_error() -> None:
    settings = ConfigDef([Key("a", default="x", dependents=("b",))])
    found = settings.validate({})
    assert (found["b"].errors, found["b"].visible) == (["b is referred in the dependents, but not defined."], False)
    row = config_def.rows("X", settings, found.values(), [])["configs"][0]
    assert (row["definition"], row["value"]["name"]) == (None, "b")


def test_a_plugins_settings_move_under_a_prefix() -> None:
    moved = SETTINGS.prefixed("transforms.t.", "Transforms: t")
    assert moved.keys["transforms.t.tasks.max"].dependents == ("transforms.t.mode",)
    assert {key.group for key in moved} == {"Transforms: t"}


@pytest.mark.parametrize(
    ("validator", "good", "bad"),
    [
        (config_def.one_of("a", "b"), "a", "c"),
        (config_def.one_of_any_case("a", "b"), "B", "c"),
        (config_def.each_of("a", "b"), ["a", "b"], ["a", "c"]),
        (config_def.non_empty, "a", ""),
        (config_def.non_null, "a", None),
        (config_def.non_empty_list, ["a"], []),
        (config_def.without_control_characters, "a/ b", "a\tb"),
        (config_def.all_of(config_def.non_null, config_def.non_empty), "a", ""),
    ],
)
def test_validators(validator: config_def.Validator, good: object, bad: object) -> None:
    validator("x", good)
    with pytest.raises(ConfigError, match="for configuration x"):
        validator("x", bad)
