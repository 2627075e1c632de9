"""Random requests to a worker: every endpoint, with what is right and what is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAMES = ("one", "two", "wh ite")
JSON = {"content-type": "application/json"}
CONVERTERS = (
    "org.apache.kafka.connect.json.JsonConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "JsonConverter",
    "Nope",
    "",
)
TRANSFORMS = "org.apache.kafka.connect.transforms."


@dataclass(frozen=True, slots=True)
class Request:
    """A request; `what` is the endpoint without the names in it."""

    method: str
    path: str
    body: bytes | None = None
    what: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {(self.body or b'').decode()}"


class Chances:
    """What the requests of one sequence are drawn from."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance, self.folder = chance, folder

    def is_so(self, probability: float) -> bool:
        return self.chance.random() < probability

    def one(self, *things: Any) -> Any:
        return self.chance.choice(things)

    def name(self) -> str:
        return self.one(*NAMES, *NAMES[:2], "nope") if self.is_so(0.9) else "nope"

    def path(self, rest: str = "") -> str:
        return f"/connectors/{quote(self.name(), safe='')}{rest}"


def requests(chance: random.Random, count: int, folder: Path) -> Iterator[Request]:
    """Draw requests; the sources' files are written first."""
    for number in range(2):
        (folder / f"in-{number}").write_text("".join(f"line {at}\n" for at in range(10)))
    chances = Chances(chance, folder)
    makers, weights = zip(*MAKERS, strict=True)
    for _ in range(count):
        yield chance.choices(makers, weights)[0](chances)


def of(what: str, method: str, path: str, body: Any = None) -> Request:
    given = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method, path, given, f"{method} {what}")


# Configs.


def config(chances: Chances) -> dict[str, Any]:
    """Draw the config of a connector: most are right."""
    made = _source(chances) if chances.is_so(0.55) else _sink(chances)
    for change in (_common, _errors, _steps):
        if chances.is_so(0.3):
            made |= change(chances)
    if chances.is_so(0.12):
        made |= _wrong(chances)
    if chances.is_so(0.06):
        made.pop(chances.one(*made))
    return made


def _source(chances: Chances) -> dict[str, Any]:
    made = {
        "connector.class": chances.one("FileStreamSource", "org.apache.kafka.connect.file.FileStreamSourceConnector"),
        "file": str(chances.folder / chances.one("in-0", "in-1", "none")),
        "topic": chances.one("lines", "more"),
    }
    if chances.is_so(0.3):
        made["exactly.once.support"] = chances.one("requested", "required", "REQUIRED", "nope")
    if chances.is_so(0.2):
        made["transaction.boundary"] = chances.one("poll", "interval", "connector", "nope")
        made["transaction.boundary.interval.ms"] = chances.one("100", "0", "x")
    if chances.is_so(0.2):  # both defaults always: without them Connect cannot show offsets either
        made |= {"topic.creation.default.replication.factor": chances.one("1", "-1")}
        made |= {"topic.creation.default.partitions": chances.one("1", "-1")}
        made |= {"topic.creation.groups": chances.one("a", "a,a", "default", ""), "topic.creation.a.include": "m.*"}
    return made


def _sink(chances: Chances) -> dict[str, Any]:
    made = {
        "connector.class": chances.one("FileStreamSink", "FileStreamSinkConnector"),
        "file": str(chances.folder / chances.one("out-0", "out-1", "no/folder")),
    }
    if chances.is_so(0.85):
        made["topics"] = chances.one("lines", "more", "lines,more", " lines , more ", "")
    if chances.is_so(0.2):
        made["topics.regex"] = chances.one("li.*", "[", "")
    return made


def _common(chances: Chances) -> dict[str, Any]:
    made: dict[str, Any] = {"tasks.max": chances.one("1", "2", 1, "0", "x", "")}
    if chances.is_so(0.3):
        made[f"{chances.one('key', 'value', 'header')}.converter"] = chances.one(*CONVERTERS)
    if chances.is_so(0.2):
        made["value.converter.schemas.enable"] = chances.one("false", "nope")
    if chances.is_so(0.2):
        made["config.action.reload"] = chances.one("restart", "none", "RESTART", "nope")
    if chances.is_so(0.2):
        made["tasks.max.enforce"] = chances.one("true", "false", "nope")
    if chances.is_so(0.2):
        made[chances.one("producer", "consumer", "admin") + ".override.client.id"] = "mine"
    return made


