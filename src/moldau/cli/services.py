"""What the commands that run a service share: logs, and a sentence for each mistake."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

from moldau.http import ServeError
from moldau.settings import SettingError

OK, FAILED, MISUSED = 0, 1, 2


def run_service(name: str, serve: Callable[[], None]) -> int:
    """Run it, and return the exit code."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("moldau").setLevel(logging.INFO)
    try:
        serve()
    except SettingError as error:
        return _complain(name, error, MISUSED)
    except ServeError as error:
        return _complain(name, error, FAILED)
    except KeyboardInterrupt:
        return 130
    return OK


def _complain(name: str, error: Exception, code: int) -> int:
    print(f"moldau {name}: {error}", file=sys.stderr)
    return code
