"""Reads an Airbyte manifest with airbyte-cdk and writes Singer's lines. It is a program of its own.

    python airbyte_runner.py SPEC.json

Whatever the manifest's source prints goes to the error output. States are kept for incremental streams only: others are
read from the start in each run.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any


def main(place: str) -> None:
    with open(place) as file:
        spec = json.load(file)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import yaml
    from airbyte_cdk.models import AirbyteStateMessageSerializer, ConfiguredAirbyteCatalog, Type
    from airbyte_cdk.sources.declarative.concurrent_declarative_source import ConcurrentDeclarativeSource

    def write(**message: Any) -> None:
        out.write(json.dumps(message, default=str) + "\n")

    with open(spec["manifest"]) as file:
        manifest = yaml.safe_load(file)
    log, config, state = logging.getLogger("airbyte"), spec["config"], dict(spec["state"] or {})
    given = [AirbyteStateMessageSerializer.load(stored(name, one)) for name, one in state.items()]

    def source(catalog: Any = None) -> Any:
        return ConcurrentDeclarativeSource(
            catalog=catalog, config=config, state=given, source_config=manifest, custom_components_trusted=False
        )

    streams = chosen(source().discover(log, config).streams, spec["streams"])
    catalog = ConfiguredAirbyteCatalog(streams=[configured(one) for one in streams])
    incremental = {one.stream.name for one in catalog.streams if one.sync_mode.value == "incremental"}
    for one in streams:
        keys = [path[0] for path in one.source_defined_primary_key or () if len(path) == 1]
        write(type="SCHEMA", stream=one.name, schema={}, key_properties=keys)
    for message in source(catalog).read(log, config, catalog, given):
        if message.type == Type.RECORD:
            write(type="RECORD", stream=message.record.stream, record=message.record.data)
        elif message.type == Type.STATE and message.state.stream is not None:
            name = message.state.stream.stream_descriptor.name
            if name in incremental:
                state[name] = AirbyteStateMessageSerializer.dump(message.state)["stream"]["stream_state"]
                write(type="STATE", value=state)
        elif message.type == Type.TRACE and message.trace.error is not None:
            sys.stderr.write(f"{message.trace.error.message}\n")
        elif message.type == Type.LOG:
            sys.stderr.write(f"{message.log.message}\n")
    out.flush()


def stored(name: str, state: Any) -> dict[str, Any]:
    """Return the message that gives a stream its state back."""
    return {"type": "STREAM", "stream": {"stream_descriptor": {"name": name}, "stream_state": state}}


def chosen(streams: list[Any], names: list[str]) -> list[Any]:
    """Return the streams to read."""
    known = [one.name for one in streams]
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"The manifest has no stream {unknown[0]}; it has {', '.join(known)}.")
    return [one for one in streams if not names or one.name in names]


def configured(stream: Any) -> Any:
    """Have a stream read from where it was, if it can be."""
    from airbyte_cdk.models import ConfiguredAirbyteStream, DestinationSyncMode, SyncMode

    modes = [getattr(one, "value", one) for one in stream.supported_sync_modes or ()]
    mode = SyncMode.incremental if "incremental" in modes else SyncMode.full_refresh
    return ConfiguredAirbyteStream(stream=stream, sync_mode=mode, destination_sync_mode=DestinationSyncMode.append)


if __name__ == "__main__":
    main(sys.argv[1])