def _errors(chances: Chances) -> dict[str, Any]:
    made = {
        "errors.tolerance": chances.one("all", "none", "ALL", "nope"),
        "errors.retry.timeout": chances.one("0", "100", "-1", "-2", "x"),
        "errors.log.enable": chances.one("true", "false", "nope"),
    }
    if chances.is_so(0.5):
        made["errors.deadletterqueue.topic.name"] = chances.one("letters", "lines", "")
        made["errors.deadletterqueue.topic.replication.factor"] = chances.one("1", "1", "x")
    return made


def _steps(chances: Chances) -> dict[str, Any]:
    """Draw transforms that work on lines, that fail, or that cannot be."""
    steps: list[dict[str, Any]] = [
        {"type": f"{TRANSFORMS}HoistField$Value", "field": "f"},
        {"type": f"{TRANSFORMS}InsertHeader", "header": "h", "value.literal": "1"},
        {"type": f"{TRANSFORMS}RegexRouter", "regex": chances.one("(.*)", "["), "replacement": "$1"},
        {"type": f"{TRANSFORMS}ExtractField$Value", "field": "f"},
        {"type": f"{TRANSFORMS}HoistField$Value"},
        {"type": f"{TRANSFORMS}Filter", "predicate": "p", "negate": chances.one("true", "false", "nope")},
        {"type": f"{TRANSFORMS}Cast$Value", "spec": chances.one("string", "int8", "")},
        {"type": f"{TRANSFORMS}MaskField$Value", "fields": chances.one("f", ""), "replacement": "x"},
        {"type": "Nope"},
        {},
        {"type": f"{TRANSFORMS}Filter", "negate": "true"},
    ]
    chosen = chances.one(*steps[:4], *steps)
    made = {"transforms": chances.one("t", "t", "t", "t,t", "t,u")}
    made |= {f"transforms.t.{name}": value for name, value in chosen.items()}
    if "predicate" in chosen:
        made["predicates"] = "p"
        made["predicates.p.type"] = f"{TRANSFORMS}predicates.{chances.one('RecordIsTombstone', 'TopicNameMatches')}"
        if chances.is_so(0.6):
            made["predicates.p.pattern"] = chances.one("li.*", "[")
    return made


def _wrong(chances: Chances) -> dict[str, Any]:
    return chances.one(
        {"connector.class": "Nope"},
        {"connector.class": ""},
        {"name": "other"},
        {"name": ""},
        {"batch.size": "x"},
        {"topic": ""},
        {"extra": chances.one(1, True, 1.5, "x")},
        {"connector.plugin.version": chances.one("4.3.1", "[4.3,)")},
    )


# Requests.


def create(chances: Chances) -> Request:
    body: dict[str, Any] = {"name": chances.one(*NAMES, *NAMES, "", None, " two "), "config": config(chances)}
    if chances.is_so(0.25):
        body["initial_state"] = chances.one("RUNNING", "PAUSED", "STOPPED", "stopped", "nope", None, "")
    if chances.is_so(0.05):
        body.pop(chances.one(*body))
    return of("connectors", "POST", "/connectors", body)


def put(chances: Chances) -> Request:
    return of("config", "PUT", chances.path("/config"), config(chances))


def patch(chances: Chances) -> Request:
    body = chances.one(
        {"batch.size": chances.one("10", None, "x", 7)},
        {"tasks.max": chances.one("2", "0", None)},
        {"file": str(chances.folder / "in-1")},
        {"topic": None},
        {"errors.tolerance": "all", "note": "x"},
        {"connector.class": chances.one("FileStreamSink", None)},
        {"name": None},
        {},
    )
    return of("config", "PATCH", chances.path("/config"), body)


def target(chances: Chances) -> Request:
    verb = chances.one("pause", "resume", "resume", "stop")
    return of(verb, "PUT", chances.path(f"/{verb}"))


def restart(chances: Chances) -> Request:
    flags = chances.one("", "?includeTasks=true", "?includeTasks=true&onlyFailed=true", "?onlyFailed=true", "?x=1")
    return of("restart", "POST", chances.path("/restart" + flags))


