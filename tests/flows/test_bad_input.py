"""What people may do by mistake: too much code, too many flows, the same name at once, names that cannot be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moldau.client import Client, Record, build
from moldau.flows import catalog, code, deploying, records
from moldau.flows.assignment import share_out
from moldau.flows.catalog import opened
from moldau.flows.code import MOST_BYTES
from moldau.flows.definition import Definition, FlowError, versions_of
from moldau.flows.lanes import lanes_of
from moldau.flows.overview import WAITING, overviews
from moldau.flows.streams_kind import kept_of
from moldau.flows.topics import make
from moldau.testing import broker
from moldau.topicstore import append

from .test_deploying import counting

MANY = 1000


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    with broker() as started:
        yield {"bootstrap.servers": started.bootstrap_servers}


def test_a_zip_of_fifty_megabytes_is_refused_with_the_limit(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_bytes(os.urandom(50 << 20))
    with pytest.raises(FlowError, match=f"{MOST_BYTES:,} are allowed"):
        code.pack(tmp_path / "app.py")


def test_a_thousand_definitions_are_read_shared_out_and_changed(settings: dict[str, str]) -> None:
    rows = [records.encode(Definition(f"flow-{number}", "streams", "v", {"file": "a.py"})) for number in range(MANY)]
    with Client(settings) as client:
        make(client, records.TOPIC)
        append(client, records.TOPIC, 0, build([Record(0, 0, key, value) for key, value in rows]))
        known = catalog.read(client)
        seen = [one.state for one in overviews(known, client) if one.name.startswith("flow-")]
        assert seen == [WAITING] * MANY
        with opened(settings) as one:
            assert one.deploy(Definition("flow-7", "streams", "w", {"file": "a.py"})).revision == 2
            lanes = lanes_of(one.flows.values())
    shared = share_out(dict.fromkeys(lanes, 1.0), {"a": [], "b": [], "c": []})
    assert sorted(len(given) for given in shared.values()) == sorted(
        len(lanes) // 3 + (n < len(lanes) % 3) for n in range(3)
    )


def test_two_deploys_of_one_name_at_once_leave_the_code_of_both_that_can_run(settings: dict[str, str]) -> None:
    def deploy(number: int) -> None:
        with Client(settings) as client, opened(settings) as one:
            app = counting("contested", data=bytes([number]) * 10)
            new, _ = deploying.defined(app, {}, client, one.flows.get("contested"))
            deploying.deploy(one, client, new, app.data)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(deploy, range(4)))
    with Client(settings) as client:
        flow = catalog.read(client)["contested"]
        assert isinstance(flow, Definition) and flow.revision == 4
        assert all(code.get(client, kept_of(*one)) is not None for one in versions_of(flow))


@pytest.mark.parametrize("name", ["a/b", "../a", "a b", "ä", "x" * 201, ".."])
def test_a_name_that_cannot_be_is_refused_before_anything_is_written(settings: dict[str, str], name: str) -> None:
    with opened(settings) as one:
        with pytest.raises(FlowError, match="1 to 200 of the characters"):
            one.deploy(Definition(name, "streams", "v", {}))
        assert name not in one.known
