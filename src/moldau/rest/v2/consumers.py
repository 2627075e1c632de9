"""Consumer instances: create, subscribe or assign, read, commit, seek, delete."""

from __future__ import annotations

from functools import partial
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Message, TopicPartition
from starlette.responses import Response

from moldau.http import VIEWER, Endpoint, HttpError, json_response
from moldau.rest import media
from moldau.rest.endpoints import Call, quoted
from moldau.rest.errors import CONSUMER_CONSTRAINT, FORMAT_MISMATCH, PARTITION_NOT_FOUND, WRONG_CONSUMER, refusal
from moldau.rest.instances import Instance

RESETS = ("earliest", "latest", "none")
# librdkafka has another word for it.
RESET_NAMES = {"none": "error"}
BOOLEANS = ("true", "false")
REFRESH = "topic.metadata.refresh.interval.ms"


async def create(call: Call) -> dict[str, Any]:
    body, settings = call.body or {}, call.proxy.settings
    format = (body.get("format") or "binary").lower()
    if format not in media.EMBEDDED:
        raise refusal(WRONG_CONSUMER, f"format is one of {', '.join(media.EMBEDDED)}.")
    options = {}
    if (reset := body.get("auto.offset.reset")) is not None:
        if reset not in RESETS:
            raise refusal(CONSUMER_CONSTRAINT, f"auto.offset.reset is one of {', '.join(RESETS)}.")
        options["auto.offset.reset"] = RESET_NAMES.get(reset, reset)
    if (auto := body.get("auto.commit.enable")) is not None:
        if str(auto).lower() not in BOOLEANS:
            raise refusal(CONSUMER_CONSTRAINT, "auto.commit.enable is true or false.")
        options["enable.auto.commit"] = str(auto).lower()
    if body.get(REFRESH) is not None:
        options[REFRESH] = str(_number(body, REFRESH, 0, 10))
    timeout_ms = _number(body, "consumer.request.timeout.ms", settings["consumer.request.timeout.ms"], 1)
    min_bytes = _number(body, "fetch.min.bytes", settings["fetch.min.bytes"], -1)
    group, name = call["group"], body.get("name") or body.get("id")
    made = call.proxy.instances.create(group, name, format, options, (timeout_ms, min_bytes))
    where = f"{call.base}/consumers/{quoted(group)}/instances/{quoted(made.name)}"
    return {"instance_id": made.name, "base_uri": where}


def _number(body: dict[str, Any], name: str, default: int, least: int) -> int:
    given = body.get(name)
    if given is None:
        return default
    text = str(given).strip()
    if isinstance(given, bool) or not text.removeprefix("-").isdecimal() or not least <= int(text) < 2**31:
        raise refusal(WRONG_CONSUMER, f"{name} is a whole number of at least {least}.")
    return int(text)


async def delete(call: Call) -> None:
    await call.proxy.instances.delete(call["group"], call["instance"])


async def _use(call: Call, work: Any) -> Any:
    return await call.proxy.instances.use(call["group"], call["instance"], work)


async def subscribe(call: Call) -> None:
    topics, pattern = call.body.get("topics"), call.body.get("topic_pattern")
    if (topics is None) == (pattern is None):
        raise refusal(42204, "one of topics and topic_pattern is given.")
    await _use(call, lambda instance: instance.subscribe(topics, pattern))


async def subscription(call: Call) -> dict[str, Any]:
    def known() -> list[str]:
        return [topic.name for topic in call.kafka.topics(None)]

    return {"topics": await _use(call, lambda instance: instance.subscription(known))}


async def unsubscribe(call: Call) -> None:
    await _use(call, Instance.unsubscribe)


