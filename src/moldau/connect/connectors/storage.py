"""Where files are written: a folder, a bucket of S3, or HDFS. A file is there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import httpx

from moldau.connect.errors import ConfigError, ConnectError, RetriableError


class Storage(Protocol):
    def write(self, path: str, data: bytes) -> None:
        """Write a file, in place of one that has its name; RetriableError if that may help later."""
        ...


class Folder:
    """A folder of this machine, or one that is mounted."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def write(self, path: str, data: bytes) -> None:
        target = self._root / path
        beside = target.with_name(f".{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except OSError as error:
            raise RetriableError(f"{target} cannot be written: {error.strerror or error}") from error


class Bucket:
    """A bucket of S3, or of a server that speaks its protocol (`store.url`)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        try:
            from pyarrow import fs
        except ImportError:
            raise ConfigError("S3 needs the Python package pyarrow: pip install 'moldau[console]'.") from None
        secret = config["aws.secret.access.key"]
        given: dict[str, Any] = {
            "region": config["s3.region"],
            "allow_delayed_open": True,
        }  # small files in one request
        if config["aws.access.key.id"] and secret is not None:
            given |= {"access_key": config["aws.access.key.id"], "secret_key": secret.value}
        if config["store.url"]:
            scheme, _, place = config["store.url"].partition("://")
            given |= {"endpoint_override": place.rstrip("/"), "scheme": scheme}
        self._bucket: str = config["s3.bucket.name"]
        self._files: Any = fs.S3FileSystem(**given)

    def write(self, path: str, data: bytes) -> None:
        try:
            with self._files.open_output_stream(f"{self._bucket}/{path}") as file:
                file.write(data)
        except FileNotFoundError as error:
            raise ConnectError(f"There is no bucket {self._bucket}.") from error
        except OSError as error:
            raise RetriableError(f"{path} cannot be written to {self._bucket}: {error}") from error


class Hdfs:
    """HDFS over WebHDFS. A file is written beside its place and renamed."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        scheme, _, place = config["hdfs.url"].partition("://")
        kinds = {"webhdfs": "http", "http": "http", "swebhdfs": "https", "https": "https"}
        if scheme not in kinds:
            raise ConfigError(
                f"Invalid value {config['hdfs.url']} for configuration hdfs.url: write webhdfs://host:port"
            )
        self._base = f"{kinds[scheme]}://{place.rstrip('/')}/webhdfs/v1"
        self._user: str = config["hdfs.user"]
        self._client = httpx.Client(timeout=config["hdfs.timeout.ms"] / 1000)

    def write(self, path: str, data: bytes) -> None:
        folder, _, name = f"/{path}".rpartition("/")
        beside = f"{folder}/.{name}.part"
        asked = self._ask("PUT", beside, op="CREATE", overwrite="true")
        self._checked(self._request("PUT", asked.headers.get("location", ""), data), path)
        if not self._ask("PUT", beside, op="RENAME", destination=f"/{path}").json()["boolean"]:
            # The same records made the file before: its name says which they are.
            self._ask("DELETE", f"/{path}", op="DELETE")
            if not self._ask("PUT", beside, op="RENAME", destination=f"/{path}").json()["boolean"]:
                raise RetriableError(f"/{path} cannot be renamed in HDFS.")

    def _ask(self, method: str, path: str, **asked: str) -> httpx.Response:
        words = {**asked, **({"user.name": self._user} if self._user else {})}
        query = "&".join(f"{name}={quote(text, safe='/')}" for name, text in words.items())
        return self._checked(self._request(method, f"{self._base}{quote(path)}?{query}"), path)

    def _request(self, method: str, url: str, data: bytes | None = None) -> httpx.Response:
        try:
            return self._client.request(method, url, content=data)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise RetriableError(f"{method} {url}: {error or type(error).__name__}") from error

    def _checked(self, answer: httpx.Response, path: str) -> httpx.Response:
        if answer.status_code < 400:
            return answer
        passes = answer.status_code >= 500 or "StandbyException" in answer.text or "SafeMode" in answer.text
        said = f"{path} was answered {answer.status_code} by HDFS: {answer.text[:300]}"
        raise (RetriableError if passes else ConnectError)(said)
