"""Where an application keeps what outlives it: a folder of its own in `state.dir`."""

from pathlib import Path
from urllib.parse import urlsplit

CHECKPOINT = "checkpoint"  # in the folder: Spark's
STATE_DIR = "moldau-state"  # if nothing else is said
FROZEN = "moldau-streams.json"  # in the folder, beside the checkpoint: what must not change between two starts
BEGIN = "moldau-begin.json"  # beside it: where the first batch begins


def home(state_dir: str, application: str) -> str:
    """The folder, which may be a URL of any storage that Spark knows."""
    return f"{state_dir.rstrip('/')}/{application}"


def local(home: str) -> Path:
    """The folder, if it is on this machine. ValueError if not."""
    place = urlsplit(home)
    if place.scheme not in ("", "file"):
        raise ValueError(f"remove {home} by the tools of its storage: it is not a folder of this machine")
    return Path(place.path)
