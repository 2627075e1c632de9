"""Records: a stream of documents in, a report for each out, in order and while more come in; or a batch at once."""

from __future__ import annotations

import asyncio
import binascii
import json
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from moldau.http import Answer, Endpoint, HttpError
from moldau.rest.endpoints import Call, checked, document
from moldau.rest.errors import NO_DATA, PARTITION_NOT_FOUND, TOO_MANY, WRONG_BATCH, WRONG_PAYLOAD, refusal
from moldau.rest.formats import Encoded
from moldau.rest.json_stream import Broken, Splitter
from moldau.rest.producing import Record, Written
from moldau.rest.proxy import Proxy

REPORTS_A_WRITE = 500
END_OF_REPORT = b"\r\n"


class Sent(NamedTuple):
    """A record on its way."""

    key: Encoded | None
    value: Encoded | None
    written: asyncio.Future[Written]


def milliseconds(text: str) -> int:
    """Read a time in ISO 8601."""
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise HttpError(400, f"timestamp: {text[:40]!r} is not a time in ISO 8601.") from None


@lru_cache(maxsize=1000)
def moment(ms: int) -> str | None:
    """Write a time as Confluent does. Many records of a stream have the same."""
    if ms < 0:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header(row: dict[str, Any]) -> tuple[str, bytes | None]:
    value = row.get("value")
    try:
        return row["name"], None if value is None else binascii.a2b_base64(value.encode(), strict_mode=bool(value))
    except (binascii.Error, UnicodeEncodeError):
        raise HttpError(400, f"headers: the value of {row['name'][:40]!r} should be base64.") from None


async def send(proxy: Proxy, topic: str, body: dict[str, Any]) -> Sent:
    """Encode a record and hand it to the producer."""
    partition = body.get("partition_id")
    if partition is not None and partition < 0:
        raise refusal(PARTITION_NOT_FOUND)
    headers = [header(row) for row in body.get("headers") or ()]
    key, value = body.get("key"), body.get("value")
    key_data = None if key is None else await proxy.encode(topic, "key", key)
    value_data = None if value is None else await proxy.encode(topic, "value", value)
    when = body.get("timestamp")
    await proxy.producing.check(topic, partition)
    record = Record(
        topic,
        partition,
        key_data.data if key_data else None,
        value_data.data if value_data else None,
        headers,
        None if when is None else milliseconds(when),
    )
    return Sent(key_data, value_data, await proxy.producing.send(record))


async def report(proxy: Proxy, topic: str, sent: Sent) -> dict[str, Any]:
    """Report where a record was written."""
    written = await sent.written
    parts = {name: part.as_json() for name, part in (("key", sent.key), ("value", sent.value)) if part and part.type}
    return {
        "cluster_id": proxy.cluster_id,
        "topic_name": topic,
        "partition_id": written.partition,
        "offset": written.offset,
        "timestamp": moment(written.timestamp_ms),
        **parts,
    }


def failure(error: HttpError) -> dict[str, Any]:
    """Report a refusal: the code of a document that is wrong is its status, as in Confluent's version 3."""
    if error.status == 422 and error.code > 1000:
        return {"error_code": 422, "message": f"Error: {error.code} : {error}"}
    return {"error_code": error.code, "message": str(error)}


