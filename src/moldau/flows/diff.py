"""How the code of two versions differs: the source files of two zips as one unified diff, within bounds."""

from __future__ import annotations

import difflib
import io
import zipfile
from collections.abc import Mapping

from moldau.client import Client
from moldau.flows import code
from moldau.flows.definition import Definition, FlowError
from moldau.flows.packages import FOLDER
from moldau.flows.streams_kind import kept_of

MOST_LINES = 5000  # of a file that is compared line by line
LONGEST = 200_000  # characters of a diff


def diff_of(client: Client, flow: Definition) -> str:
    """Return what the last upgrade of a flow has changed; an empty text if there was none."""
    if flow.previous is None:
        return ""
    before, now = (code.get(client, kept_of(*one)) for one in (flow.previous, (flow.version, flow.what)))
    if before is None or now is None:
        raise FlowError(f"The code of {flow.name} is not in {code.TOPIC}.")
    return diff(files_of(before), files_of(now))


def files_of(data: bytes) -> dict[str, str]:
    """Return the files of a zip as text, without those of packages."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as made:
            files = code.checked(made.infolist())
            own = [info for info in files if not info.filename.startswith(f"{FOLDER}/")]
            return {info.filename: made.read(info).decode(errors="replace") for info in own}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise FlowError(f"The code is no zip that can be read: {error}.") from None


def diff(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    parts = [one_file(name, before.get(name), now.get(name)) for name in sorted({*before, *now})]
    whole = "".join(parts)
    return whole if len(whole) <= LONGEST else f"{whole[:LONGEST]}\n... and more\n"


def one_file(name: str, before: str | None, now: str | None) -> str:
    if before == now:
        return ""
    old, new = ((text or "").splitlines() for text in (before, now))
    titles = f"a/{name}" if before is not None else "/dev/null", f"b/{name}" if now is not None else "/dev/null"
    if max(len(old), len(new)) > MOST_LINES:
        return f"--- {titles[0]}\n+++ {titles[1]}\nThe file has more than {MOST_LINES} lines, and differs.\n"
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *titles, lineterm=""))
