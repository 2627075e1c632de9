"""Who calls a service, and what a role may do: by password, token and certificate."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from moldau import logs
from moldau.http import Route, Routes, audit
from moldau.http.callers import ADMIN, EDITOR, VIEWER, Callers
from moldau.http.users import NO_PASSWORD, User, Users, change_users, hash_password
from moldau.settings import HTTP, ServiceSettings, SettingError
from tests.certificates import Certificates
from tests.http.test_service import serving_routes


async def who(request: Request) -> Response:
    caller = request.state.caller
    return JSONResponse({"name": caller.name, "roles": sorted(caller.roles), "how": caller.how})


ROUTES = Routes(
    [
        Route("GET", "/things", who),
        Route("POST", "/things", who),
        Route("DELETE", "/things", who, ADMIN),
        Route("GET", "/things/{thing}/secrets", who, ADMIN),
        Route("POST", "/search", who, VIEWER),
    ]
)
PASSWORDS = {"vera": VIEWER, "emil": EDITOR, "anna": ADMIN}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("keys")
    key = ECKey.generate_key("P-256", {"kid": "one"})
    (folder / "jwks.json").write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    return folder, key


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("users") / "users"
    for name, role in PASSWORDS.items():
        change_users(file, name, User(hash_password(f"{name}'s password"), frozenset((role,))))
    change_users(file, "old", User("plain", frozenset()))
    change_users(file, "c", User(NO_PASSWORD, frozenset((EDITOR,))))
    change_users(file, "token", User(NO_PASSWORD, frozenset((VIEWER,))))
    return file


@pytest.fixture(scope="module")
def url(users: Path, keys: Any) -> Iterator[str]:
    folder, _ = keys
    given = ("authentication.method=BASIC,BEARER", f"authentication.users.file={users}")
    bearer = (f"authentication.bearer.jwks.url=file://{folder}/jwks.json", "authentication.bearer.expected.issuer=us")
    with serving_routes(ROUTES, *given, *bearer) as found:
        yield found


def statuses(url: str, **how: Any) -> list[int]:
    asked = (("GET", "/things"), ("POST", "/search"), ("POST", "/things"), ("DELETE", "/things"))
    return [httpx.request(method, url + path, **how).status_code for method, path in asked]


def test_a_role_may_do_what_its_rank_allows(url: str) -> None:
    of = {name: statuses(url, auth=(name, f"{name}'s password")) for name in PASSWORDS}
    assert of == {"vera": [200, 200, 403, 403], "emil": [200, 200, 200, 403], "anna": [200, 200, 200, 200]}
    assert statuses(url, auth=("old", "plain")) == [200] * 4  # as in files of before, which know no ranks
    assert statuses(url) == statuses(url, auth=("vera", "emil's password")) == [401] * 4
    assert statuses(url, auth=("c", "!")) == statuses(url, auth=("c", "")) == [401] * 4


@pytest.mark.parametrize(
    "path",
    ["/things/x/secrets", "/things/x/secrets/", "//things//x/secrets", "/things/x/%73ecrets", "/%74hings/%78/secrets"],
)
def test_no_spelling_of_a_path_escapes_its_role(url: str, path: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    with httpx.Client(base_url=url) as client:
        target = httpx.URL(scheme="http", host=host, port=int(port)).copy_with(raw_path=path.encode())
        assert client.request("GET", target, auth=("emil", "emil's password")).status_code == 403
        assert client.request("HEAD", target, auth=("emil", "emil's password")).status_code == 403
        assert client.request("GET", target, auth=("anna", "anna's password")).status_code == 200


def token(key: ECKey, header: dict[str, Any] | None = None, **claims: Any) -> dict[str, str]:
    said = {"sub": "tom", "iss": "us", "exp": int(time.time()) + 600, **claims}
    return {"authorization": f"Bearer {jwt.encode({'alg': 'ES256', 'kid': 'one', **(header or {})}, said, key)}"}


def test_a_token_says_who_calls_and_as_what(url: str, keys: Any) -> None:
    _, key = keys
    assert httpx.get(f"{url}/things", headers=token(key, roles=["editor"])).json() == {
        "name": "tom",
        "roles": ["editor"],
        "how": "BEARER",
    }
    assert statuses(url, headers=token(key, roles="viewer other")) == [200, 200, 403, 403]
    assert statuses(url, headers=token(key, sub="token")) == [200, 200, 403, 403]  # by its line in the file
    assert statuses(url, headers=token(key)) == [403] * 4
    assert statuses(url, headers=token(key, roles=7)) == [403] * 4


def test_a_token_that_is_wrong_lets_nobody_in(url: str, keys: Any) -> None:
    _, key = keys
    other = ECKey.generate_key("P-256", {"kid": "one"})
    for wrong in (
        token(other, roles=["admin"]),
        token(key, exp=1, roles=["admin"]),
        token(key, iss="them", roles=["admin"]),
        token(ECKey.generate_key("P-256"), {"kid": "two"}, roles=["admin"]),
        {"authorization": "Bearer x"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ0b20iLCJyb2xlcyI6WyJhZG1pbiJdfQ."},
    ):
        assert statuses(url, headers=wrong) == [401] * 4
    answer = httpx.get(f"{url}/things")
    assert answer.headers["www-authenticate"] == 'Basic realm="moldau", Bearer realm="moldau"'


def test_a_certificate_says_who_calls(tmp_path: Path, users: Path) -> None:
    known = Certificates.within(tmp_path)
    given = ("authentication.method=CERTIFICATE", f"authentication.users.file={users}")
    rules = r"ssl.principal.mapping.rules=RULE:^(?:.*,)?OU=Testing cert.*$/c/"
    for rule, expected in ((rules, [200, 200, 200, 403]), ("ssl.principal.mapping.rules=DEFAULT", [403] * 4)):
        with serving_routes(ROUTES, *known.settings, *given, rule) as url:
            context = known.trusting(known.client)
            assert statuses(url, verify=context) == expected
            if rule == rules:
                assert httpx.get(f"{url}/things", verify=context).json()["name"] == "c"
            # A header that is no proof does not fall back to the certificate.
            assert statuses(url, verify=context, auth=("emil", "x")) == [401] * 4


def test_users_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "users"
    change_users(file, "ada", User(hash_password("one"), frozenset((VIEWER,))))
    users = Users(str(file))
    assert users.prove("ada", "one") and users.is_proved("ada", "one") and not users.is_proved("ada", "two")
    change_users(file, "ada", User(hash_password("two"), frozenset((ADMIN,))))
    assert not users.is_proved("ada", "one") and users.prove("ada", "one") is None
    found = users.prove("ada", "two")
    assert found is not None and found.roles == {ADMIN}
    assert change_users(file, "ada", None) and not change_users(file, "ada", None)
    assert users.prove("ada", "two") is None and not users.is_proved("ada", "two")
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "given",
    [
        {"authentication.method": "BASIC"},
        {"authentication.method": "NONE,BASIC"},
        {"authentication.method": "MAGIC"},
        {"authentication.method": "BEARER"},
        {"authentication.method": "CERTIFICATE"},
        {"authentication.method": "BEARER", "authentication.bearer.jwks.url": "http://keys.example/jwks"},
        {"authentication.method": "BEARER", "authentication.bearer.jwks.url": "file:///nowhere/jwks"},
    ],
)
def test_a_method_that_could_not_work_does_not_start(given: dict[str, str]) -> None:
    with pytest.raises(SettingError):
        Callers(ServiceSettings([HTTP], given))


def test_denials_and_changes_are_in_the_audit_log(tmp_path: Path, users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_quota", logs.Quota())  # the other tests have used up this host's
    file = tmp_path / "audit.log"
    given = ("authentication.method=BASIC", f"authentication.users.file={users}", f"moldau.audit.file={file}")
    with serving_routes(ROUTES, *given) as url:
        statuses(url, auth=("emil", "emil's password"))
        statuses(url, auth=("emil", "guessed"))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    said = [(line["message"], line["principal"], line["request"]) for line in lines[:2]]
    assert said == [
        ("asked for a change", "User:emil", "POST /things"),
        ("denied", "User:emil", "DELETE /things"),
    ]
    assert {line["principal"] for line in lines[2:]} == {"unknown"}
    assert "guessed" not in file.read_text() and "emil's" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
