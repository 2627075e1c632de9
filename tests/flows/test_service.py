"""Flows over HTTP: what is deployed can be seen and steered; code and changes only where they are allowed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Client, Record, build
from moldau.flows import catalog, code, deploying, figures, records, states
from moldau.flows.catalog import opened
from moldau.flows.definition import Wanted
from moldau.flows.diff import diff
from moldau.flows.service import Endpoints
from moldau.flows.topics import make
from moldau.flows.verbs import VERBS
from moldau.http import Threaded
from moldau.testing import broker
from moldau.topicstore import append, exists

from .test_deploying import counting

APP = """
from moldau.streams import StreamsBuilder, String
builder = StreamsBuilder("sent", {"default.key.serde": String(), "default.value.serde": String()})
builder.stream("lines").to("out")
"""


@dataclass
class Api:
    """The service over a broker, and who may do what."""

    client: Client
    settings: dict[str, str]
    rights: dict[str, bool] = field(default_factory=lambda: {"act": True})
    url: str = ""

    def __call__(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.url + path, body, method=method), timeout=120
            ) as got:
                return got.status, json.load(got)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["message"]


@pytest.fixture(scope="module")
def whole() -> Iterator[Api]:
    with broker() as started, Client(settings := {"bootstrap.servers": started.bootstrap_servers}) as client:
        yield Api(client, settings)


@pytest.fixture
def api(whole: Api, request: pytest.FixtureRequest) -> Iterator[Api]:
    takes_code = getattr(request, "param", False)
    endpoints = Endpoints(whole.client, whole.settings, lambda _: whole.rights["act"], takes_code)
    service = Threaded(endpoints.routes(), "127.0.0.1:0")
    whole.url, whole.rights["act"] = service.url, True
    yield whole
    service.close()


def test_looking_creates_nothing_and_what_is_not_there_is_not_found(api: Api) -> None:
    assert api("GET", "/api/flows") == (200, []) == api("GET", "/api/workers")
    for path in ("/api/flows/a", "/api/flows/a/diff", "/api/workers/a", "/api/flows/a%2Fb"):
        assert api("GET", path)[0] == 404
    for verb in VERBS:
        assert api("POST", f"/api/flows/a/{verb}")[0] == 404
    assert not exists(api.client, records.TOPIC)


def deployed(api: Api, name: str, *sources: str, folder: Path) -> None:
    with opened(api.settings) as known:
        for number, text in enumerate(sources):
            file = folder / name / str(number) / "app.py"
            file.parent.mkdir(parents=True)
            file.write_text(text)
            one = counting(name, data=code.pack(file))
            new, _ = deploying.defined(one, {"a": "b"}, api.client, known.flows.get(name))
            deploying.deploy(known, api.client, new, one.data)


def test_flows_and_workers_are_shown_and_verbs_change_what_is_wanted(api: Api, tmp_path: Path) -> None:
    deployed(api, "shown", "x = 1\ny = 2\n", "x = 1\ny = 3\n", folder=tmp_path)
    make(api.client, states.TOPIC)
    told = figures.Teller("desk", tmp_path).news({}, {"shown": figures.Figures(rows=3)})
    assert told is not None
    figures.write(api.client, told)
    append(api.client, records.TOPIC, 0, build([Record(0, 0, b"later", b'{"format":9}')]))
    found = {one["name"]: one for one in api("GET", "/api/flows")[1]}
    assert found["shown"]["state"] == "waiting for a worker" and found["later"]["state"] == "of a later release"
    status, one = api("GET", "/api/flows/shown")
    assert (status, one["settings"], one["revision"], len(one["previous"])) == (200, {"a": "b"}, 2, 12)
    assert api("GET", "/api/flows/later")[0] == 200 and api("POST", "/api/flows/later/pause")[0] == 409
    text = api("GET", "/api/flows/shown/diff")[1]["diff"]
    assert text == "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    wanted = {verb: api("POST", f"/api/flows/shown/{verb}") for verb in VERBS}
    assert {verb: (status, one["wanted"]) for verb, (status, one) in wanted.items()} == {
        "pause": (202, "paused"),
        "resume": (202, "running"),
        "stop": (202, "stopped"),
        "restart": (202, "running"),
        "rollback": (202, "running"),
        "undeploy": (202, "removed"),
    }
    assert wanted["rollback"][1]["version"].startswith(one["previous"])
    assert api("POST", "/api/flows/shown/resume") == (409, "shown is being removed.")


def test_who_may_only_look_changes_nothing(api: Api, tmp_path: Path) -> None:
    deployed(api, "guarded", "x = 1\n", folder=tmp_path)
    api.rights["act"] = False
    for verb in VERBS:
        assert api("POST", f"/api/flows/guarded/{verb}") == (403, "You may only look here.")
    assert api("PUT", "/api/flows/guarded/code", b"zip")[0] == 403
    flow = catalog.read(api.client)["guarded"]
    assert flow.revision == 1 and flow.wanted is Wanted.RUNNING  # type: ignore[union-attr]


def test_code_is_refused_unless_it_is_allowed(api: Api) -> None:
    status, sentence = api("PUT", "/api/flows/sent/code", b"zip")
    assert status == 403 and "flows.code.http=true" in sentence


@pytest.mark.parametrize("api", [True], indirect=True)
def test_code_that_is_allowed_is_loaded_in_a_child_process_and_deployed(api: Api, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    data = code.pack(tmp_path / "app.py")
    assert api("PUT", "/api/flows/sent/code", b"no zip")[0] == 409
    for file in ("other.py", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd"):
        status, sentence = api("PUT", f"/api/flows/sent/code?file={file}", data)
        assert status == 409 and "has no file" in sentence
    status, made = api("PUT", "/api/flows/sent/code?file=app.py", data)
    assert status == 202 and made["version"] == code.version_of(data)
    flow = catalog.read(api.client)["sent"]
    assert flow.what["file"] == "app.py" and code.get(api.client, deploying.kept_of(flow.version, flow.what)) == data  # type: ignore[union-attr]


def test_a_diff_names_files_that_came_and_went_and_is_bounded() -> None:
    text = diff({"a.py": "1\n", "same.py": "x\n"}, {"b.py": "2\n", "same.py": "x\n"})
    assert "--- a/a.py\n+++ /dev/null" in text and "--- /dev/null\n+++ b/b.py" in text and "same" not in text
    large = "\n".join(map(str, range(6000)))
    assert "more than 5000 lines" in diff({"a": large}, {"a": large + "\nx"})
    assert len(diff({}, {"a": "x" * 300_000})) < 210_000
