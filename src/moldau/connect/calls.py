"""Requests to a worker: what each endpoint answers."""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from moldau import http
from moldau.client import Client, ClientError, Error
from moldau.connect import changes, letters, plugins, secrets, validation
from moldau.connect.config_topic import PAUSED, STARTED, STOPPED, ConfigState, Restart
from moldau.connect.connector import SINK
from moldau.connect.errors import ConfigError, ConnectError
from moldau.connect.files import as_text
from moldau.connect.loggers import Loggers
from moldau.connect.offsets import alter_sink, alter_source, shown_sink
from moldau.connect.status_topic import StatusState, encode_topic
from moldau.connect.threads import Offsets, Surroundings
from moldau.connect.worker import Worker
from moldau.http import Answer, HttpError
from moldau.topicstore import TOO_LARGE

log = logging.getLogger(__name__)
SIGNATURE = "x-connect-authorization"  # of what workers tell each other
VERSION, COMMIT = plugins.VERSION, "unknown"
HEALTHY = "Worker has completed startup and is ready to handle requests."


@dataclass(slots=True)
class Parts:
    """What the endpoints work with."""

    worker: Worker
    offsets: Offsets
    client: Client
    cluster_id: str
    url: str
    loggers: Loggers
    around: Surroundings
    allows_reset: bool = True
    tracks_topics: bool = True

    @property
    def state(self) -> ConfigState:
        return self.worker.state

    @property
    def said(self) -> StatusState:
        return self.worker.said


@dataclass(slots=True)
class Call(http.Call):
    """A request, and what the endpoints work with."""

    parts: Parts = None  # type: ignore[assignment]

    @property
    def name(self) -> str:
        return self.path["connector"]

    def flag(self, name: str) -> bool:
        return self.query.get(name, "false").lower() == "true"

    def read(self, look: Any) -> Any:
        """Return what `look` finds in the config topic's state while nothing is replayed."""
        return self.parts.worker.configs.snapshot(look)[1]

    def change(self, decide: Any) -> Any:
        return self.parts.worker.configs.update(decide)


# The worker itself.


def root(call: Call) -> Any:
    return {"version": VERSION, "commit": COMMIT, "kafka_cluster_id": call.parts.cluster_id}


def health(call: Call) -> Any:
    if call.parts.worker.failure is not None:
        return Answer(503, {"status": "unhealthy", "message": f"The worker has ended: {call.parts.worker.failure}"})
    return {"status": "healthy", "message": HEALTHY}


def metrics(call: Call) -> Any:
    from prometheus_client.exposition import CONTENT_TYPE_LATEST
    from starlette.responses import Response

    from moldau.connect.metrics import page

    return Response(page(call.parts.worker, call.parts.around.figures), media_type=CONTENT_TYPE_LATEST)


# Connectors.


def list_connectors(call: Call) -> Any:
    names = call.read(lambda: list(call.parts.state.connectors))
    expand = call.query.getlist("expand")
    if not expand:
        return names
    rows: dict[str, Any] = {}
    for name in names:
        row: dict[str, Any] = {}
        for what in dict.fromkeys(expand):
            if what == "status" and (found := _status(call, name)) is not None:
                row["status"] = found
            elif what == "info":
                row["info"] = call.read(lambda name=name: changes.info_of(call.parts.state, name))
        rows[name] = row
    return rows


def create(call: Call) -> Any:
    body = document(call.body)
    if unknown := body.keys() - {"name", "config", "initial_state"}:
        raise HttpError(400, f"The request has a field {min(unknown)} that means nothing.")
    config = settings_of(body.get("config"))
    name = str(body.get("name") or "").strip()
    initial = changes.initial_state(body.get("initial_state"))
    config = named(config, name)
    validation.refuse_invalid(config, call.parts.worker.settings)
    made = call.change(lambda: changes.create(call.parts.state, name, config, initial))
    return Answer(201, made, {"location": location(call, name)})


def show(call: Call) -> Any:
    return call.read(lambda: changes.info_of(call.parts.state, call.name))


def show_config(call: Call) -> Any:
    return show(call)["config"]


def put_config(call: Call) -> Any:
    config = named(settings_of(call.body), call.name)
    return _put(call, config)