async def records(call: Call) -> Response:
    settings = call.proxy.settings
    instance = call.proxy.instances.find(call["group"], call["instance"])
    media_type = _agreed(instance.format, call.request.headers.get("accept"))
    timeout_ms, most = _query_number(call, "timeout"), _query_number(call, "max_bytes")
    timeout_ms = instance.timeout_ms if timeout_ms is None or timeout_ms < 0 else timeout_ms
    timeout_ms = min(timeout_ms, settings["request.timeout.ms"] * 9 // 10)
    limit = settings["consumer.request.max.bytes"]
    most = limit if most is None or most <= 0 else min(most, limit)
    decode = partial(_record_json, call.proxy.decoder(instance.format.upper()))
    found = await _use(call, lambda instance: instance.read(decode, timeout_ms, most))
    return json_response(found, media_type)


def _agreed(format: str, header: str | None) -> str:
    """Choose the type of an instance's records: the instance's own if the request accepts any, or does not say."""
    own = tuple(name for name, embedded in media.FORMAT.items() if embedded == format)
    try:
        return media.Types((*own, media.V1_JSON), media.V2_GENERAL).accepted(header)
    except HttpError:
        raise refusal(FORMAT_MISMATCH) from None


def _record_json(decode: Any, message: Message) -> dict[str, Any]:
    return {
        "topic": message.topic(),
        "key": decode(message.key(), "key", message),
        "value": decode(message.value(), "value", message),
        "partition": message.partition(),
        "offset": message.offset(),
    }


def _query_number(call: Call, name: str) -> int | None:
    text = call.query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.removeprefix("-").isdecimal() or len(text) > 18:
        raise HttpError(404)
    return int(text)


async def commit(call: Call) -> dict[str, Any]:
    offsets = None
    if call.body is not None:
        # The last record that was processed is told; the one to read next is committed.
        offsets = [
            TopicPartition(row["topic"], row["partition"], row["offset"] + 1, row.get("metadata") or "")
            for row in call.body["offsets"]
        ]
    asynchronous = call.query.get("async", "false") == "true"
    await _use(call, lambda instance: instance.commit(offsets, asynchronous))
    return {"offsets": []}


async def committed(call: Call) -> dict[str, Any]:
    if call.body is None:
        raise refusal(PARTITION_NOT_FOUND)
    pairs = _pairs(call.body["partitions"])
    rows = [
        {"topic": row.topic, "partition": row.partition, "offset": row.offset, "metadata": row.metadata or ""}
        for row in await _use(call, lambda instance: instance.committed(pairs, call.kafka.timeout_s))
    ]
    return {"offsets": rows}


async def seek(call: Call) -> None:
    await _seek(call, call.body["offsets"], [row["offset"] for row in call.body["offsets"]])


async def seek_to(offset: int, call: Call) -> None:
    await _seek(call, call.body["partitions"], [offset] * len(call.body["partitions"]))


seek_to_beginning, seek_to_end = partial(seek_to, OFFSET_BEGINNING), partial(seek_to, OFFSET_END)


async def _seek(call: Call, rows: list[dict[str, Any]], offsets: list[int]) -> None:
    await _use(call, lambda instance: instance.seek(_pairs(rows), offsets, call.kafka.timeout_s))


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(row["topic"], row["partition"]) for row in rows]


async def assign(call: Call) -> None:
    await _use(call, lambda instance: instance.assign(_pairs(call.body["partitions"])))


async def assignments(call: Call) -> dict[str, Any]:
    pairs = await _use(call, Instance.assignment)
    return {"partitions": [{"topic": topic, "partition": partition} for topic, partition in pairs]}


def _row(
    method: str, path: str, run: Any, doc: str, gives: str | None, takes: str | None = None, **more: Any
) -> Endpoint:
    # Whatever a consumer does is reading; its group's ACLs decide about commits.
    types: dict[str, Any] = {"accepts": media.V2_BODY, "produces": media.V2, "role": VIEWER, **more}
    return Endpoint(method, f"/consumers/{{group}}{path}", run, doc, gives, takes, 200 if gives else 204, **types)


ONE = "/instances/{instance}"
CONSUMERS = (
    _row("POST", "", create, "Create an instance.", "V2Instance", "NewConsumer", body_needed=False),
    _row("DELETE", ONE, delete, "Close an instance; it leaves its group.", None),
    _row("POST", f"{ONE}/subscription", subscribe, "Subscribe to topics.", None, "Subscription"),
    _row("GET", f"{ONE}/subscription", subscription, "What it is subscribed to.", "V2Subscribed"),
    _row("DELETE", f"{ONE}/subscription", unsubscribe, "Unsubscribe from all.", None),
    _row(
        "GET",
        f"{ONE}/records",
        records,
        "Read records.",
        "V2Records_",
        produces=media.V2_CONSUMED,
        query=("timeout", "max_bytes"),
    ),
    _row("POST", f"{ONE}/offsets", commit, "Commit.", "V2Committed", "V2Offsets", body_needed=False, query=("async",)),
    _row("GET", f"{ONE}/offsets", committed, "What is committed.", "V2Committed", "V2Partitions", body_needed=False),
    _row("POST", f"{ONE}/positions", seek, "Move to offsets.", None, "V2Offsets"),
    _row("POST", f"{ONE}/positions/beginning", seek_to_beginning, "Move to the beginning.", None, "V2Partitions"),
    _row("POST", f"{ONE}/positions/end", seek_to_end, "Move to the end.", None, "V2Partitions"),
    _row("POST", f"{ONE}/assignments", assign, "Assign partitions by hand.", None, "V2Partitions"),
    _row("GET", f"{ONE}/assignments", assignments, "What it is assigned.", "V2Assigned"),
)
