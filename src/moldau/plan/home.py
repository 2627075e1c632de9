"""The folder in `state.dir` where an application keeps its state."""

from pathlib import Path
from urllib.parse import urlsplit

CHECKPOINT = "checkpoint"  # in the folder: Spark's
STATE_DIR = "moldau-state"  # by default
FROZEN = "moldau-streams.json"  # in the folder, beside the checkpoint: what must not change between two starts
BEGIN = "moldau-begin.json"  # beside it: where the first batch begins


def home(state_dir: str, application: str) -> str:
    """Return the folder, which may be a URL of any storage that Spark knows."""
    return f"{state_dir.rstrip('/')}/{application}"


def local(home: str) -> Path:
    """Return the folder as a path; ValueError if it is not on this machine."""
    place = urlsplit(home)
    if place.scheme not in ("", "file"):
        raise ValueError(f"remove {home} by the tools of its storage: it is not a folder of this machine")
    return Path(place.path)