def patch_config(call: Call) -> Any:
    patch = settings_of(call.body)
    config = call.read(lambda: changes.patched(call.parts.state, call.name, patch))
    return _put(call, named(config, call.name) if "name" in config else config)  # null has removed it: that is refused


def _put(call: Call, config: Mapping[str, str | None]) -> Any:
    validation.refuse_invalid(config, call.parts.worker.settings)
    is_new, info = call.change(lambda: changes.put(call.parts.state, call.name, config))
    return Answer(201, info, {"location": location(call, call.name)}) if is_new else info


def delete(call: Call) -> Any:
    call.change(lambda: changes.delete(call.parts.state, call.name))
    return Answer(204)


def stop(call: Call) -> Any:
    return _target(call, STOPPED, 204)


def pause(call: Call) -> Any:
    return _target(call, PAUSED, 202)


def resume(call: Call) -> Any:
    return _target(call, STARTED, 202)


def _target(call: Call, target: str, status: int) -> Any:
    call.change(lambda: changes.set_target(call.parts.state, call.name, target))
    return Answer(status)


def restart(call: Call) -> Any:
    what = Restart(call.name, call.flag("includeTasks"), call.flag("onlyFailed"))
    said = call.parts.worker.statuses.look(lambda: StatusState(dict(call.parts.said.statuses)))
    answer = call.change(lambda: changes.restart(call.parts.state, said, what))
    return Answer(202, answer) if what.include_tasks or what.only_failed else Answer(204)


# Status.


def _status(call: Call, name: str) -> dict[str, Any] | None:
    parts = call.parts
    said = parts.worker.statuses.look(lambda: StatusState(dict(parts.said.statuses)))
    return call.read(lambda: changes.status(parts.state, said, name))


def show_status(call: Call) -> Any:
    found = _status(call, call.name)
    if found is None:
        raise HttpError(404, f"No status found for connector {call.name}")
    return found


def show_topics(call: Call) -> Any:
    if not call.parts.tracks_topics:
        raise HttpError(403, "Topic tracking is disabled.")
    found = call.parts.worker.statuses.look(lambda: sorted(call.parts.said.topics.get(call.name, ())))
    return {call.name: {"topics": found}}


def reset_topics(call: Call) -> Any:
    if not call.parts.tracks_topics:
        raise HttpError(403, "Topic tracking is disabled.")
    if not call.parts.allows_reset:
        raise HttpError(403, "Topic tracking reset is disabled.")
    worker = call.parts.worker
    used = worker.statuses.look(lambda: list(call.parts.said.topics.get(call.name, ())))
    worker.statuses.write([encode_topic(call.name, topic, 0, None) for topic in used], worker.settings.timeout_s)
    return Answer(202)


# Tasks.


def list_tasks(call: Call) -> Any:
    state, name = call.parts.state, call.name

    def look() -> list[Any]:
        changes.require(state, name, f"Connector {name} not found")
        configs = state.tasks[name].configs if name in state.tasks else ()
        return [{"id": {"connector": name, "task": n}, "config": dict(one)} for n, one in enumerate(configs)]

    return call.read(look)


def show_task(call: Call) -> Any:
    task = _task_number(call)
    return call.parts.worker.statuses.look(lambda: changes.task_status(call.parts.said, call.name, task))


def restart_task(call: Call) -> Any:
    """Restart a task, here or, for whoever leads, at the worker that has it."""
    task, parts = _task_number(call), call.parts
    count = call.read(lambda: _task_count(parts.state, call.name))
    if not 0 <= task < count:
        raise HttpError(404, f"Unknown task: {call.name}-{task}")
    unit = call.name, task
    if unit in parts.worker.carried:
        parts.worker.restart(unit)
        return Answer(204)
    owner = parts.worker.statuses.look(lambda: parts.said.statuses.get(unit))
    if owner is None or owner.worker_id == parts.worker.settings.worker_id or SIGNATURE in call.request.headers:
        raise HttpError(409, f"Nobody has the task {call.name}-{task} just now; try again when it is assigned.")
    path = f"/connectors/{quote(call.name, safe='')}/tasks/{task}/restart"
    scheme = parts.url.partition("://")[0]
    key = parts.worker.group.key if parts.worker.group else b""
    ask_worker(f"{scheme}://{owner.worker_id}{path}", b"", key, call.request.headers.get("authorization"))
    return Answer(204)


