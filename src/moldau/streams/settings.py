"""The settings of an application, under Kafka's names, that decide how a plan is run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

from moldau.operators.context import TopologyError
from moldau.operators.errors import Decision, Failure, Handler, Response, answer, decided
from moldau.operators.stores.spec import DEFAULT_CACHE_BYTES
from moldau.operators.timestamps import fail_on_invalid_timestamp
from moldau.plan.conveyor.clients import translate
from moldau.plan.task import Execution

from .topology import extractor
from .tuning import OF_CLIENTS

log = logging.getLogger(__name__)
DEAD_LETTERS = "errors.dead.letter.queue.topic.name"
BOOTSTRAP = "localhost:9092"
CLIENT_PREFIXES = ("ssl.", "sasl.")
CACHE = ("statestore.cache.max.bytes", "cache.max.bytes.buffering")
DECISIONS: dict[str, Decision] = {
    "fail": "fail",
    "continue": "continue",
    "LogAndFailExceptionHandler": "fail",
    "LogAndContinueExceptionHandler": "continue",
    "LogAndFailProcessingExceptionHandler": "fail",
    "LogAndContinueProcessingExceptionHandler": "continue",
    "DefaultProductionExceptionHandler": "fail",
}


def execution(settings: Mapping[str, Any]) -> Execution:
    processing = first(settings, "processing.exception.handler")
    return Execution(
        handler(settings, "deserialization.exception.handler"),
        handler(settings, "processing.exception.handler"),
        handler(settings, "production.exception.handler"),
        guarded=callable(processing) or named_decision(processing, "processing.exception.handler") == "continue",
        extractor=extractor(settings.get("default.timestamp.extractor"), "default.timestamp.extractor")
        or fail_on_invalid_timestamp,
        cache_bytes=whole(settings, next((name for name in CACHE if name in settings), CACHE[0]), DEFAULT_CACHE_BYTES),
        settings=settings,
    )


def first(settings: Mapping[str, Any], name: str) -> Any:
    return settings.get(name, settings.get(f"default.{name}", "fail"))


def handler(settings: Mapping[str, Any], name: str) -> Handler:
    """Return a handler: a function of the user, or the one that Kafka's class name or one word stands for."""
    own: Any = first(settings, name)
    if not callable(own):
        own = answer(named_decision(own, name), settings.get(DEAD_LETTERS))

    def handle(failure: Failure) -> Response:
        response = decided(cast(Any, own(failure)), failure)
        log.log(logging.ERROR if response.decision == "fail" else logging.WARNING, "%s", failure)
        return response

    return handle


def named_decision(given: Any, name: str) -> Decision:
    if callable(given):
        return "continue"
    short = str(given).rsplit(".", 1)[-1]
    if short not in DECISIONS:
        raise TopologyError(f"{name} is {given!r}: it must be a function, 'fail' or 'continue'")
    return DECISIONS[short]


def whole(settings: Mapping[str, Any], name: str, default: int) -> int:
    given = settings.get(name, default)
    try:
        number = int(given)
    except (TypeError, ValueError):
        number = -1
    if number < 0:
        raise TopologyError(f"{name} is {given!r}: it must be a whole number, 0 or more")
    return number


def client_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of clients, under the names of ours: where the cluster is, and how to log in."""
    own = {name: value for name, value in settings.items() if name in OF_CLIENTS or name.startswith(CLIENT_PREFIXES)}
    return translate({"bootstrap.servers": BOOTSTRAP, **{name: str(value) for name, value in own.items()}})
