"""A secured platform as a user has it: `moldau secure init`, `moldau up`, and clients of its parts."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from moldau.cli.secured_files import UP, make_files
from moldau.client import Client
from moldau.client.java_settings import read_file, translated
from moldau.platform import PARTS
from tests.test_platform import free_offset

START_S = 300.0
V2 = "application/vnd.kafka.json.v2+json"
LOCALHOST = ["127.0.0.1", "localhost"]


@dataclass
class SecuredPlatform:
    """A platform that runs, and its files. `process` is `moldau up`."""

    folder: Path
    offset: int
    process: subprocess.Popen[str]
    data: Path

    @property
    def brokers(self) -> str:
        return f"127.0.0.1:{PARTS['broker'].port + self.offset}"

    def url(self, part: str) -> str:
        return f"https://127.0.0.1:{PARTS[part].port + self.offset}"

    def password(self, user: str) -> str:
        file = self.folder / f"{user}.properties"
        file = file if file.exists() else self.folder / f"user-{user}.properties"
        found = re.search(r'password="([^"]+)"', file.read_text())
        assert found is not None
        return found[1]

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.pem"))

    def http(self, user: str | None, password: str | None = None) -> httpx.Client:
        auth = None if user is None else (user, password or self.password(user))
        return httpx.Client(verify=self.trust(), auth=auth, timeout=120.0)

    def kafka(self, user: str, **more: Any) -> Client:
        """Return a client that is logged in as a user whose file of settings is in the folder."""
        file = self.folder / f"{user}.properties"
        file = file if file.exists() else self.folder / f"user-{user}.properties"
        given = translated(read_file(str(file))) | {"bootstrap.servers": self.brokers}
        return Client({**given, **{name.replace("_", "."): value for name, value in more.items()}})

    def moldau(self, *arguments: str, stdin: str = "") -> str:
        """Run a command of `moldau`, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "moldau", *arguments], input=stdin, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def produce(self, user: str, topic: str, value: Any = 1) -> httpx.Response:
        with self.http(user) as client:
            body = {"records": [{"value": value}]}
            return client.post(f"{self.url('rest')}/topics/{topic}", json=body, headers={"content-type": V2})


@contextmanager
def secured_platform(place: Path, *only: str, toml: str = "") -> Iterator[SecuredPlatform]:
    """Run a platform with these parts. `toml` is added to the file that `moldau up` reads."""
    folder, offset = place / "secure", free_offset()
    port = PARTS["broker"].port + offset
    make_files(folder, "127.0.0.1", port, LOCALHOST)
    config = folder / UP
    config.write_text(config.read_text() + toml.format(folder=folder))
    command = [sys.executable, "-m", "moldau", "up", "--config", str(config), "--port-offset", str(offset)]
    command += ["--data-dir", str(place / "data"), *(("--only", ",".join(only)) if only else ())]
    env = {**os.environ, "MOLDAU_PROFILES": str(place / "profiles.toml")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    running = SecuredPlatform(folder, offset, process, place / "data")
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        assert any(line.strip() == "ready" for line in process.stdout), "the platform did not start"
        timer.cancel()
        yield running
    finally:
        timer.cancel()
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=120)
