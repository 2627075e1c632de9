"""How the stores of an application are asked by `moldau streams query`: over HTTP, or from their changelogs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from moldau.admin.mistakes import Mistake
from moldau.cli.session import Session

if TYPE_CHECKING:
    from moldau.operators.stores.spec import StoreSpec
    from moldau.serdes.context import Serde
    from moldau.views.served import Served

LONG_MS = 2**53  # the retention of a store of which only the changelog is known: nothing goes
TYPED = ("avro", "json-schema", "protobuf")


class Kind(StrEnum):
    """What a store is, for one that is known by its changelog alone."""

    key_value = "key-value"
    window = "window"
    session = "session"
    versioned = "versioned"


def by_id(
    session: Session, application: str, store: str, kind: Kind, window_size: int, formats: tuple[str, str]
) -> Served:
    """The one store that was asked for, of an application of which only the id is known."""
    from moldau.views.served import Changelog, Served

    if not store:
        raise Mistake("--sql needs a Python file or a URL: an id alone does not say which stores there are.")
    key, value = (serde_of(session, name) for name in formats)
    spec = spec_of(store, kind, window_size, key, value)
    return Served(
        application, {store: Changelog(spec, f"{application}-{store}-changelog")}, session.connection.kafka_settings
    )


def serde_of(session: Session, name: str) -> Serde:
    from moldau.serdes.formats import serde

    try:
        return serde(name, session.connection.connect_registry() if name in TYPED else None)
    except ValueError as error:
        raise Mistake(f"{error}.") from None


def spec_of(name: str, kind: Kind, window_size: int, key: Serde, value: Serde) -> StoreSpec:
    from moldau.operators.stores import key_value, session, versioned, window

    match kind:
        case Kind.key_value:
            return key_value.timestamped_key_value(name, key, value)
        case Kind.window:
            return window.window(name, window_size, LONG_MS, key, value, stamped=True)
        case Kind.session:
            return session.session(name, LONG_MS, key, value)
        case Kind.versioned:
            return versioned.versioned(name, LONG_MS, key, value)


def over_http(url: str, store: str, key: str, sql: str, asked: dict[str, str]) -> Any:
    from urllib.parse import quote

    import httpx

    path = "/sql" if sql else f"/stores/{quote(store, safe='')}/entries" + (f"/{quote(key, safe='')}" if key else "")
    try:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            answer = client.post(path, json={"sql": sql}) if sql else client.get(path, params=asked)
    except httpx.HTTPError as error:
        raise Mistake(f"{url} does not answer: {error}.") from None
    if answer.status_code == 200:
        return answer.json()
    if answer.status_code == 404 and key:
        return []
    raise Mistake(answer.json().get("message", f"{url} answers {answer.status_code}."))


def of_views(served: Served, store: str, key: str, sql: str, asked: dict[str, str]) -> Any:
    from moldau.http import HttpError
    from moldau.views import ViewError
    from moldau.views.plain import plain
    from moldau.views.service import Endpoints

    with served:
        try:
            if sql:
                return plain(served.sql(sql).to_pylist())
            ask = Endpoints(served)
            return ask.of_key({"store": store, "key": key}, asked) if key else ask.of_all(store, asked)
        except HttpError as error:
            if error.status == 404 and store in served.changelogs:
                return []
            raise Mistake(str(error)) from None
        except ViewError as error:
            raise Mistake(f"{error}.") from None
