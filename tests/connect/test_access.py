"""Who may use the REST interface: passwords, also between workers, pages of other origins, administrators."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from moldau.connect.app import SIGNED, endpoints
from moldau.connect.starting import service_settings
from moldau.settings import SettingError
from moldau.testing import Broker, eventually
from tests.connect.running import SOURCE, running, settings
from tests.services import unique


def test_workers_talk_to_each_other_where_users_need_a_password(connect_broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ana: secret,admin\n")
    (tmp_path / "in").write_text("x\n")
    given = settings(connect_broker.bootstrap_servers)
    given |= {"authentication.method": "BASIC", "authentication.roles": "admin", "authentication.realm": "moldau"}
    given["authentication.users.file"] = str(tmp_path / "users")
    with running(given) as first, running(given) as second:
        stranger = httpx.Client(base_url=first.url, trust_env=False, timeout=60)
        assert stranger.get("/connectors").status_code == 401
        names = [unique("guarded") for _ in range(3)]
        for name in names:
            second.create(name, connector_class=SOURCE, file=tmp_path / "in", topic=unique("guarded"))
        for name in names:  # a worker that does not lead hands the tasks of its connectors to the one that does
            first.await_status(name, "RUNNING", "RUNNING")
        found = first.http.get("/connectors?expand=status").json().values()
        eventually(lambda: len({one["status"]["connector"]["worker_id"] for one in found}) == 2)
        owner = {one["status"]["name"]: one["status"]["tasks"][0]["worker_id"] for one in found}
        for name in names:  # here, or at the other worker
            assert second.http.post(f"/connectors/{name}/tasks/0/restart").status_code == 204, owner[name]
        for path in (f"/connectors/{names[0]}/tasks", f"/connectors/{names[0]}/fence"):
            method = "PUT" if path.endswith("fence") else "POST"
            assert stranger.request(method, path, json=[]).status_code == 400  # it is not signed
        assert stranger.put("/admin/loggers/x%2Ffence", json={"level": "INFO"}).status_code == 401
        stranger.close()


def test_pages_of_other_origins_may_ask_where_settings_say_so(connect_broker: Broker) -> None:
    given = settings(connect_broker.bootstrap_servers)
    given |= {"access.control.allow.origin": "https://a.example", "access.control.allow.methods": "GET,PUT"}
    with running({**given, "admin.listeners": ""}) as worker:
        asked = {"origin": "https://a.example", "access-control-request-method": "PUT"}
        allowed = worker.http.options("/connectors", headers=asked)
        assert allowed.status_code == 200 and "PUT" in allowed.headers["access-control-allow-methods"]
        answer = worker.http.get("/connectors", headers={"origin": "https://a.example"})
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = worker.http.get("/connectors", headers={"origin": "https://b.example"})
        assert other.status_code == 200 and "access-control-allow-origin" not in other.headers
        assert worker.http.get("/admin/loggers").status_code == 404


def test_a_listener_for_administrators_is_refused() -> None:
    with pytest.raises(SettingError, match=r"admin\.listeners"):
        endpoints(service_settings({"admin.listeners": "http://127.0.0.1:9999"}))
    assert any(one.path.startswith("/admin") for one in endpoints(service_settings({})))


@pytest.mark.parametrize("path", [b"PUT /connectors/x/config", b"POST /connectors", b"PUT /admin/loggers/a/fence"])
def test_only_what_workers_sign_needs_no_password(path: bytes) -> None:
    assert not SIGNED.fullmatch(path)
