"""The endpoints over real connections, on topics in memory: HTTP/2, PRINT, Arrow, websockets, limits, termination."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
import uvloop

from moldau.http import Listen, Server
from moldau.http import Service as HttpService
from moldau.http.serve import bind
from moldau.settings import HTTP, SQL, ServiceSettings
from moldau.sql import connect
from moldau.sql.client import QueryError
from moldau.sql.server import websocket
from moldau.sql.server.access import Uses
from moldau.sql.server.app import Endpoints
from moldau.sql.server.errors import NO_ACCESS, ServerError
from moldau.sql.server.limits import FIXED, Admission, Limits
from moldau.sql.server.peers import Peers
from moldau.sql.server.service import Request, Service
from moldau.sql.server.streamed import Streamed
from moldau.sql.server.topics import MemoryTopics
from moldau.testing.process import eventually
from tests.sql.test_service import PAY, SPEND

ARROW = {"accept": "application/vnd.apache.arrow.stream"}


class Served:
    """A server in this process, with topics in memory."""

    def __init__(self) -> None:
        self.service = Service(MemoryTopics(), settings={"auto.offset.reset": "earliest"})
        self.service.address = "127.0.0.1:1"
        self.endpoints = Endpoints(self.service, "cluster")
        self.ended = threading.Event()

    @contextlib.contextmanager
    def run(self, *given: str) -> Iterator[Served]:
        settings = ServiceSettings([HTTP], given)
        bound, listen = bind(Listen("127.0.0.1", 0))
        bound.listen()
        sockets = {websocket.PATH: websocket.Conversation(self.endpoints)}
        app = HttpService(self.endpoints.routes(), settings, "application/json", sockets=sockets)
        server = Server(app, listen, settings, http2=True)
        threads = [
            threading.Thread(target=lambda: uvloop.run(server.serve(sockets=[bound]))),
            threading.Thread(target=self._work),
        ]
        for thread in threads:
            thread.start()
        self.url = listen.url
        with httpx.Client(http1=False, http2=True, base_url=listen.url, timeout=60, trust_env=False) as self.http:
            try:
                yield self
            finally:
                server.should_exit = True
                self.ended.set()
                for thread in threads:
                    thread.join()
                bound.close()

    def _work(self) -> None:
        while not self.ended.wait(0.0 if self.service.work() else 0.01):
            pass

    def do(self, text: str) -> Any:
        answer = self.http.post("/ksql", json={"ksql": text})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def say(self, text: str, **headers: str) -> list[str]:
        """Return the messages of a websocket."""
        from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
        from websockets.sync.client import connect

        found = []
        request = quote(json.dumps({"ksql": text}))
        url = self.url.replace("http", "ws", 1) + f"/ws/query?request={request}"
        with (
            connect(url, open_timeout=60, proxy=None, additional_headers=headers) as opened,
            contextlib.suppress(ConnectionClosedOK, ConnectionClosedError),
        ):
            while True:
                found.append(str(opened.recv(60)))
        return found


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served().run() as started:
        started.do(PAY + SPEND + "INSERT INTO pay VALUES ('a', 1); INSERT INTO pay VALUES ('b', 2);")
        yield started


def test_query_streams_over_http2(served: Served) -> None:
    body = {"sql": "SELECT * FROM pay EMIT CHANGES LIMIT 2;"}
    answer = served.http.post("/query-stream", json=body)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.http_version == "HTTP/2" and lines[0]["columnNames"] == ["CARD", "AMOUNT"]
    assert sorted(lines[1:]) == [["a", 1], ["b", 2]]
    assert served.service.pushes == {}


@pytest.mark.parametrize("text", ["SELECT * FROM pay EMIT CHANGES LIMIT 2;", "SELECT * FROM spend;"])
def test_each_row_is_a_part_of_its_own_over_http2(served: Served, text: str) -> None:
    """ksqldb-js takes a part for a row."""
    eventually(lambda: len(served.http.post("/query-stream", json={"sql": "SELECT * FROM spend;"}).text.split()) == 3)
    with served.http.stream("POST", "/query-stream", json={"sql": text}) as answer:
        parts = list(answer.iter_raw())
    assert [part.count(b"\n") for part in parts] == [1, 1, 1]


def test_inserts_are_acknowledged_over_http2(served: Served) -> None:
    served.do("CREATE STREAM fed (id INT KEY, v INT) WITH (kafka_topic='fed', format='JSON', partitions=1);")
    lines = ['{"target": "FED"}', '{"id": 1, "v": 2}', '{"id": 2, "v": 3}']
    answer = served.http.post("/inserts-stream", content="\n".join(lines))
    assert [json.loads(line) for line in answer.text.splitlines()] == [
        {"status": "ok", "seq": 0},
        {"status": "ok", "seq": 1},
    ]
    listed = served.http.post("/inserts-stream", content="\n".join(lines), headers={"accept": "application/json"})
    assert [each["seq"] for each in listed.json()] == [0, 1]


def test_print_is_answered_in_text(served: Served) -> None:
    for path, name in (("/query", "ksql"), ("/query-stream", "sql")):
        answer = served.http.post(path, json={name: "PRINT pay FROM BEGINNING LIMIT 2;"})
        lines = answer.text.splitlines()
        assert answer.headers["content-type"].startswith("text/plain") and len(lines) == 4
        assert lines[0] == "Key format: KAFKA_STRING" and lines[2].startswith("rowtime: ")
    refused = served.http.post("/query-stream", json={"sql": "PRINT pay;"}, headers={"accept": "application/json"})
    assert refused.status_code == 406
    missing = served.http.post("/query", json={"ksql": "PRINT 'nowhere';"}).json()
    assert missing["error_code"] == 40001 and "Could not find topic 'nowhere'" in missing["message"]


def test_rows_come_as_arrow(served: Served) -> None:
    served.do(
        "CREATE STREAM kinds (id INT KEY, l BIGINT, d DOUBLE, n DECIMAL(5, 2), b BOOLEAN, x BYTES, da DATE, ti TIME,"
        " ts TIMESTAMP, a ARRAY<INT>, m MAP<STRING, BIGINT>, s STRUCT<p INT, q DATE>)"
        " WITH (kafka_topic='kinds', format='JSON', partitions=1);"
        " INSERT INTO kinds VALUES (1, 2, 3.5, 4.25, true, 'AQI=', '2020-01-02', '03:04:05', '2020-01-02T03:04:05',"
        " ARRAY[1, 2], MAP('k' := 7), STRUCT(p := 1, q := '2020-01-02'));"
        " INSERT INTO kinds (id) VALUES (2);"
    )
    body = {"sql": "SELECT * FROM kinds EMIT CHANGES LIMIT 2;"}
    answer = served.http.post("/query-stream", json=body, headers=ARROW)
    table = pa.ipc.open_stream(answer.content).read_all()
    first, second = table.to_pylist()
    assert str(first["N"]) == "4.25" and first["X"] == b"\1\2" and first["M"] == [("k", 7)]
    assert (first["DA"].isoformat(), first["TI"].isoformat(), first["TS"].isoformat()) == (
        "2020-01-02",
        "03:04:05",
        "2020-01-02T03:04:05",
    )
    assert first["S"]["Q"] == first["DA"] and first["A"] == [1, 2] and first["B"] is True
    assert second["ID"] == 2 and set(second.values()) == {2, None}
    assert table.schema.field("N").type == pa.decimal128(5, 2)


def test_websocket_has_columns_rows_and_an_end(served: Served) -> None:
    messages = served.say("SELECT card, amount FROM pay EMIT CHANGES LIMIT 2;")
    assert [column["name"] for column in json.loads(messages[0])] == ["CARD", "AMOUNT"]
    assert sorted(json.loads(message)["row"]["columns"] for message in messages[1:3]) == [["a", 1], ["b", 2]]
    assert json.loads(messages[3]) == {"error": "done"}
    assert "nowhere" in json.loads(served.say("SELECT * FROM `nowhere` EMIT CHANGES;")[0])["error"]
    assert served.say("PRINT pay FROM BEGINNING LIMIT 1;")[0] == "Key format: KAFKA_STRING"
    assert served.service.pushes == {}


def test_servers_hear_of_each_other(served: Served) -> None:
    host = {"host": "other", "port": 8088}
    assert served.http.post("/heartbeat", json={"hostInfo": host, "timestamp": 1}).json() == {"isOk": True}
    assert served.http.post("/lag", json={"ksqlHost": host, "hostStoreLags": {"updateTimeMs": 5}}).status_code == 200
    status = served.http.get("/clusterStatus").json()["clusterStatus"]
    assert (
        status["127.0.0.1:1"]["hostAlive"] is True and "CTAS_SPEND_1" in status["127.0.0.1:1"]["activeStandbyPerQuery"]
    )
    assert status["other:8088"]["activeStandbyPerQuery"] == {}
    assert served.http.post("/heartbeat", json={}).json()["error_code"] == 40000


def test_lags_of_a_server_count_while_it_lives(served: Served) -> None:
    now = [100.0]
    peers = Peers("here:1", clock=lambda: now[0])
    peers.lagged({"ksqlHost": {"host": "other", "port": 1}, "hostStoreLags": {"updateTimeMs": 5}})
    peers.heard({"hostInfo": {"host": "other", "port": 1}})
    said = {"stateStoreLags": {}, "updateTimeMs": 5}
    for later, alive, lags in ((2.0, True, said), (0.1, False, {"stateStoreLags": {}, "updateTimeMs": 0})):
        now[0] += later
        status = peers.status(served.service)["clusterStatus"]["other:1"]
        assert (status["hostAlive"], status["hostStoreLags"]) == (alive, lags)


def test_status_tells_what_came_of_commands(served: Served) -> None:
    def status(path: str) -> Any:
        return served.http.get(f"/status/{path}").json()

    stream = "CREATE STREAM noted (k STRING KEY, v INT) WITH (kafka_topic='noted', value_format='JSON', partitions=1);"
    served.do(f"{stream} CREATE STREAM more AS SELECT * FROM noted; CREATE TYPE noted_type AS INT;")
    number = served.do("DROP STREAM more;")[0]["commandSequenceNumber"]
    made = {"status": "SUCCESS", "message": "Stream created", "queryId": None}
    assert status("stream/NOTED/create") == status("STREAM/`NOTED`/CREATE") == made
    assert status("stream/MORE/create")["queryId"] == f"CSAS_MORE_{number - 2}"
    assert status("stream/MORE/create")["message"] == f"Created query with ID CSAS_MORE_{number - 2}"
    assert status("stream/MORE/drop")["message"] == "Source `MORE` (topic: MORE) was dropped."
    assert status("stream/NOTED/drop") == {
        "@type": "generic_error",
        "error_code": 40400,
        "message": "Command not found",
    }
    known = served.http.get("/status").json()["commandStatuses"]
    assert known["type/NOTED_TYPE/create"] == known["stream/MORE/drop"] == known["table/SPEND/create"] == "SUCCESS"
    assert served.http.get("/chc/ready").json() == served.http.get("/chc/live").json() == {}
    served.do("DROP STREAM noted; DROP TYPE noted_type;")


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("auto.offset.reset", True),
        ("ksql.streams.auto.offset.reset", True),
        ("ksql.streams.consumer.max.poll.records", True),
        ("producer.linger.ms", True),
        ("num.stream.threads", True),
        ("cache.max.bytes.buffering", True),
        ("ksql.streams.topic.min.insync.replicas", True),
        ("ksql.query.pull.table.scan.enabled", True),
        ("ksql.functions.anything.at.all", True),
        ("ksql.runtime", True),
        ("request.ksql.query.pull.partition", True),
        ("ksql.nonsense", False),
        ("ksql.streams.nonsense", False),
        ("consumer.linger.ms", False),
        ("topic.nonsense", False),
        ("nonsense", False),
    ],
)
def test_properties_are_those_of_ksqldb_and_kafka(served: Served, name: str, valid: bool) -> None:
    answer = served.http.get(f"/is_valid_property/{name}")
    assert (answer.json() if valid else answer.json()["error_code"]) == (True if valid else 40000)


def test_request_waits_for_the_command_that_it_names(served: Served) -> None:
    def asked(number: Any, path: str = "/ksql", text: str = "SHOW TYPES;") -> Any:
        return served.http.post(path, json={"ksql": text, "commandSequenceNumber": number}).json()

    last = served.do("CREATE TYPE named AS INT; DROP TYPE named;")[1]["commandSequenceNumber"]
    for number in (None, -1, last):
        assert asked(number)[0]["@type"] == "type_list"
        assert "header" in asked(number, "/query", "SELECT * FROM spend;")[0]
    late = {"@type": "generic_error", "error_code": 50301}
    assert {**late, "message": asked(last + 1)["message"]} == asked(last + 1) == asked(last + 1, "/query")
    assert asked("1")["error_code"] == 40000


def test_metrics_name_each_query(served: Served) -> None:
    page = served.http.get("/metrics").text
    for name in ("moldau_sql_query_rows_total", "moldau_sql_query_lag_records", "moldau_sql_query_failed"):
        assert f'{name}{{query="CTAS_SPEND_1"}}' in page
    assert "moldau_sql_queries 1.0" in page


def test_extended_description_has_offsets(served: Served) -> None:
    described = served.do("DESCRIBE spend EXTENDED;")[0]["sourceDescription"]
    summary = described["queryOffsetSummaries"][0]
    assert summary["groupId"] == "_confluent-ksql-default_query_CTAS_SPEND_1"
    offsets = summary["topicSummaries"][0]["offsets"]
    assert [each["partition"] for each in offsets] == [0, 1]
    assert sum(each["logEndOffset"] for each in offsets) == 2 and described["errorStats"] == ""
    assert "messages consumed" in described["statistics"]


# The client


def test_client_executes_queries_and_inserts(served: Served) -> None:
    with connect(served.url, properties={"auto.offset.reset": "earliest"}) as sql:
        made = (
            "CREATE STREAM ${name} (id INT KEY, d DECIMAL(5, 2)) WITH (kafka_topic='c', format='JSON', partitions=1);"
        )
        assert sql.execute(made, name="c")[0]["commandStatus"]["status"] == "SUCCESS"

        async def story() -> list[Any]:
            rows = [{"ID": n, "D": Decimal("1.25") * n} for n in (1, 2)]
            assert [number async for number in sql.inserts("C", rows)] == [0, 1]
            found = []
            async for row in sql.stream("SELECT * FROM c EMIT CHANGES;"):
                found.append(row)
                if len(found) == 2:
                    break
            return found

        assert asyncio.run(story()) == [{"ID": 1, "D": 1.25}, {"ID": 2, "D": 2.5}]
        query = "SELECT d FROM c EMIT CHANGES LIMIT 2;"
        assert sql.rows(query) == [{"D": 1.25}, {"D": 2.5}]
        assert [str(value) for value in sql.pandas(query)["D"]] == ["1.25", "2.50"]
        with pytest.raises(QueryError, match="does not exist") as caught:
            sql.rows("SELECT * FROM nowhere;")
        assert caught.value.code == 40001
        with pytest.raises(QueryError, match="unknown stream"):
            asyncio.run(anext(sql.inserts("NOWHERE", [])))  # type: ignore[arg-type]


# Limits


def limited(**given: Any) -> tuple[Admission, list[float]]:
    now = [0.0]
    return Admission(Limits(**given), clock=lambda: now[0]), now


def test_pull_queries_are_limited_by_rate_number_and_bytes() -> None:
    admission, now = limited(pull_rate=2, pull_queries=1, pull_megabytes=1)
    with admission.pull():
        with pytest.raises(ServerError, match="concurrency limit") as caught, admission.pull():
            pass
        assert (caught.value.code, caught.value.status) == (42900, 429)
    with admission.pull():
        pass
    with pytest.raises(ServerError, match="at rate limit for pull queries"), admission.pull():
        pass
    now[0] = 1.5
    admission.answered(1 << 20)
    with pytest.raises(ServerError, match="bandwidth"), admission.pull():
        pass
    now[0] = 3_700.0
    with admission.pull():
        pass
    assert (admission.pulls, admission.sent_bytes) == (0, 0)


def test_push_queries_statements_and_properties_are_limited(served: Served) -> None:
    service = Service(MemoryTopics(), settings={"auto.offset.reset": "earliest"})
    service.execute(Request(PAY))
    service.admission = Admission(Limits(push_queries=1, statements=2, denied=frozenset({"ksql.secret"})))
    service.query(Request("SELECT * FROM pay EMIT CHANGES;"))
    with pytest.raises(ServerError, match="push queries") as caught:
        service.query(Request("SELECT * FROM pay EMIT CHANGES;"))
    assert caught.value.code == 40003
    with pytest.raises(ServerError, match="has 3 statements, at most 2"):
        service.execute(Request("SHOW STREAMS; SHOW STREAMS; SHOW STREAMS;"))
    for request in (Request("SHOW STREAMS;", {"ksql.secret": 1}), Request("SET 'ksql.secret'='1';")):
        with pytest.raises(ServerError, match=r"prohibited by the KSQL server .*\[ksql.secret\]"):
            service.execute(request)
    service.admission = Admission(Limits(allowed=frozenset({"auto.offset.reset"})))
    service.execute(Request("SET 'auto.offset.reset'='latest';"))
    with pytest.raises(ServerError, match="prohibited"):
        service.execute(Request("SET 'ksql.other'='1';"))
    service.close()


def test_limits_are_read_from_settings() -> None:
    denied = "ksql.properties.overrides.denylist=a,ksql.streams.b"
    settings = ServiceSettings([HTTP, SQL], ("ksql.query.pull.max.qps=7", denied))
    limits = Limits.of(settings)
    assert limits.pull_rate == 7 and limits.denied == FIXED | {"a", "b"} and limits.slow_reader_s == 60
    assert not any(limits.allows(name) for name in ("a", "ksql.streams.a", "b", "ksql.streams.b"))


def test_slow_reader_loses_its_query_and_is_told() -> None:
    async def story() -> list[Any]:
        closed, taken, sent = asyncio.Event(), asyncio.Event(), []

        async def parts() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield b"row"
            finally:
                closed.set()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body" and len(sent) > 2:
                await taken.wait()  # the reader's buffers are full
            sent.append(message)

        async def receive() -> Any:
            await asyncio.Event().wait()

        response = Streamed(parts(), "text/plain", 0.001, str.encode)
        running = asyncio.ensure_future(response({"type": "http"}, receive, send))
        await closed.wait()  # the query has ended, although the reader still takes nothing
        assert not running.done()
        taken.set()
        await running
        return sent

    sent = asyncio.run(story())
    assert b"The reader took no rows" in sent[-1]["body"] and sent[-1]["more_body"] is False


def test_query_ends_when_its_reader_leaves() -> None:
    async def story() -> None:
        closed, left = asyncio.Event(), asyncio.Event()

        async def parts() -> AsyncGenerator[bytes, None]:
            try:
                yield b"row"
                await asyncio.Event().wait()  # no more rows
            finally:
                closed.set()

        async def send(message: Any) -> None:
            if message.get("body") == b"row":
                left.set()

        async def receive() -> Any:
            await left.wait()
            return {"type": "http.disconnect"}

        await Streamed(parts(), "text/plain", 60.0, str.encode)({"type": "http"}, receive, send)
        assert closed.is_set()

    asyncio.run(story())


# Callers


def test_each_caller_does_what_roles_and_topics_allow(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("ann: secret,viewer\nboss: secret,admin\n", "utf-8")

    def refuse(uses: Uses) -> None:
        if {"pay", "SPEND"} & set(uses):
            raise ServerError(NO_ACCESS, "not for ann")

    service = Served()
    service.service.execute(Request(PAY + SPEND))
    service.endpoints.access_of = lambda caller: refuse if caller.name == "ann" else lambda uses: None
    given = ("authentication.method=BASIC", f"authentication.users.file={tmp_path / 'users'}")
    with service.run(*given) as served:
        ann, boss = ("ann", "secret"), ("boss", "secret")
        for path, body, code in (
            ("/ksql", {"ksql": "DROP STREAM pay;"}, 40300),
            ("/ksql", {"ksql": "DESCRIBE pay;"}, None),
            ("/query", {"ksql": "SELECT * FROM spend;"}, NO_ACCESS),
            ("/query", {"ksql": "PRINT pay FROM BEGINNING LIMIT 1;"}, NO_ACCESS),
            ("/query-stream", {"sql": "SELECT COUNT(*) AS n FROM spend ORDER BY 1;"}, NO_ACCESS),
            ("/inserts-stream", {"target": "pay"}, 40300),
            ("/heartbeat", {"hostInfo": {"host": "x", "port": 1}}, 40300),
            ("/ksql/terminate", {}, 40300),
        ):
            answer = served.http.post(path, json=body, auth=ann)
            found = None if answer.status_code == 200 else answer.json().get("error_code")
            assert found in (code, (code or 0) // 100), (path, answer.text)
        basic = {
            who: f"Basic {b64encode(':'.join(login).encode()).decode()}" for who, login in (("a", ann), ("b", boss))
        }
        text = "SELECT * FROM pay EMIT CHANGES LIMIT 1;"
        assert json.loads(served.say(text, authorization=basic["a"])[0]) == {"error": "not for ann"}
        served.http.post("/ksql", json={"ksql": "INSERT INTO pay VALUES ('a', 1);"}, auth=boss).raise_for_status()
        assert len(served.say(text, authorization=basic["b"])) == 3
        with pytest.raises(Exception, match="403"):
            served.say(text)
        assert served.http.post("/ksql/terminate", json={}, auth=boss).status_code == 200


# Termination


def test_termination_ends_queries_and_deletes_topics() -> None:
    with Served().run() as served:
        served.do(PAY + SPEND + "CREATE STREAM kept AS SELECT * FROM pay;")
        bad = served.http.post("/ksql/terminate", json={"deleteTopicList": ["("]})
        assert bad.status_code == 400 and "Invalid pattern" in bad.json()["message"]
        answer = served.http.post("/ksql/terminate", json={"deleteTopicList": ["SP.*", "pay"]})
        assert answer.json()[0]["commandId"] == "cluster/TerminateCluster/terminate"
        assert served.service.topics.names() == ["KEPT", "pay"], "only what queries wrote is deleted"
        assert served.service.running == {} and served.service.is_over
        refused = served.http.get("/info")
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50303)


def test_termination_in_the_past_leaves_a_server_with_nothing() -> None:
    service = Service(MemoryTopics())
    service.live = False
    service.execute(Request(PAY))
    from moldau.sql.server import terminating

    service.commands.submit(terminating.command([]))
    assert service.engine.catalogue.sources == {} and not service.terminated
    service.execute(Request(PAY))
    assert set(service.engine.catalogue.sources) == {"PAY"}


def test_headless_server_takes_no_statements() -> None:
    service = Service(MemoryTopics())
    service.execute(Request(PAY))
    service.headless = "q.sql"
    with pytest.raises(ServerError, match="runs the statements of"):
        service.execute(Request("DROP STREAM pay;"))
    assert service.execute(Request("SHOW STREAMS;"))[0]["streams"][0]["name"] == "PAY"