def _task_number(call: Call) -> int:
    """Read the number of a task, which Connect allows to be negative: no task has such a one."""
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", call.path["task"]):
        raise HttpError(404)
    return int(call.path["task"])


def _task_count(state: ConfigState, name: str) -> int:
    changes.require(state, name, f"Unknown connector: {name}")
    return len(state.tasks[name].configs) if name in state.tasks else 0


def put_tasks(call: Call) -> Any:
    """Take the configurations of a connector's tasks from the worker that has it."""
    check_signature(call)
    configs = [dict(one) for one in call.body]
    call.change(lambda: changes.set_tasks(call.parts.state, call.name, configs))
    return Answer(204)


def fence(call: Call) -> Any:
    check_signature(call)
    raise HttpError(404)  # workers of ours leave that to their leader


def check_signature(call: Call) -> None:
    given = call.request.headers.get(SIGNATURE)
    if given is None:
        raise HttpError(400, "Internal request missing required signature")
    group = call.parts.worker.group
    if group is None or not hmac.compare_digest(given, signature(group.key, call.request.state.body)):
        raise HttpError(403, "Internal request contained invalid signature.")


def signature(key: bytes, body: bytes) -> str:
    return hmac.new(key, body, "sha256").hexdigest()


def ask_worker(url: str, body: bytes, key: bytes, authorization: str | None = None) -> None:
    """Tell another worker something, in the name of whoever asked this one; HttpError if it refuses."""
    import httpx

    headers = {SIGNATURE: signature(key, body), "content-type": "application/json"}
    headers |= {"authorization": authorization} if authorization else {}
    try:
        answer = httpx.post(url, content=body, headers=headers, timeout=30.0, trust_env=False)
    except httpx.HTTPError as error:
        raise HttpError(500, f"The worker at {url} does not answer: {error or type(error).__name__}") from None
    if answer.status_code >= 400:
        message = answer.json().get("message", "") if "json" in answer.headers.get("content-type", "") else ""
        raise HttpError(answer.status_code, message)


# Offsets.


def show_offsets(call: Call) -> Any:
    plugin = _plugin(call)
    if plugin.kind == SINK:
        return {"offsets": shown_sink(call.parts.client, call.name)}
    call.parts.offsets.sync(call.parts.worker.settings.timeout_s)
    return {"offsets": [{"partition": one, "offset": offset} for one, offset in call.parts.offsets.of(call.name)]}


def alter_offsets(call: Call) -> Any:
    rows = document(call.body).get("offsets")
    if not rows:
        raise HttpError(400, "Partitions / offsets need to be provided for an alter offsets request")
    return _alter(call, rows)


def reset_offsets(call: Call) -> Any:
    return _alter(call, None)


def _alter(call: Call, rows: Sequence[Any] | None) -> Any:
    """Set offsets, or forget all of them; the connector must be stopped."""
    plugin = _plugin(call)
    parts, name = call.parts, call.name
    if call.read(lambda: (parts.state.target(name), len(_tasks(parts.state, name)))) != (STOPPED, 0):
        raise HttpError(
            400,
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
        )
    config = validation.texts(call.read(lambda: changes.info_of(parts.state, name)["config"]))
    try:
        if plugin.kind == SINK:
            is_seen_to = alter_sink(parts.client, plugin.load(), name, config, rows)
        else:
            timeout_s = parts.worker.settings.timeout_s
            is_seen_to = alter_source(parts.offsets, timeout_s, plugin.load(), name, config, rows)
    except ConnectError as error:
        raise HttpError(500, str(error)) from None
    done = "reset" if rows is None else "altered"
    if is_seen_to:
        return {"message": f"The offsets for this connector have been {done} successfully"}
    return {
        "message": f"The Connect framework-managed offsets for this connector have been {done} successfully. However, "
        f"if this connector manages offsets externally, they will need to be manually {done} in the system that the "
        "connector uses."
    }


def _tasks(state: ConfigState, name: str) -> Sequence[Any]:
    return state.tasks[name].configs if name in state.tasks else ()