def restart_task(chances: Chances) -> Request:
    return of("task restart", "POST", chances.path(f"/tasks/{chances.one(0, 0, 1, 7, 'x', -1)}/restart"))


def delete(chances: Chances) -> Request:
    return of("connector", "DELETE", chances.path())


def alter(chances: Chances) -> Request:
    name = str(chances.folder / chances.one("in-0", "in-1", "none"))
    source = {
        "partition": chances.one({"filename": name}, {"filename": name}, {"x": 1}, {}, {"filename": 5}),
        "offset": chances.one(
            {"position": 5}, {"position": 0}, None, {"position": "x"}, {"position": -1}, {}, {"x": 1}
        ),
    }
    number = chances.one(0, 0, "0", 7, "x", -1, 1.5)
    topic = chances.one("lines", "lines", "none", "", 5)
    sink = {
        "partition": chances.one({"kafka_topic": topic, "kafka_partition": number}, {"kafka_topic": topic}, {}, None),
        "offset": chances.one(
            *({"kafka_offset": each} for each in (3, 0, "4", -1, "x", None, 1.5)), None, {}, {"x": 1}
        ),
    }
    rows = [chances.one(source, sink) for _ in range(chances.one(1, 1, 1, 2))]
    body = chances.one(*[{"offsets": rows}] * 8, {"offsets": []}, {}, {"offsets": None})
    return of("offsets", "PATCH", chances.path("/offsets"), body)


def reset(chances: Chances) -> Request:
    return of("offsets", "DELETE", chances.path("/offsets"))


def validate(chances: Chances) -> Request:
    plugin = chances.one("FileStreamSource", "FileStreamSink", "FileStreamSourceConnector", "Nope")
    body = config(chances)
    if chances.is_so(0.3):
        body["name"] = chances.one("one", "", "a/b")
    return of("validate", "PUT", f"/connector-plugins/{plugin}/config/validate", body)


def look(chances: Chances) -> Request:
    what = chances.one("", "/config", "/status", "/tasks", "/topics", "/offsets", "/tasks/N/status")
    number = chances.one("0", "0", "1", "x", "-1")
    return of(what.lstrip("/") or "connector", "GET", chances.path(what.replace("N", number)))


def list_all(chances: Chances) -> Request:
    flags = chances.one("", "?expand=info", "?expand=status", "?expand=x", "?expand=info&expand=status", "?expand=")
    return of("connectors", "GET", "/connectors" + flags)


def reset_topics(chances: Chances) -> Request:
    return of("topics/reset", "PUT", chances.path("/topics/reset"))


def plugin(chances: Chances) -> Request:
    names = ("FileStreamSink", "JsonConverter", f"{TRANSFORMS}Cast$Value", "Filter", "Cast", "Nope", "TopicNameMatches")
    path = chances.one("/connector-plugins", f"/connector-plugins/{chances.one(*names)}/config")
    return of("plugins", "GET", path)


def wrong(chances: Chances) -> Request:
    method = chances.one("PUT", "POST", "DELETE", "PATCH", "GET")
    paths = (
        *("/", "/connectors", "/connectors/one/x", "/connectors/one/config", "/connectors/one/status"),
        *("/connectors/one/pause", "/connectors/one/tasks", "/connectors/one/tasks/0", "/connector-plugins"),
        *("/connectors/one/restart/", "/connectors/", "/nothing", "/connectors/one/fence"),
    )
    body = chances.one(None, None, b"", b"{", b"[]", b'"x"', b"null", b"{}", b"5")
    made = of("something wrong", method, chances.one(*paths), None if method in ("GET", "DELETE") else body)
    if chances.is_so(0.2) and made.body is not None:
        return Request(made.method, made.path, made.body, made.what, {"content-type": "text/plain"})
    return made


MAKERS: tuple[tuple[Callable[[Chances], Request], int], ...] = (
    (create, 16),
    (put, 8),
    (patch, 6),
    (target, 12),
    (restart, 5),
    (restart_task, 5),
    (delete, 3),
    (alter, 10),
    (reset, 4),
    (validate, 12),
    (look, 14),
    (list_all, 4),
    (reset_topics, 2),
    (plugin, 3),
    (wrong, 10),
)