class Stream(Response):
    """The answer to a stream: it reads records for as long as they come, and reports on each."""

    def __init__(self, call: Call, chunks: AsyncIterator[bytes], first: bytes) -> None:
        super().__init__()
        self._proxy, self._topic, self._chunks, self._first = call.proxy, call["topic_name"], chunks, first
        settings = call.proxy.settings
        limit = settings["api.v3.produce.request.size.limit.max.bytes"]
        self._splitter = Splitter(limit or settings["size.limit.filter.max.request.body.size"])
        self._reports: asyncio.Queue[Sent | HttpError | None] = asyncio.Queue()
        self._room = settings["streaming.max.pending.responses"]
        self._read_on = asyncio.Event()
        self._end = time.monotonic() + settings.seconds("streaming.connection.max.duration.ms")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        reading = asyncio.ensure_future(self._read())
        try:
            await self._write(send)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._proxy.streams -= 1
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(self) -> None:
        """Read until the end of the stream, of its time, or of what makes sense."""
        try:
            async with asyncio.timeout(self._end - time.monotonic()):
                going = await self._take(self._first)
                async for chunk in self._chunks:
                    if not going or not (going := await self._take(chunk)):
                        break
            if going and (broken := self._splitter.end()):
                await self._put(_bad_request(broken))
        except TimeoutError:
            await self._put(HttpError(408, "Request Timeout: the connection is open for longer than allowed."))
        except ClientDisconnect:
            pass
        finally:
            self._reports.put_nowait(None)

    async def _put(self, item: Sent | HttpError) -> None:
        """Queue a report after the others, as soon as there is room. The end of all needs none."""
        while self._reports.qsize() >= self._room:
            self._read_on.clear()
            await self._read_on.wait()
        self._reports.put_nowait(item)

    async def _take(self, chunk: bytes) -> bool:
        documents, broken = self._splitter.feed(chunk)
        for one in documents:
            try:
                item = await send(self._proxy, self._topic, parsed(one))
            except HttpError as error:
                item = error
            await self._put(item)
        if broken:
            await self._put(_bad_request(broken))
        return broken is None

    async def _write(self, send: Send) -> None:
        """Send reports on: those that are due together, and none later because of one that is not due yet."""
        lines: list[bytes] = []

        async def flush() -> None:
            if lines:
                await send({"type": "http.response.body", "body": b"".join(lines), "more_body": True})
                lines.clear()

        while True:
            if self._reports.empty() or len(lines) >= REPORTS_A_WRITE:
                await flush()
            item = await self._reports.get()
            if item is None or (isinstance(item, Sent) and not item.written.done()):
                await flush()
            if item is None:
                return
            lines.append(await self._line(item))

    async def _line(self, item: Sent | HttpError) -> bytes:
        self._read_on.set()
        try:
            if isinstance(item, HttpError):
                raise item
            found = {"error_code": 200, **await report(self._proxy, self._topic, item)}
        except HttpError as error:
            found = failure(error)
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + END_OF_REPORT


def _bad_request(broken: Broken) -> HttpError:
    return HttpError(400, f"Bad Request: Error processing message: {broken}")


def parsed(body: bytes) -> dict[str, Any]:
    """Read a record of the stream, whose depth is known already; all that is wrong with its form is 400."""
    try:
        return checked("NewRecord", document(body, json.loads))
    except HttpError as error:
        raise HttpError(400, str(error)) from None


async def produce(call: Call) -> Stream:
    chunks = call.request.stream()
    first = b""
    async for first in chunks:
        if first.strip():
            break
    if not first.strip():
        raise refusal(WRONG_PAYLOAD, NO_DATA)
    if call.proxy.streams >= call.proxy.settings["max.requests.in.flight"]:
        raise HttpError(TOO_MANY, "Too many streams are open; try again later.")
    call.proxy.streams += 1
    return Stream(call, chunks, first)


async def produce_batch(call: Call) -> Answer:
    entries, topic = call.body["entries"], call["topic_name"]
    names = [entry["id"] for entry in entries]
    most = call.proxy.settings["api.v3.produce.batch.maximum.entries"]
    if not entries:
        raise refusal(WRONG_BATCH, "Empty batch.")
    if len(entries) > most:
        raise refusal(WRONG_BATCH, f"Too many entries in batch. At most {most} are allowed.")
    if len(set(names)) < len(names):
        raise refusal(WRONG_BATCH, "Batch entry IDs are not distinct.")
    sent = [await _attempt(send(call.proxy, topic, entry)) for entry in entries]
    done = [one if isinstance(one, HttpError) else await _attempt(report(call.proxy, topic, one)) for one in sent]
    rows = list(zip(names, done, strict=True))
    successes = [{"id": name, **row} for name, row in rows if not isinstance(row, HttpError)]
    failures = [{"id": name, **failure(row)} for name, row in rows if isinstance(row, HttpError)]
    return Answer(207, {"successes": successes, "failures": failures})


async def _attempt(work: Any) -> Any:
    try:
        return await work
    except HttpError as error:
        return error


ALL = "/v3/clusters/{cluster_id}/topics/{topic_name}/records"
RECORDS = (
    Endpoint("POST", ALL, produce, "Write records, one document each.", "Written", "NewRecord", unbounded=True),
    Endpoint("POST", f"{ALL}:batch", produce_batch, "Write a few records.", "WrittenBatch", "NewRecords", 207),
)
