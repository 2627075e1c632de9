"""Media types of the REST Proxy."""

from __future__ import annotations

from moldau.http import Types

V2_JSON = "application/vnd.kafka.v2+json"
EMBEDDED = ("binary", "json", "avro", "jsonschema", "protobuf")
V2_FORMAT = {f"application/vnd.kafka.{name}.v2+json": name for name in EMBEDDED}
# Version 1 is answered as version 2 is, under its own types.
V1_JSON = "application/vnd.kafka.v1+json"
V1_FORMAT = {f"application/vnd.kafka.{name}.v1+json": name for name in ("binary", "json", "avro")}
FORMAT = V2_FORMAT | V1_FORMAT
TO_VERSION_1 = dict.fromkeys((V1_JSON, *V1_FORMAT), V1_JSON)

V2 = Types((V2_JSON, *V2_FORMAT, V1_JSON, *V1_FORMAT), ("application/vnd.kafka+json", "application/json"), TO_VERSION_1)
V2_BODY = Types(V2.names)
V2_RECORDS = Types(tuple(FORMAT))  # what is produced
V2_GENERAL = (V2_JSON, "application/vnd.kafka+json", "application/json")
V2_CONSUMED = Types((*FORMAT, V1_JSON), V2_GENERAL, TO_VERSION_1)
