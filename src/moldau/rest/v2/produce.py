"""Records of one embedded format, to a topic or to one partition of it."""

from __future__ import annotations

from typing import Any

from moldau.http import Endpoint, HttpError
from moldau.rest import media
from moldau.rest.endpoints import Call
from moldau.rest.errors import AUTHENTICATION, AUTHORIZATION, KAFKA, RETRIABLE, TOO_MANY, UNKNOWN_TOPIC_OR_PARTITION
from moldau.rest.producing import Record

# What became of one record of a request is told in four codes; KAFKA is the fourth.
RECORD_CODES = {code: code for code in (AUTHENTICATION, AUTHORIZATION, RETRIABLE)}
RECORD_CODES |= {UNKNOWN_TOPIC_OR_PARTITION: RETRIABLE, TOO_MANY: RETRIABLE}


async def produce(call: Call) -> dict[str, Any]:
    topic, body = call["topic_name"], call.body
    fixed = call["partition_id"] if "partition_id" in call.request.path_params else None
    encode = await call.proxy.encoder(topic, media.FORMAT[call.media_type].upper(), body)
    records, ids = [], {}
    for row in body["records"]:
        partition = fixed if row.get("partition") is None else row["partition"]
        await call.proxy.producing.check(topic, partition)
        parts = {field: encode(field, row.get(field)) for field in ("key", "value")}
        ids |= {field: part.schema_id for field, part in parts.items()}
        records.append(Record(topic, partition, parts["key"].data, parts["value"].data))
    sent = [await call.proxy.producing.send(record) for record in records]
    offsets = []
    for future in sent:
        try:
            written = await future
            offsets.append(
                {"partition": written.partition, "offset": written.offset, "error_code": None, "error": None}
            )
        except HttpError as error:
            code = RECORD_CODES.get(error.code, KAFKA)
            offsets.append({"partition": None, "offset": None, "error_code": code, "error": str(error)})
    return {"offsets": offsets, "key_schema_id": ids.get("key"), "value_schema_id": ids.get("value")}


def _post(path: str, takes: str, doc: str) -> Endpoint:
    return Endpoint("POST", path, produce, doc, "V2Written", takes, accepts=media.V2_RECORDS, produces=media.V2)


PRODUCE = (
    _post("/topics/{topic_name}", "V2Records", "Write records to a topic."),
    _post("/topics/{topic_name}/partitions/{partition_id}", "V2Records", "Write records to a partition."),
)
