"""A document from an HTTP server that may be slow or endless: time and size of the whole are bounded."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any


class FetchError(Exception):
    """Why there is no document, in a few words."""


class TooLarge(FetchError):
    """There is a document, but no end of it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a server may take: seconds in all, and bytes."""

    seconds: float
    size: int


def fetch(method: str, url: str, bounds: Bounds, **more: Any) -> tuple[int, bytes]:
    """Return status and content; raises FetchError. Redirects are not followed.

    A client without a loop has but a limit for each read, so a byte a second would go on for ever. The loop is in a
    thread of its own, as the caller may have one.
    """
    with ThreadPoolExecutor(1, "fetch") as thread:
        return thread.submit(asyncio.run, _fetch(method, url, bounds, more)).result()


async def _fetch(method: str, url: str, bounds: Bounds, more: dict[str, Any]) -> tuple[int, bytes]:
    import httpx

    plain = {"accept-encoding": "identity"}  # a little that is compressed may be gigabytes
    try:
        async with (
            asyncio.timeout(bounds.seconds),
            httpx.AsyncClient(timeout=bounds.seconds, headers=plain, follow_redirects=False) as client,
            client.stream(method, url, **more) as response,
        ):
            found = bytearray()
            async for chunk in response.aiter_raw():
                found += chunk
                if len(found) > bounds.size:
                    raise TooLarge(f"there are more than {bounds.size} bytes")
            return response.status_code, bytes(found)
    except (TimeoutError, httpx.TimeoutException):
        raise FetchError(f"it takes more than {bounds.seconds:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchError(str(error) or type(error).__name__) from None
