"""Functions of URLs, whose parts are decoded as java.net.URI does. What is no URI gives null."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import SplitResult, quote_plus, unquote, unquote_plus, urlsplit

from .registry import scalar

_LEGAL = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%\u0080-\U0010ffff]*")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _split(text: str) -> SplitResult | None:
    """Split a URL; None if it is no URI."""
    if not _LEGAL.fullmatch(text) or _BAD_ESCAPE.search(text):
        return None
    try:
        return urlsplit(text)
    except ValueError:
        return None


def _part(name: str, kind: str, part: Callable[[SplitResult], str | int | None], doc: str) -> None:
    def extract(text: str) -> str | int | None:
        split = _split(text)
        try:
            return None if split is None else part(split)
        except ValueError:
            return None

    scalar(f"{name}(STRING url) -> {kind}", doc=doc)(extract)


def _host(split: SplitResult) -> str | None:
    found = split.netloc.rpartition("@")[2]
    return re.sub(r":\d*$", "", found) or None


def _opaque(split: SplitResult) -> bool:
    return bool(split.scheme) and not split.netloc and not split.path.startswith("/")


def _decoded(text: str) -> str | None:
    return unquote(text) if text else None


_part("url_extract_fragment", "STRING", lambda u: _decoded(u.fragment), "Returns the fragment of a URL.")
_part("url_extract_host", "STRING", _host, "Returns the host of a URL.")
_part("url_extract_path", "STRING", lambda u: None if _opaque(u) else unquote(u.path), "Returns the path of a URL.")
_part("url_extract_port", "INTEGER", lambda u: u.port, "Returns the port of a URL; null if it names none.")
_part("url_extract_protocol", "STRING", lambda u: u.scheme or None, "Returns the protocol of a URL.")
_part("url_extract_query", "STRING", lambda u: _decoded(u.query), "Returns the query of a URL.")


@scalar("url_extract_parameter(STRING url, STRING name) -> STRING", doc="Returns a parameter of the query of a URL.")
def url_extract_parameter(url: str, name: str) -> str | None:
    split = _split(url)
    for pair in unquote(split.query).split("&") if split else ():
        key, _, value = pair.partition("=")
        if key == name:
            return value
    return None


@scalar("url_decode_param(STRING text) -> STRING", doc="Decodes a text that was encoded for a URL.")
def url_decode_param(text: str) -> str:
    if _BAD_ESCAPE.search(text):
        raise ValueError(f"url_decode_param: {text!r} has a % without two hex digits")
    return unquote_plus(text)


@scalar("url_encode_param(STRING text) -> STRING", doc="Encodes a text for a URL.")
def url_encode_param(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")
