"""SFTP: files of a server as records, and records as files of a server.

The sources have the settings of SpoolDir, on folders of the server; the sink has those of the other sinks of files. A
file is written beside its place and renamed, so it is there as a whole or not at all, and a repeated one replaces it.
"""

from __future__ import annotations

import io
import posixpath
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, TypeVar

from moldau.connect.config_def import Importance, Key, Kind, between, key
from moldau.connect.connectors.packages import needed
from moldau.connect.connectors.places import Found
from moldau.connect.errors import ConfigError, ConnectError, RetriableError

T = TypeVar("T")
CONNECTION = (
    Key("sftp.host", importance=Importance.HIGH, doc="The server."),
    key("sftp.port", 22, "Its port.", Kind.INT, validator=between(1, 65535)),
    Key("sftp.username", importance=Importance.HIGH, doc="The user."),
    key("sftp.password", None, "The user's password.", Kind.PASSWORD),
    key("tls.private.key", None, "The user's private key in the format of OpenSSH or PEM.", Kind.PASSWORD),
    key("tls.passphrase", None, "The passphrase of the private key.", Kind.PASSWORD),
    key("sftp.known.hosts.file", "", "The file with the server's key; ~/.ssh/known_hosts by default."),
    key("sftp.timeout.ms", 30_000, "How long to wait for the server.", Kind.INT, validator=between(1)),
)


class Server:
    """A connection, made when it is needed, and anew when it broke."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._ssh = needed("paramiko", "SFTP", "sftp")
        self._client: Any = None
        self._sftp: Any = None

    def ask(self, what: Callable[[Any], T]) -> T:
        """Ask the server; RetriableError if the connection broke."""
        try:
            if self._sftp is None:
                self._connect()
            return what(self._sftp)
        except self._ssh.ssh_exception.NoValidConnectionsError as error:
            raise RetriableError(f"{self._config['sftp.host']}: {error}") from error
        except (self._ssh.AuthenticationException, self._ssh.BadHostKeyException) as error:
            raise ConnectError(f"{self._config['sftp.host']} and we do not trust each other: {error}") from error
        except (self._ssh.SSHException, EOFError, ConnectionError, TimeoutError) as error:
            self.close()
            raise RetriableError(f"{self._config['sftp.host']}: {error or type(error).__name__}") from error

    def _connect(self) -> None:
        config, ssh = self._config, self._ssh
        client = ssh.SSHClient()
        known = config["sftp.known.hosts.file"]
        try:
            client.load_host_keys(known) if known else client.load_system_host_keys()
        except OSError as error:
            raise ConfigError(f"{known} cannot be read: {error.strerror or error}") from None
        client.set_missing_host_key_policy(ssh.RejectPolicy())
        password = config["sftp.password"]
        timeout_s = config["sftp.timeout.ms"] / 1000
        client.connect(
            config["sftp.host"],
            config["sftp.port"],
            config["sftp.username"],
            password.value if password else None,
            private_key(ssh, config),
            timeout=timeout_s,
            banner_timeout=timeout_s,
            auth_timeout=timeout_s,
            allow_agent=False,
            look_for_keys=False,
        )
        self._client, self._sftp = client, client.open_sftp()
        self._sftp.get_channel().settimeout(timeout_s)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = self._sftp = None


def private_key(ssh: Any, config: Mapping[str, Any]) -> Any:
    """Read the private key that the settings have, of any kind."""
    given, phrase = config["tls.private.key"], config["tls.passphrase"]
    if given is None or not given.value:
        return None
    for kind in (ssh.Ed25519Key, ssh.ECDSAKey, ssh.RSAKey):
        try:
            return kind.from_private_key(io.StringIO(given.value), phrase.value if phrase else None)
        except (ssh.SSHException, ValueError):
            continue
    raise ConfigError("tls.private.key is not a private key, or its passphrase is another.")


class RemoteFolder:
    """A folder with files to read (`places.Place`)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._path: str = config["input.path"]
        self._server = Server(config)

    def files(self) -> list[Found]:
        there = self._server.ask(lambda sftp: sftp.listdir_attr(self._path))
        found = (one for one in there if stat.S_ISREG(one.st_mode or 0))
        return sorted(Found(one.filename, (one.st_mtime or 0) * 1000, one.st_size or 0) for one in found)

    def open(self, name: str) -> IO[bytes]:
        def begin(sftp: Any) -> Any:
            file = sftp.open(self._at(name), "rb")
            file.prefetch()
            return file

        return self._server.ask(begin)

    def move(self, name: str, folder: str, within: str = "") -> None:
        target = posixpath.join(folder, within, name)

        def rename(sftp: Any) -> None:
            if within:
                with suppress(OSError):  # it is there; or the renaming says what is wrong
                    sftp.mkdir(posixpath.dirname(target))
            sftp.posix_rename(self._at(name), target)

        self._server.ask(rename)

    def delete(self, name: str) -> None:
        self._server.ask(lambda sftp: sftp.remove(self._at(name)))

    def _at(self, name: str) -> str:
        return posixpath.join(self._path, name)

    def close(self) -> None:
        self._server.close()


class RemoteFiles:
    """Where files are written (`storage.Storage`)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._root: str = config["sftp.working.dir"]
        self._server = Server(config)
        self._made: set[str] = set()

    def write(self, path: str, data: bytes) -> None:
        target = posixpath.join(self._root, path)
        folder, name = posixpath.split(target)
        beside = posixpath.join(folder, f".{name}.part")

        def put(sftp: Any) -> None:
            self._make(sftp, folder)
            with sftp.open(beside, "wb") as file:
                file.set_pipelined(True)
                file.write(data)
            sftp.posix_rename(beside, target)

        try:
            self._server.ask(put)
        except OSError as error:
            raise RetriableError(f"{target} cannot be written: {error}") from error

    def _make(self, sftp: Any, folder: str) -> None:
        if folder in self._made or folder in ("", "/"):
            return
        self._make(sftp, posixpath.dirname(folder))
        try:
            sftp.stat(folder)
        except FileNotFoundError:
            sftp.mkdir(folder)
        self._made.add(folder)
