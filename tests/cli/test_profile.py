"""`moldau profile`, and how options, environment and profiles come together."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.cli import profiles
from moldau.cli.profiles import Profile, Profiles
from moldau.cli.session import open_session
from tests.cli.running import QUICK, Moldau

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
PROFILE = st.builds(Profile, st.none() | TEXT, st.none() | TEXT, st.dictionaries(TEXT, TEXT, max_size=3))


@QUICK
@given(st.builds(Profiles, st.none() | TEXT, st.dictionaries(TEXT, PROFILE, max_size=3)))
def test_a_file_is_read_as_it_was_written(known: Profiles) -> None:
    assert profiles.parse(profiles.text_of(known)) == known


def test_profiles_are_made_used_and_deleted(tmp_path: Path, moldau: Moldau) -> None:
    moldau("profile", "set", "here", "-b", moldau.servers, "--registry", "http://r:1")
    moldau("profile", "set", "away", "-b", "127.0.0.1:1", "-X", "sasl.password=hush", "-X", "retries=1")
    assert [(row["name"], row["current"]) for row in moldau.json("profile", "list")] == [
        ("away", False),
        ("here", True),
    ]
    shown = moldau.json("profile", "show", "away")
    assert shown["settings"] == {"sasl.password": "***", "retries": "1"}
    file = Path(moldau("profile", "path").strip())
    assert file.is_relative_to(tmp_path) and stat.S_IMODE(file.stat().st_mode) == 0o600
    alone = Moldau("", tmp_path)
    assert alone("topic", "list", "--profile", "here") is not None
    moldau(
        "profile", "set", "away", "--unset", "retries", "--unset", "sasl.password", "-X", "default.api.timeout.ms=200"
    )
    refused = alone.run("topic", "list", "--profile", "away")
    assert refused.code == 1 and "127.0.0.1:1" in refused.err
    moldau("profile", "use", "away")
    assert alone.run("topic", "list").code == 1
    moldau("profile", "delete", "away")
    assert [row["name"] for row in moldau.json("profile", "list")] == ["here"]


def test_an_option_wins_over_environment_and_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    profiles.save(Profiles("p", {"p": Profile("profile:1", "http://profile", {"a": "1", "b": "2"})}))
    environment = {"MOLDAU_BOOTSTRAP_SERVERS": "env:1", "SCHEMA_REGISTRY_URL": "http://env"}
    option = open_session("option:1", "http://option", None, ["b=3"], environment=environment).connection
    assert (option.bootstrap_servers, option.registry_url) == ("option:1", "http://option")
    assert option.settings == {"a": "1", "b": "3"}
    env = open_session(environment=environment).connection
    assert (env.bootstrap_servers, env.registry_url) == ("env:1", "http://env")
    profile = open_session(environment={}).connection
    assert (profile.bootstrap_servers, profile.registry_url) == ("profile:1", "http://profile")
    assert open_session(client_settings=["bootstrap.servers=x:1"], environment={}).connection.bootstrap_servers == "x:1"
    os.remove(profiles.path())
    assert open_session(environment={}).connection.bootstrap_servers == "127.0.0.1:9092"


def test_mistakes_get_a_sentence(moldau: Moldau, tmp_path: Path) -> None:
    for words, code, sentence in (
        (("profile", "use", "nobody"), 1, "no profile 'nobody'"),
        (("profile", "set", "bad name"), 2, "not a name"),
        (("topic", "list", "--profile", "nobody"), 1, "moldau profile set nobody"),
    ):
        done = moldau.run(*words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
    file = tmp_path / "moldau" / "profiles.toml"
    file.parent.mkdir()
    for text in ("current = ", "profiles = 3", "[profiles.x]\nbroker = 1"):
        file.write_text(text)
        done = moldau.run("topic", "list")
        assert done.code == 1 and str(file) in done.err
