"""A service as a process that starts with its first use, and ends with stdin at any time."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

SERVICE = """
import sys, threading, contextlib
from moldau.http import parse_listen, run, Service, Routes
from moldau.settings import HTTP, ServiceSettings

@contextlib.contextmanager
def build(listen):
    print("built", flush=True)
    if "stuck" in sys.argv:
        threading.Event().wait()
    yield Service(Routes([]), settings, "application/json")

def await_use(is_used):
    while not is_used(60.0):
        pass

settings = ServiceSettings([HTTP], [])
run(parse_listen("127.0.0.1:0", settings), settings, build, await_use=await_use, stop_with_stdin=True)
"""


@contextmanager
def service(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start it, and yield it with its URL once it is idle."""
    command = [sys.executable, "-c", SERVICE, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            word, url = process.stdout.readline().split()
            assert word == "idle"
            yield process, url
        finally:
            process.kill()


def test_who_connects_first_starts_a_service_and_is_answered() -> None:
    with service() as (process, url):
        assert httpx.get(url, timeout=120).status_code == 404
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "built\n"
        assert process.stdout.readline() == f"ready {url}\n"
        process.stdin.close()
        assert process.wait(120) == 0


def test_stdin_ends_a_service_that_is_idle_or_still_starts() -> None:
    for words in ((), ("stuck",)):
        with service(*words) as (process, url):
            assert process.stdout is not None and process.stdin is not None
            if words:
                host, _, port = url.removeprefix("http://").partition(":")
                socket.create_connection((host, int(port))).close()
                assert process.stdout.readline() == "built\n"
            process.stdin.close()
            assert process.wait(120) == -signal.SIGTERM