def _plugin(call: Call) -> plugins.Plugin:
    config = call.read(lambda: changes.require(call.parts.state, call.name, f"Connector {call.name} not found"))
    found = plugins.find(config.get("connector.class") or "")
    if found is None:
        raise HttpError(400, plugins.not_found(config.get("connector.class") or ""))
    return found


# Dead letters.


def list_letters(call: Call) -> Any:
    return letters.listed(call.parts.around, call.name, _of_sink(call), _limit(call))


def retry_letters(call: Call) -> Any:
    """Put dead letters once more, here and now."""
    config = _of_sink(call)
    plugin = _plugin(call).load()
    try:
        resolved = secrets.resolve(config, call.parts.worker.settings.providers)
        return letters.retry(call.parts.around, call.name, plugin, resolved, _limit(call))
    except (ConnectError, ConfigError) as error:
        raise HttpError(500, f"The dead letters cannot be put: {error}") from None


def _limit(call: Call) -> int:
    return http.path_number(call.query.get("limit", "1000"))


def _of_sink(call: Call) -> dict[str, str]:
    """Return the config of a sink that has a dead-letter topic; 400 for another connector."""
    if _plugin(call).kind != SINK:
        raise HttpError(400, f"{call.name} is a source; only sinks have dead letters.")
    config = validation.texts(call.read(lambda: changes.info_of(call.parts.state, call.name)["config"]))
    if not config.get(letters.TOPIC):
        raise HttpError(400, f"{call.name} has no dead-letter topic: set {letters.TOPIC}.")
    return config


# Plugins.


def list_plugins(call: Call) -> Any:
    only = call.query.get("connectorsOnly", "true").lower() != "false"
    return plugins.listed(connectors_only=only)


def show_plugin(call: Call) -> Any:
    found = validation.definitions(call.path["plugin"])
    if found is None:
        raise HttpError(404, f"Unknown plugin {call.path['plugin']}.")
    return found


def validate(call: Call) -> Any:
    config, wanted = settings_of(call.body), call.path["plugin"]
    given = config.get("connector.class")
    if given is None:
        raise HttpError(400, f"Connector config {validation.java_map(config)} contains no connector type")
    if not validation.is_same_class(given, wanted):
        raise HttpError(400, f"Included connector type {given} does not match request type {wanted}")
    return validation.validate(config, call.parts.worker.settings)


# Loggers.


def list_loggers(call: Call) -> Any:
    return call.parts.loggers.listed()


def show_logger(call: Call) -> Any:
    return call.parts.loggers.shown(call.path["logger"])


def set_logger(call: Call) -> Any:
    level = document(call.body).get("level")
    if level is None:
        raise HttpError(400, "Desired 'level' parameter was not specified in request.")
    changed = call.parts.loggers.set(call.path["logger"], str(level))
    return Answer(204) if call.query.get("scope", "").lower() == "cluster" else changed


# Bodies.


def document(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise HttpError(400, "The body must be a JSON object.")
    return body


def settings_of(given: Any) -> dict[str, str | None]:
    """Read settings: texts, or what becomes one."""
    if not isinstance(given, dict):
        raise HttpError(400, "The settings of a connector must be a JSON object of texts.")
    try:
        return {name: as_text(value) for name, value in given.items()}
    except ValueError:
        raise HttpError(400, "The settings of a connector must be a JSON object of texts.") from None


def named(config: Mapping[str, str | None], name: str) -> dict[str, str | None]:
    """Return a config with the connector's name, last; 400 if it has another one."""
    said = config.get("name")
    if said is not None and said != name:
        wrong = f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})"
        raise HttpError(400, wrong)
    return dict(config) if "name" in config else {**config, "name": name}


def location(call: Call, name: str) -> str:
    return f"{call.base}/connectors/{quote(name, safe='/')}"


def refusal(error: ClientError) -> HttpError:
    """Say in HTTP what went wrong with the cluster."""
    if error.error in TOO_LARGE:
        return HttpError(413, "The configuration is larger than a record of the config topic may be.")
    if error.error is Error.REQUEST_TIMED_OUT:
        return HttpError(500, f"Request timed out. {error}")
    return HttpError(500, str(error))
